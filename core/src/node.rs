//! The node: identifies the machine or process that issues an ID. It is checked against a layout.

use crate::error::{Error, error};
#[cfg(feature = "std")]
use crate::layout::Field;
use crate::layout::{Layout, MAX_NODE_FIELDS, split};
use crate::number::Number;
#[cfg(feature = "std")]
use crate::system::host;
use crate::word::OwnedWord;

/// A node: a whole number for all node bits, or a value for each node field.
///
/// `ordinal` means the number at the end of the host's name (3 for `web-3`, a pod of a `StatefulSet`), and
/// `ip` the low bits of the host's private IPv4 address. Either can be the whole node or the value of a field
/// (`std`). Neither is a lease: two hosts may get the same node.
///
/// Built from an integer, from pairs such as `[("datacenter", 1), ("worker", 7)]`, from a slice of such
/// pairs, or from text with [`Node::parse`]. The node is checked against the layout where it is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node(Given);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "the core has no heap, and a node lives for one call")]
enum Given {
    Whole(Number),
    Fields { pairs: [(OwnedWord, Number); MAX_NODE_FIELDS], count: usize },
    Invalid(Error),
}

impl Node {
    /// A node with no fields yet, for [`with_field`](Self::with_field).
    pub const NO_FIELDS: Self =
        Self(Given::Fields { pairs: [(OwnedWord::EMPTY, Number::ZERO); MAX_NODE_FIELDS], count: 0 });

    /// Reads `7`, or `FIELD=NUMBER` pairs separated by commas, such as `datacenter=1,worker=7`. Any other
    /// string causes an error where the node is used.
    pub fn parse(text: &str) -> Self {
        let mut node = Self::NO_FIELDS;
        let mut rest = text.as_bytes();
        loop {
            let (pair, comma, after) = split(rest, b",");
            let (name, equals, value) = split(pair, b"=");
            node = match (equals, comma) {
                (Some(_), _) => node.with_field_bytes(name, Number::from_bytes(value)),
                (None, None) if rest.len() == text.len() => return Self(Given::Whole(Number::parse(text))),
                (None, _) => node.or_invalid(not_a_node(text.as_bytes())),
            };
            if comma.is_none() {
                return node;
            }
            rest = after;
        }
    }

    /// Returns this node with a value for one more field.
    #[must_use]
    pub fn with_field(self, name: &str, value: impl Into<Number>) -> Self {
        self.with_field_bytes(name.as_bytes(), value.into())
    }

    fn with_field_bytes(self, name: &[u8], value: Number) -> Self {
        match self.0 {
            Given::Fields { mut pairs, count } => {
                if pairs.iter().take(count).any(|(other, _)| other.is(name)) {
                    let twice = error!(InvalidNode, "node field % is given twice", Bytes(name));
                    return Self(Given::Invalid(twice));
                }
                let Some(pair) = pairs.get_mut(count) else {
                    // There are more fields than any layout has, so at least one is unknown.
                    let max = MAX_NODE_FIELDS as u64;
                    return Self(Given::Invalid(error!(
                        InvalidNode,
                        "more node fields are given than the % a layout may have",
                        Number(max)
                    )));
                };
                *pair = (OwnedWord::new(name), value);
                Self(Given::Fields { pairs, count: count + 1 })
            }
            Given::Whole(_) => self.or_invalid(not_a_node(name)),
            Given::Invalid(_) => self,
        }
    }

    /// Returns this node with one more field. A whole number set earlier is discarded.
    pub(crate) fn and_field(self, name: &str, value: Number) -> Self {
        let fields = if let Given::Whole(_) = self.0 { Self::NO_FIELDS } else { self };
        fields.with_field_bytes(name.as_bytes(), value)
    }

    fn or_invalid(self, error: Error) -> Self {
        if matches!(self.0, Given::Invalid(_)) { self } else { Self(Given::Invalid(error)) }
    }

    /// Returns the whole node for a layout, or `invalid_node`.
    pub(crate) fn resolve(&self, layout: &Layout) -> Result<u64, Error> {
        match &self.0 {
            Given::Whole(value) => {
                let max = layout.nodes() - 1;
                #[cfg(feature = "std")]
                let value = &number(*value, max)?;
                value.to_u64().filter(|node| *node <= max).ok_or_else(|| {
                    error!(
                        InvalidNode,
                        "node is %; it takes a whole number from 0 to %",
                        Given(value.word()),
                        Number(max)
                    )
                })
            }
            Given::Fields { pairs, count } => {
                let names = layout.node_names();
                let given = || pairs.iter().take(*count);
                for (name, _) in given() {
                    if !layout.node_fields().any(|field| name.is(field.name_bytes())) {
                        return Err(unknown_field(*name, layout));
                    }
                }
                let mut node = 0;
                for field in layout.node_fields() {
                    let Some((_, value)) = given().find(|(name, _)| name.is(field.name_bytes())) else {
                        return Err(error!(
                            InvalidNode,
                            "node field % is missing; the layout has %",
                            Text(field.name()),
                            Word(names.word())
                        ));
                    };
                    #[cfg(feature = "std")]
                    let value = &number(*value, field.max())?;
                    let fits = value.to_u64().filter(|value| *value <= field.max()).ok_or_else(|| {
                        error!(
                            InvalidNode,
                            "node field % is %; it takes a whole number from 0 to %",
                            Text(field.name()),
                            Given(value.word()),
                            Number(field.max())
                        )
                    });
                    node = node << field.bits() | fits?;
                }
                Ok(node)
            }
            Given::Invalid(error) => Err(*error),
        }
    }

    /// Returns a mask of the node bits that are given, and their value. The mask covers all bits, or those of
    /// some fields.
    #[cfg(feature = "std")]
    pub(crate) fn fixed_bits(&self, layout: &Layout) -> Result<(u64, u64), Error> {
        let Given::Fields { pairs, count } = &self.0 else {
            return self.resolve(layout).map(|node| (layout.nodes() - 1, node));
        };
        // Sets the other fields to 0, so that the usual checks apply to the given ones.
        let is_given = |field: &Field| pairs.iter().take(*count).any(|(name, _)| name.is(field.name_bytes()));
        let mut whole = *self;
        let mut mask = 0;
        for field in layout.node_fields() {
            let is_given = is_given(field);
            mask = mask << field.bits() | if is_given { field.max() } else { 0 };
            if !is_given {
                whole = whole.with_field_bytes(field.name_bytes(), Number::ZERO);
            }
        }
        whole.resolve(layout).map(|node| (mask, node))
    }

    /// The node to use if none is given: the layout's only node if it has no node fields, otherwise an error.
    pub(crate) fn missing(layout: &Layout) -> Result<u64, Error> {
        if layout.node_bits() == 0 {
            return Ok(0);
        }
        Err(error!(
            InvalidNode,
            "node is missing; it takes a whole number from 0 to % that no other process uses, or a value for each of %",
            Number(layout.nodes() - 1),
            Word(layout.node_names().word())
        ))
    }
}

/// Returns the value unchanged, or the number from the host for `ordinal` and `ip`.
#[cfg(feature = "std")]
fn number(value: Number, max: u64) -> Result<Number, Error> {
    let word = value.word();
    if word.is(b"ordinal") {
        let name = host::name().unwrap_or_default();
        let ordinal = host::ordinal_of(&name).filter(|ordinal| *ordinal <= max);
        return ordinal.map(Number::of_u64).ok_or_else(|| {
            error!(
                InvalidNode,
                "node is ordinal, which takes a host whose name ends in a number from 0 to %; this one is `%`",
                Number(max),
                Bytes(name.as_bytes())
            )
        });
    }
    if word.is(b"ip") {
        let address = host::private_address().map(|address| u64::from(address.to_bits()) & max);
        return address
            .map(Number::of_u64)
            .ok_or_else(|| error!(InvalidNode, "node is ip, but this host has no private IPv4 address"));
    }
    Ok(value)
}

fn not_a_node(text: &[u8]) -> Error {
    error!(
        InvalidNode,
        "`%` is not a node; it takes a number, such as 7, or FIELD=NUMBER pairs joined by commas",
        Bytes(text)
    )
}

fn unknown_field(name: OwnedWord, layout: &Layout) -> Error {
    if layout.node_bits() == 0 {
        return error!(InvalidNode, "the layout has no node field `%`; it has none", Given(name));
    }
    let names = layout.node_names();
    error!(InvalidNode, "the layout has no node field `%`; it has %", Given(name), Word(names.word()))
}

impl<N: Into<Number>> From<N> for Node {
    fn from(whole: N) -> Self {
        Self(Given::Whole(whole.into()))
    }
}

impl From<&[(&str, u64)]> for Node {
    fn from(pairs: &[(&str, u64)]) -> Self {
        pairs.iter().fold(Self::NO_FIELDS, |node, (name, value)| node.with_field(name, *value))
    }
}

impl<const N: usize> From<[(&str, u64); N]> for Node {
    fn from(pairs: [(&str, u64); N]) -> Self {
        Self::from(pairs.as_slice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    fn error_of(node: &Node, layout: &str) -> std::string::String {
        node.resolve(&Layout::parse(layout).unwrap()).unwrap_err().to_string()
    }

    #[test]
    fn nodes_that_do_not_fit_are_named() {
        for (node, says) in [
            (Node::from(1024), "node is 1024; it takes a whole number from 0 to 1023"),
            (Node::from(-1), "node is -1"),
            (Node::parse("seven"), "node is seven"),
            (Node::parse(""), "node is ; it"),
            (
                Node::from([("datacenter", 1)]),
                "node field worker is missing; the layout has datacenter, worker",
            ),
            (Node::from([("shard", 1)]), "no node field `shard`; it has datacenter, worker"),
            (
                Node::parse("datacenter=1,worker=32"),
                "node field worker is 32; it takes a whole number from 0 to 31",
            ),
            (Node::parse("datacenter=1,worker=-1"), "node field worker is -1"),
            (Node::parse("worker=1,worker=1"), "node field worker is given twice"),
            (Node::parse("worker=1,7"), "`worker=1,7` is not a node"),
            (Node::parse("timestamp=1"), "no node field `timestamp`"),
        ] {
            let error = error_of(&node, "twitter");
            assert!(error.starts_with("invalid_node: ") && error.contains(says), "{error}");
        }
        assert!(error_of(&Node::from(1), "mastodon").contains("from 0 to 0"));
        assert!(error_of(&Node::from([("worker", 0)]), "mastodon").contains("it has none"));
        let long = "a-name-that-is-longer-than-what-an-error-shows-of-it";
        assert!(error_of(&Node::from([(long, 1)]), "twitter").contains('…'));
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no host")]
    fn the_host_gives_numbers() {
        let layout = Layout::parse("timestamp:10|worker:32|sequence:2@0/1ms").unwrap();
        let ordinal =
            host::name().and_then(|name| host::ordinal_of(&name)).filter(|ordinal| *ordinal < 1 << 32);
        let address = host::private_address().map(|address| u64::from(address.to_bits()));
        for (text, expected, says) in [
            (
                "ordinal",
                ordinal,
                "node is ordinal, which takes a host whose name ends in a number from 0 to 4294967295;",
            ),
            ("worker=ordinal", ordinal, "node is ordinal"),
            ("ip", address, "this host has no private IPv4 address"),
            ("worker=ip", address, "node is ip"),
        ] {
            match (Node::parse(text).resolve(&layout), expected) {
                (Ok(node), Some(expected)) => assert_eq!(node, expected),
                (Err(error), None) => assert!(error.to_string().contains(says), "{error}"),
                other => panic!("{text}: {other:?}"),
            }
        }
        let one_bit = Layout::parse("timestamp:10|worker:1|sequence:2@0/1ms").unwrap();
        if let Some(address) = address {
            assert_eq!(Node::parse("ip").resolve(&one_bit), Ok(address & 1));
        }
    }

    #[test]
    fn a_layout_without_node_fields_needs_no_node() {
        let none = Layout::parse("mastodon").unwrap();
        assert_eq!(Node::from(0).resolve(&none), Ok(0));
        assert_eq!(Node::NO_FIELDS.resolve(&none), Ok(0));
        assert_eq!(Node::missing(&none), Ok(0));
    }
}
