//! Serializes layouts as text.

use core::fmt;

use crate::layout::Layout;

impl serde::Serialize for Layout {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Layout {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl serde::de::Visitor<'_> for Text {
            type Value = Layout;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a layout string or a preset's name")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Layout, E> {
                Layout::parse(text).map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Text)
    }
}
