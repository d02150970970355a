//! `#[serde(with = "polyflake::serde_id")]`: serializes an ID as a decimal string, because JSON parsers that
//! store numbers as doubles (JavaScript's, for one) round IDs above 2^53.
//!
//! ```
//! #[derive(serde::Serialize, serde::Deserialize)]
//! struct Order {
//!     #[serde(with = "polyflake::serde_id")]
//!     id: u64,
//! }
//! let json = serde_json::to_string(&Order { id: 1541815603606036480 })?;
//! assert_eq!(json, r#"{"id":"1541815603606036480"}"#);
//! assert_eq!(serde_json::from_str::<Order>(&json)?.id, 1541815603606036480);
//! # Ok::<(), serde_json::Error>(())
//! ```

use core::fmt;

use serde::de::{Error, Visitor};
use serde::{Deserializer, Serializer};

use crate::text::Format;

/// Writes the ID as a decimal string.
///
/// # Errors
///
/// Any error from the serializer.
pub fn serialize<S: Serializer>(id: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&Format::Decimal.write(*id))
}

/// Reads the ID from a decimal string.
///
/// # Errors
///
/// Any error from the deserializer. Fails if the string is not an ID.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    struct Text;
    impl Visitor<'_> for Text {
        type Value = u64;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an ID as a decimal string")
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<u64, E> {
            Format::Decimal.read(text).map_err(E::custom)
        }
    }
    deserializer.deserialize_str(Text)
}
