//! A node's record as JSON, for stores of keys and values.

use serde::{Deserialize, Serialize};

use crate::store::NodeRecord;

/// Numbers are texts: Lua and many tools have no whole numbers above 2^53.
#[derive(Serialize, Deserialize)]
struct Json {
    token: String,
    expires_ms: String,
    reserved_until: String,
    label: String,
    since_ms: String,
}

pub(super) fn write(record: &NodeRecord) -> Option<String> {
    serde_json::to_string(&Json {
        token: record.token.clone(),
        expires_ms: record.expires_ms.to_string(),
        reserved_until: record.reserved_until.to_string(),
        label: record.label.clone(),
        since_ms: record.since_ms.to_string(),
    })
    .ok()
}

pub(super) fn read(node: u64, text: &str) -> Option<NodeRecord> {
    let Json { token, expires_ms, reserved_until, label, since_ms } = serde_json::from_str(text).ok()?;
    Some(NodeRecord {
        node,
        token,
        expires_ms: expires_ms.parse().ok()?,
        reserved_until: reserved_until.parse().ok()?,
        label,
        since_ms: since_ms.parse().ok()?,
    })
}
