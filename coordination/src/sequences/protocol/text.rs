//! The text of a record, which holds the bounds for several sections.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Refusal, hash};
use crate::records::Record;

const FORMAT: u32 = 1;

/// The text of a record, which holds the bounds for several sections.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Text {
    /// The number of sections in the set, not just in this record.
    pub(super) sections: usize,
    pub(super) hash: String,
    /// The store's incarnation at the time of the write.
    pub(super) incarnation: String,
    pub(super) skip: u64,
    pub(super) bounds: Vec<u64>,
}

/// The text as JSON. Numbers are strings, since many tools cannot represent integers above 2^53.
#[derive(Serialize, Deserialize)]
struct Json {
    format: u32,
    sections: usize,
    hash: String,
    incarnation: String,
    skip: String,
    /// The bounds, separated by spaces.
    bounds: String,
}

impl Text {
    /// Creates the text for sections that have not issued any numbers.
    pub(super) fn new(sections: usize, bounds: usize, incarnation: String) -> Self {
        Self { sections, hash: hash::HASH.into(), incarnation, skip: 0, bounds: vec![0; bounds] }
    }

    pub(super) fn write(&self) -> String {
        let bounds: Vec<_> = self.bounds.iter().map(u64::to_string).collect();
        let json = Json {
            format: FORMAT,
            sections: self.sections,
            hash: self.hash.clone(),
            incarnation: self.incarnation.clone(),
            skip: self.skip.to_string(),
            bounds: bounds.join(" "),
        };
        // Serialization cannot fail for these types.
        serde_json::to_string(&json).unwrap_or_default()
    }

    pub(super) fn read(name: &str, record: &Record) -> Result<Self, Refusal> {
        let refused = |why: String| Refusal::Unreadable { name: name.to_owned(), why };
        let broken = || refused("put back what was there, with higher bounds".into());
        let value: Value = serde_json::from_str(&record.text).map_err(|_| broken())?;
        let format = value.get("format").ok_or_else(broken)?;
        if *format != FORMAT {
            return Err(refused(format!("it has format {format}, and this program knows {FORMAT}")));
        }
        let json: Json = serde_json::from_value(value).map_err(|_| broken())?;
        let number =
            |text: &str| text.parse().ok().filter(|&it| it <= Record::LAST_NUMBER).ok_or_else(broken);
        let bounds = json.bounds.split(' ').map(number).collect::<Result<_, _>>()?;
        let Json { sections, hash, incarnation, skip, .. } = json;
        Ok(Self { sections, hash, incarnation, skip: number(&skip)?, bounds })
    }

    pub(super) fn check(&self, sections: usize, bounds: usize) -> Result<(), Refusal> {
        if self.hash != hash::HASH {
            return Err(Refusal::OtherHash { found: self.hash.clone() });
        }
        if (self.sections, self.bounds.len()) == (sections, bounds) {
            Ok(())
        } else {
            Err(Refusal::OtherSections { found: self.sections })
        }
    }
}
