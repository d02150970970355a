//! What a Snowflake is made from: parsed from text or set from Rust, checked when it is built.

use core::str::FromStr;

use crate::clock::ClockName;
use crate::decode::UnixTime;
use crate::error::{Detail, Error, NodeFault, Word};
use crate::layout::{Layout, MAX_NODE_FIELDS, split};
use crate::message::camel_case;
use crate::number::Number;
#[cfg(feature = "std")]
use std::{ffi::OsStr, path::PathBuf};

const LAYOUT: &str = "layout";
const NODE: &str = "node";
pub(crate) const MAX_BACKWARD_MS: &str = "max_backward_ms";
const MAX_AHEAD_MS: &str = "max_ahead_ms";
const MAX_WAIT_MS: &str = "max_wait_ms";
const SEQUENCE_START: &str = "sequence_start";
const CLOCK: &str = "clock";
#[cfg(feature = "std")]
pub(crate) const STATE: &str = "state";
/// Every option's name.
pub(crate) const NAMES: &[&str] = &[
    LAYOUT,
    NODE,
    MAX_BACKWARD_MS,
    MAX_AHEAD_MS,
    MAX_WAIT_MS,
    SEQUENCE_START,
    CLOCK,
    #[cfg(feature = "std")]
    STATE,
];

/// What a wait adds to a tick by default, for the clock and the scheduler to be late.
const WAIT_MARGIN_MS: u64 = 1000;

/// A node: a whole number for all node bits, or a value for each node field.
///
/// Made from integers, from pairs such as `[("datacenter", 1), ("worker", 7)]`, from a slice of such pairs, or
/// from text by [`Node::parse`]. It is checked against the layout where it is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node(Given);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "the core has no heap, and a node lives for one call")]
enum Given {
    Whole(Number),
    Fields { pairs: [(Word, Number); MAX_NODE_FIELDS], count: usize },
    Refused(NodeFault),
}

impl Node {
    /// A node of no fields yet, for [`with_field`](Self::with_field).
    pub const NO_FIELDS: Self =
        Self(Given::Fields { pairs: [(Word::EMPTY, Number::ZERO); MAX_NODE_FIELDS], count: 0 });

    /// Reads `7`, or `FIELD=NUMBER` pairs joined by commas, such as `datacenter=1,worker=7`. What is neither is
    /// refused, by its text, where the node is used.
    pub fn parse(text: &str) -> Self {
        let mut node = Self::NO_FIELDS;
        let mut rest = text.as_bytes();
        loop {
            let (pair, comma, after) = split(rest, b",");
            let (name, equals, value) = split(pair, b"=");
            node = match (equals, comma) {
                (Some(_), _) => node.with_field_bytes(name, Number::from_bytes(value)),
                (None, None) if rest.len() == text.len() => return Self(Given::Whole(Number::parse(text))),
                (None, _) => node.or_refused(NodeFault::NoPair { text: Word::new(text.as_bytes()) }),
            };
            if comma.is_none() {
                return node;
            }
            rest = after;
        }
    }

    /// The same node with a value for one more field.
    #[must_use]
    pub fn with_field(self, name: &str, value: impl Into<Number>) -> Self {
        self.with_field_bytes(name.as_bytes(), value.into())
    }

    fn with_field_bytes(self, name: &[u8], value: Number) -> Self {
        let name_word = Word::new(name);
        match self.0 {
            Given::Fields { mut pairs, count } => {
                if pairs.iter().take(count).any(|(other, _)| *other == name_word) {
                    return Self(Given::Refused(NodeFault::Twice { name: name_word }));
                }
                let Some(pair) = pairs.get_mut(count) else {
                    // More fields than any layout has: one of them is unknown.
                    return Self(Given::Refused(NodeFault::TooManyFields));
                };
                *pair = (name_word, value);
                Self(Given::Fields { pairs, count: count + 1 })
            }
            Given::Whole(_) => self.or_refused(NodeFault::NoPair { text: name_word }),
            Given::Refused(_) => self,
        }
    }

    fn or_refused(self, fault: NodeFault) -> Self {
        if matches!(self.0, Given::Refused(_)) { self } else { Self(Given::Refused(fault)) }
    }

    /// The whole node under a layout, or `invalid_node`.
    pub(crate) fn resolve(&self, layout: &Layout) -> Result<u64, Error> {
        match &self.0 {
            Given::Whole(value) => {
                let max = layout.nodes() - 1;
                let node = value.to_u64().filter(|node| *node <= max);
                node.ok_or(Detail::Node(NodeFault::Whole { value: *value, max }).into())
            }
            Given::Fields { pairs, count } => {
                let names = layout.node_names();
                let given = || pairs.iter().take(*count);
                for (name, _) in given() {
                    if !layout.node_fields().any(|field| name.is(field.name_bytes())) {
                        return Err(Detail::Node(NodeFault::UnknownField { name: *name, names }).into());
                    }
                }
                let mut node = 0;
                for field in layout.node_fields() {
                    let Some((name, value)) = given().find(|(name, _)| name.is(field.name_bytes())) else {
                        let name = Word::new(field.name_bytes());
                        return Err(Detail::Node(NodeFault::MissingField { name, names }).into());
                    };
                    let fits = value.to_u64().filter(|value| *value <= field.max());
                    let fault = NodeFault::Field { name: *name, value: *value, max: field.max() };
                    node = node << field.bits() | fits.ok_or(Detail::Node(fault))?;
                }
                Ok(node)
            }
            Given::Refused(fault) => Err(Detail::Node(*fault).into()),
        }
    }
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

/// The first sequence number of a fresh tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum SequenceStart {
    /// `zero`.
    Zero,
    /// `spread`: differs from tick to tick within the lower quarter of the sequence's range, so that IDs issued
    /// slowly do not all end in the same bits and `id % n` shards evenly.
    #[default]
    Spread,
}

impl FromStr for SequenceStart {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        match name {
            "zero" => Ok(Self::Zero),
            "spread" => Ok(Self::Spread),
            _ => {
                let value = Word::new(name.as_bytes());
                Err(Detail::Option { option: SEQUENCE_START, value, fits: "zero or spread" }.into())
            }
        }
    }
}

/// What a [`Snowflake`](crate::Snowflake) is made from; [`Snowflake::builder`](crate::Snowflake::builder) gives
/// the defaults.
///
/// | option | default | meaning |
/// |---|---|---|
/// | `layout` | `twitter` | a preset's name, a layout's text, or a [`Layout`] |
/// | `node` | none: it must be given | a number for all node bits, or one for each node field |
/// | `max_backward_ms` | 1000 | how far the clock may step back and IDs still be issued |
/// | `max_ahead_ms` | 0 | how far IDs may run ahead of the clock to serve a burst |
/// | `max_wait_ms` | a tick + 1000 | the longest `next_id` waits, and a batch between two of its runs |
/// | `sequence_start` | `spread` | the first sequence number of a fresh tick, or `zero` |
/// | `clock` | `system` | the wall clock, or `steady` |
/// | `state` | none | a file through which all processes of this host share the node (`std`, Unix) |
///
/// The three in ms take 0 to 4294967295. Setting an option again replaces its value.
///
/// ```
/// use polyflake::{Options, Snowflake};
/// let ids = Snowflake::builder()
///     .layout("twitter")
///     .node([("datacenter", 1), ("worker", 8)])
///     .max_backward_ms(50)
///     .build()?;
/// assert_eq!(ids.node(), 40);
///
/// let mut options = Options::default();
/// options.set("node", "datacenter=1,worker=9")?;
/// assert_eq!(options.build()?.node(), 41);
/// # Ok::<(), polyflake::Error>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "options do nothing until they are built"]
pub struct Options {
    layout: Layout,
    node: Option<Node>,
    max_backward_ms: u32,
    max_ahead_ms: u32,
    max_wait_ms: Option<u32>,
    sequence_start: SequenceStart,
    clock: ClockName,
    #[cfg(feature = "std")]
    state: Option<PathBuf>,
    /// What a chained setter refused; `build` returns it.
    refused: Option<Error>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            layout: Layout::default(),
            node: None,
            max_backward_ms: 1000,
            max_ahead_ms: 0,
            max_wait_ms: None,
            sequence_start: SequenceStart::default(),
            clock: ClockName::default(),
            #[cfg(feature = "std")]
            state: None,
            refused: None,
        }
    }
}

impl Options {
    /// Sets an option from its name and its value's text: the parser that every language shares.
    ///
    /// Refuses with `invalid_layout`, `unknown_layout`, or `invalid_option`, and leaves the options as they
    /// were; a node is checked against the layout when the Snowflake is built.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), Error> {
        match name {
            LAYOUT => self.layout = Layout::parse(value)?,
            NODE => self.node = Some(Node::parse(value)),
            MAX_BACKWARD_MS => self.max_backward_ms = ms(MAX_BACKWARD_MS, Number::parse(value))?,
            MAX_AHEAD_MS => self.max_ahead_ms = ms(MAX_AHEAD_MS, Number::parse(value))?,
            MAX_WAIT_MS => self.max_wait_ms = Some(ms(MAX_WAIT_MS, Number::parse(value))?),
            SEQUENCE_START => self.sequence_start = value.parse()?,
            CLOCK => self.clock = value.parse()?,
            #[cfg(feature = "std")]
            STATE => self.state = Some(state_path(value.into())?),
            _ => return Err(Detail::UnknownOption { name: Word::new(name.as_bytes()) }.into()),
        }
        Ok(())
    }

    /// [`set`](Self::set) with a value that need not be UTF-8, as the path of a state file. Another option refuses a
    /// value that is not, and shows U+FFFD in its place.
    #[cfg(feature = "std")]
    pub fn set_os(&mut self, name: &str, value: &OsStr) -> Result<(), Error> {
        if name == STATE {
            self.state = Some(state_path(value.into())?);
            return Ok(());
        }
        self.set(name, &value.to_string_lossy())
    }

    /// [`set`](Self::set), with the option's name in camelCase (`maxWaitMs`), for JavaScript.
    pub fn set_camel_case(&mut self, name: &str, value: &str) -> Result<(), Error> {
        match NAMES.iter().copied().find(|option| camel_case(option).eq(name.chars())) {
            Some(option) => self.set(option, value),
            None => Err(Detail::UnknownOption { name: Word::new(name.as_bytes()) }.into()),
        }
    }

    /// The layout: a [`Layout`], a preset's name, or a layout's text.
    pub fn layout<L: TryInto<Layout>>(mut self, layout: L) -> Self
    where
        Error: From<L::Error>,
    {
        match layout.try_into() {
            Ok(layout) => self.layout = layout,
            Err(error) => self.refuse(error.into()),
        }
        self
    }

    /// The node, which no other process may use at the same time.
    pub fn node(mut self, node: impl Into<Node>) -> Self {
        self.node = Some(node.into());
        self
    }

    /// One more field of the node, for callers that hold the fields apart. A whole node set before goes.
    pub fn node_field(mut self, name: &str, value: impl Into<Number>) -> Self {
        let fields = self.node.filter(|node| !matches!(node.0, Given::Whole(_))).unwrap_or(Node::NO_FIELDS);
        self.node = Some(fields.with_field(name, value));
        self
    }

    /// How many ms the clock may step back and IDs still be issued, counting on in the last tick. A step back
    /// by more is refused with `clock_moved_backwards`; 0 refuses every step back of a tick or more.
    pub fn max_backward_ms(mut self, value: impl Into<Number>) -> Self {
        match ms(MAX_BACKWARD_MS, value.into()) {
            Ok(value) => self.max_backward_ms = value,
            Err(error) => self.refuse(error),
        }
        self
    }

    /// How many ms IDs may run ahead of the clock to serve a burst.
    pub fn max_ahead_ms(mut self, value: impl Into<Number>) -> Self {
        match ms(MAX_AHEAD_MS, value.into()) {
            Ok(value) => self.max_ahead_ms = value,
            Err(error) => self.refuse(error),
        }
        self
    }

    /// The longest that `next_id` waits, and a batch between two of its runs, in ms of real time. 0 never
    /// waits.
    pub fn max_wait_ms(mut self, value: impl Into<Number>) -> Self {
        match ms(MAX_WAIT_MS, value.into()) {
            Ok(value) => self.max_wait_ms = Some(value),
            Err(error) => self.refuse(error),
        }
        self
    }

    /// The first sequence number of a fresh tick.
    pub const fn sequence_start(mut self, start: SequenceStart) -> Self {
        self.sequence_start = start;
        self
    }

    /// Which built-in clock [`build`](Self::build) uses.
    pub const fn clock(mut self, clock: ClockName) -> Self {
        self.clock = clock;
        self
    }

    /// The file in which the node's cursor stands, so that all processes of this host that name it share the node.
    /// It is made where there is none, for its owner alone to read and write.
    ///
    /// All Snowflakes of a node in a process name the same file, or none does. One made before a fork goes on in the
    /// children.
    #[cfg(feature = "std")]
    pub fn state(mut self, path: impl Into<PathBuf>) -> Self {
        match state_path(path.into()) {
            Ok(path) => self.state = Some(path),
            Err(error) => self.refuse(error),
        }
        self
    }

    /// The ID of an instant (rounded down to its tick) and a sequence number by these options' layout and node, as
    /// [`Layout::compose`] gives it: for callers that set the node's fields one by one.
    ///
    /// Refuses as [`Layout::compose`] does, and with what a chained setter refused.
    pub fn compose(&self, time: impl Into<UnixTime>, sequence: impl Into<Number>) -> Result<u64, Error> {
        if let Some(error) = self.refused {
            return Err(error);
        }
        self.layout.compose(time, self.node.unwrap_or(Node::NO_FIELDS), sequence)
    }

    fn refuse(&mut self, error: Error) {
        self.refused.get_or_insert(error);
    }

    /// The options checked against each other.
    pub(crate) fn resolve(&self) -> Result<Resolved, Error> {
        if let Some(error) = self.refused {
            return Err(error);
        }
        let layout = self.layout;
        let node = match &self.node {
            Some(node) => node.resolve(&layout)?,
            None if layout.node_bits() == 0 => 0,
            None => {
                let fault = NodeFault::Required { names: layout.node_names(), max: layout.nodes() - 1 };
                return Err(Detail::Node(fault).into());
            }
        };
        let default_wait = u32::try_from(layout.tick_ms().saturating_add(WAIT_MARGIN_MS)).unwrap_or(u32::MAX);
        Ok(Resolved {
            layout,
            node,
            max_backward_ms: self.max_backward_ms,
            max_ahead_ms: self.max_ahead_ms,
            max_wait_ms: self.max_wait_ms.unwrap_or(default_wait),
            sequence_start: self.sequence_start,
            #[cfg(feature = "alloc")]
            clock: self.clock,
            #[cfg(feature = "std")]
            state: self.state.clone(),
        })
    }
}

/// [`Options`] that fit each other.
pub(crate) struct Resolved {
    pub(crate) layout: Layout,
    pub(crate) node: u64,
    pub(crate) max_backward_ms: u32,
    pub(crate) max_ahead_ms: u32,
    pub(crate) max_wait_ms: u32,
    pub(crate) sequence_start: SequenceStart,
    #[cfg(feature = "alloc")]
    pub(crate) clock: ClockName,
    #[cfg(feature = "std")]
    pub(crate) state: Option<PathBuf>,
}

#[cfg(feature = "alloc")]
impl Resolved {
    /// Refuses bounds other than those that the cursor was made with.
    pub(crate) fn same_bounds(&self, first_backward_ms: u32, first_ahead_ms: u32) -> Result<(), Error> {
        for (option, value, first) in [
            (MAX_BACKWARD_MS, self.max_backward_ms, first_backward_ms),
            (MAX_AHEAD_MS, self.max_ahead_ms, first_ahead_ms),
        ] {
            if value != first {
                return Err(Detail::OtherBound { option, value, first }.into());
            }
        }
        Ok(())
    }
}

#[cfg(feature = "std")]
fn state_path(path: PathBuf) -> Result<PathBuf, Error> {
    if path.as_os_str().is_empty() {
        return Err(Detail::Option { option: STATE, value: Word::EMPTY, fits: "the path of a file" }.into());
    }
    Ok(path)
}

fn ms(option: &'static str, value: Number) -> Result<u32, Error> {
    let fits = value.to_u64().and_then(|ms| u32::try_from(ms).ok());
    fits.ok_or(Detail::OptionRange { option, value, min: 0, max: u32::MAX.into() }.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    fn refusal(node: &Node, layout: &str) -> std::string::String {
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
            (Node::parse("worker=1,7"), "`worker=1,7` is no node"),
            (Node::parse("timestamp=1"), "no node field `timestamp`"),
        ] {
            let refused = refusal(&node, "twitter");
            assert!(refused.starts_with("invalid_node: ") && refused.contains(says), "{refused}");
        }
        assert!(refusal(&Node::from(1), "mastodon").contains("from 0 to 0"));
        assert!(refusal(&Node::from([("worker", 0)]), "mastodon").contains("it has none"));
        let long = "a-name-that-is-longer-than-what-an-error-shows-of-it";
        assert!(refusal(&Node::from([(long, 1)]), "twitter").contains('…'));
    }

    #[test]
    fn a_layout_without_node_fields_needs_no_node() {
        let none = Layout::parse("mastodon").unwrap();
        assert_eq!(Node::from(0).resolve(&none), Ok(0));
        assert_eq!(Node::NO_FIELDS.resolve(&none), Ok(0));
        assert_eq!(Options::default().layout(none).resolve().map(|it| it.node).ok(), Some(0));
    }

    #[test]
    fn options_are_refused_with_their_name_and_value() {
        let mut options = Options::default();
        for (name, value, says) in [
            ("max_wait_ms", "-1", "max_wait_ms is -1; it takes a whole number from 0 to 4294967295"),
            ("max_ahead_ms", "4294967296", "max_ahead_ms is 4294967296"),
            ("max_backward_ms", "1.5", "max_backward_ms is 1.5"),
            ("sequence_start", "random", "sequence_start is `random`; it takes zero or spread"),
            ("clock", "atomic", "clock is `atomic`; it takes system or steady"),
            ("nodes", "1", "no option `nodes`; there are layout, node,"),
        ] {
            let refused = options.set(name, value).unwrap_err().to_string();
            assert!(refused.starts_with("invalid_option: ") && refused.contains(says), "{refused}");
        }
        options.set_camel_case("maxWaitMs", "5").unwrap();
        assert_eq!(options.max_wait_ms, Some(5));
        for (name, value, says) in [
            ("maxAheadMs", "x", "maxAheadMs is x;"),
            ("sequenceStart", "x", "sequenceStart is `x`; it takes zero or spread"),
            (
                "max_wait_ms",
                "1",
                "no option `max_wait_ms`; there are layout, node, maxBackwardMs, maxAheadMs",
            ),
        ] {
            let refused = options.set_camel_case(name, value).unwrap_err().camel_case().to_string();
            assert!(refused.contains(says), "{refused}");
        }
        let missing = Options::default().resolve().err().unwrap().to_string();
        assert!(missing.contains("node is missing; it takes a whole number from 0 to 1023"), "{missing}");
        let first = Options::default().layout("nope").max_wait_ms(-1).node(1).resolve().err().unwrap();
        assert_eq!(first.code(), crate::ErrorCode::UnknownLayout);
    }
}
