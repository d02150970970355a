//! The inspector: the page from `inspector/`, if it was built before this crate.

use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};

include!(concat!(env!("OUT_DIR"), "/inspector.rs"));

/// The page's own policy, which also forbids other pages from framing it.
const POLICY: &str = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src data:; \
                      worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The page that is served if the inspector was not built.
const WITHOUT: &str = "\
<!doctype html><html lang=en><meta charset=utf-8><title>Polyflake</title>\
<h1>Polyflake</h1><p>This program was built without the inspector.\
<ul><li><a href=healthz>healthz</a><li><a href=readyz>readyz</a></ul></html>\n";

/// Returns one of the page's files by name; the page itself has an empty name.
pub(super) fn file(name: &str) -> Response {
    let name = if name.is_empty() { "index.html" } else { name };
    let found = FILES.iter().find(|(of, _)| *of == name).map(|(_, bytes)| *bytes);
    let Some(bytes) = found.or_else(|| (name == "index.html").then_some(WITHOUT.as_bytes())) else {
        return super::complain(StatusCode::NOT_FOUND, "not_found", "there is no such page");
    };
    let kind = match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        _ => "application/octet-stream",
    };
    let cache = HeaderValue::from_static("no-cache");
    let policy = HeaderValue::from_static(POLICY);
    let kind = HeaderValue::from_static(kind);
    ([(CONTENT_TYPE, kind), (CACHE_CONTROL, cache), (CONTENT_SECURITY_POLICY, policy)], bytes).into_response()
}
