//! The records of a space in a store: the head, and one record for each node that has ever been leased.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Refusal;
use crate::records::Record;

/// The format of the records. Polyflake refuses any other format.
const FORMAT: u64 = 1;

/// The name of a space's head. The name of a node's record is its number in decimal.
pub(crate) const HEAD: &str = "head";

/// A space's own record. It guards every write to a node's record.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Head {
    pub(crate) version: u64,
    /// The store's incarnation when the fence was written.
    pub(crate) incarnation: String,
    /// How far into the future a bound may lie: the TTL of the space's first holder plus its `max_ahead_ms`.
    pub(crate) lead_ms: u64,
    /// The space's `clock_difference`.
    pub(crate) difference_ms: u64,
    /// The granularity of the store's clock.
    pub(crate) granularity_ms: u64,
    /// Holders that acquire their lease from now on never issue IDs below this tick.
    pub(crate) fence: u64,
    pub(crate) why: Why,
}

/// The reason for a fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Why {
    /// The space had no head, and the writer knew of no earlier head.
    First,
    /// The store had lost writes, or an operator declared a loss.
    Loss,
}

/// A node that has been leased at least once.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Node {
    pub(crate) version: u64,
    /// The lease's token, which the holder drew during the acquisition, or 0 if the node is not leased.
    pub(crate) token: u64,
    /// The time at which the lease expires (Unix ms).
    pub(crate) expires_ms: u64,
    /// The holder issues IDs only below this tick, and the next holder starts at this tick.
    pub(crate) reserved_until: u64,
    /// The holder's label, for humans to read.
    pub(crate) label: String,
    /// The time at which the lease was acquired (Unix ms).
    pub(crate) since_ms: u64,
}

#[derive(Serialize, Deserialize)]
struct HeadText {
    format: u64,
    incarnation: String,
    lead_ms: u64,
    difference_ms: u64,
    granularity_ms: u64,
    why: Why,
}

#[derive(Serialize, Deserialize)]
struct NodeText {
    format: u64,
    token: String,
    expires_ms: u64,
    label: String,
    since_ms: u64,
}

impl Head {
    pub(crate) fn read(record: &Record) -> Result<Self, Refusal> {
        let HeadText { incarnation, lead_ms, difference_ms, granularity_ms, why, .. } = read(HEAD, record)?;
        let (version, fence) = (record.version, record.number);
        Ok(Self { version, incarnation, lead_ms, difference_ms, granularity_ms, fence, why })
    }

    pub(crate) fn write(&self) -> Result<Record, Refusal> {
        let Self { version, incarnation, lead_ms, difference_ms, granularity_ms, fence, why } = self.clone();
        let text = HeadText { format: FORMAT, incarnation, lead_ms, difference_ms, granularity_ms, why };
        write(version, fence, &text)
    }
}

impl Node {
    /// Returns true if the node has no lease, regardless of the time.
    pub(crate) const fn is_given_back(&self) -> bool {
        self.token == 0
    }

    pub(crate) fn read(node: u64, record: &Record) -> Result<Self, Refusal> {
        let name = node.to_string();
        let NodeText { token, expires_ms, label, since_ms, .. } = read(&name, record)?;
        let (version, reserved_until) = (record.version, record.number);
        let token = if token.is_empty() { Some(0) } else { u64::from_str_radix(&token, 16).ok() };
        let token = token.ok_or_else(|| unreadable(&name, "its token is not a hexadecimal number"))?;
        Ok(Self { version, token, expires_ms, reserved_until, label, since_ms })
    }

    pub(crate) fn write(&self) -> Result<Record, Refusal> {
        let token = if self.token == 0 { String::new() } else { format!("{:016x}", self.token) };
        let Self { version, token: _, expires_ms, reserved_until, label, since_ms } = self.clone();
        write(version, reserved_until, &NodeText { format: FORMAT, token, expires_ms, label, since_ms })
    }
}

fn write(version: u64, number: u64, text: &impl Serialize) -> Result<Record, Refusal> {
    let text = serde_json::to_string(text)
        .map_err(|error| Refusal::Unreadable(format!("a record of a lease cannot be written: {error}")))?;
    Ok(Record { version, number: number.min(Record::LAST_NUMBER), text })
}

fn read<T: for<'a> Deserialize<'a>>(name: &str, record: &Record) -> Result<T, Refusal> {
    let value: Value =
        serde_json::from_str(&record.text).map_err(|_| unreadable(name, "its text is not JSON"))?;
    match value.get("format") {
        Some(format) if format.as_u64() == Some(FORMAT) => {}
        Some(format) => {
            return Err(Refusal::Unreadable(format!(
                "the record {name:?} of a space has format {format}, and this program knows {FORMAT}: use one version \
                 of Polyflake for all processes of a space"
            )));
        }
        None => return Err(unreadable(name, "its text names no format")),
    }
    serde_json::from_value(value).map_err(|error| unreadable(name, &error.to_string()))
}

/// Returns the error for an unreadable record. The error omits the record's text, since anyone could have
/// written it.
fn unreadable(name: &str, why: &str) -> Refusal {
    Refusal::Unreadable(format!(
        "the record {name:?} of a space cannot be read: {why}. Something other than Polyflake has written it"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_as_they_are_written() {
        let head = Head {
            version: 5,
            incarnation: "run \"1\"".into(),
            lead_ms: 31_000,
            difference_ms: 1000,
            granularity_ms: 1,
            fence: 77,
            why: Why::Loss,
        };
        let record = head.write().unwrap();
        assert_eq!((record.version, record.number), (5, 77));
        assert_eq!(Head::read(&record), Ok(head));
        for token in [0, 1, u64::MAX] {
            let node = Node {
                version: 6,
                token,
                expires_ms: 8,
                reserved_until: 9,
                label: "é\u{1}".into(),
                since_ms: 7,
            };
            let record = node.write().unwrap();
            assert_eq!((record.version, record.number), (6, 9));
            assert_eq!(Node::read(3, &record), Ok(node));
        }
    }

    #[test]
    fn what_is_found_is_named() {
        let why = |refusal| match refusal {
            Refusal::Unreadable(why) => why,
            other => panic!("{other:?}"),
        };
        let said = |text: &str| {
            let record = Record { version: 1, number: 1, text: text.into() };
            why(Node::read(3, &record).unwrap_err())
        };
        assert!(said("").contains("\"3\"") && said("").contains("not JSON"));
        assert!(said("{}").contains("names no format"));
        assert!(said(r#"{"format":9}"#).contains("format 9"));
        assert!(said(r#"{"format":1,"token":""}"#).contains("expires_ms"));
        let token = said(r#"{"format":1,"token":"x","expires_ms":1,"label":"","since_ms":1}"#);
        assert!(token.contains("token"), "{token}");
        let head = Record { version: 1, number: 1, text: r#"{"format":1,"why":"other"}"#.into() };
        assert!(why(Head::read(&head).unwrap_err()).contains("\"head\""));
    }
}
