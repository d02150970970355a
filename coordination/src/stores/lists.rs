//! What a namespace has, in SQL stores: the statements, which all of them take, and what they read.

use crate::store::Schema;

/// A statement that reads texts. With `?` where the namespace goes, if it goes anywhere.
pub(super) struct Query {
    pub(super) statement: &'static str,
    pub(super) has_namespace: bool,
}

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
