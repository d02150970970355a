//! What a namespace has, in SQL stores: the statements, which all of them take, and what they read.

use crate::space::Space;
use crate::store::Schema;

/// A statement that reads texts. With `?` where the namespace goes, if it goes anywhere.
pub(super) struct Query {
    pub(super) statement: &'static str,
    pub(super) has_namespace: bool,
}

/// The spaces of a namespace.
pub(super) const SPACES: Query =
    Query { statement: "SELECT space FROM polyflake_spaces WHERE namespace = ?", has_namespace: true };

/// The names of a namespace's counters.
pub(super) const fn counters(schema: Schema) -> Query {
    let (statement, has_namespace) = match schema {
        Schema::Polyflake => ("SELECT name FROM polyflake_counters WHERE namespace = ?", true),
        Schema::Leaf => ("SELECT biz_tag FROM leaf_alloc", false),
        Schema::Tinyid => ("SELECT biz_type FROM tiny_id_info", false),
        Schema::Cosid => ("SELECT name FROM cosid", false),
    };
    Query { statement, has_namespace }
}

/// What the rows of [`counters`] name.
pub(super) fn names(schema: Schema, namespace: &str, rows: Vec<String>) -> Vec<String> {
    if schema != Schema::Cosid {
        return rows;
    }
    let name = |row: String| Some(row.strip_prefix(namespace)?.strip_prefix('.')?.to_owned());
    rows.into_iter().filter_map(name).collect()
}

/// The spaces that texts of stores name. Others are of another version, or somebody else's.
pub(super) fn spaces(namespace: &str, texts: impl IntoIterator<Item = impl AsRef<str>>) -> Vec<Space> {
    texts.into_iter().filter_map(|text| Space::parse(namespace, text.as_ref())).collect()
}
