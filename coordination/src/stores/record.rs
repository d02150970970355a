//! Records as JSON, for stores of keys and values.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::store::{FORMAT, NodeRecord, SpaceRecord};

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

/// The record of a space.
#[derive(Serialize, Deserialize)]
struct SpaceJson {
    version: u32,
    incarnation: String,
    lead_ms: String,
    fence: String,
}

pub(super) fn write_space(record: &SpaceRecord) -> Option<String> {
    serde_json::to_string(&SpaceJson {
        version: FORMAT,
        incarnation: record.incarnation.clone(),
        lead_ms: record.lead_ms.to_string(),
        fence: record.fence.to_string(),
    })
    .ok()
}

/// Or why it cannot be read.
pub(super) fn read_space(text: &str) -> Result<SpaceRecord, String> {
    let unreadable = || "the record of the space is not readable".to_owned();
    let value: Value = serde_json::from_str(text).map_err(|_| unreadable())?;
    let version = value.get("version").cloned().unwrap_or_default();
    if version != json!(FORMAT) {
        return Err(format!(
            "its leases have version {version} of their form, and this program knows {FORMAT}"
        ));
    }
    let it: SpaceJson = serde_json::from_value(value).map_err(|_| unreadable())?;
    let lead_ms = it.lead_ms.parse().map_err(|_| unreadable())?;
    let fence = it.fence.parse().map_err(|_| unreadable())?;
    Ok(SpaceRecord { incarnation: it.incarnation, lead_ms, fence })
}
