//! Counters that cannot be opened: the error says why, and no message contains a secret.

use std::net::TcpListener;

use polyflake::ErrorCode;
use polyflake_coordination::Sequences;

use crate::backend::{Backend as _, Sqlite};
use crate::servers::etcd::Etcd;
use crate::servers::mariadb::MariaDb;
use crate::servers::postgres::Postgres;
use crate::servers::redis::Redis;
use crate::taker::{options, settings};

const SECRET: &str = "secret-of-this-test";

/// Returns the error's code and message, and checks that they contain no secret.
fn why(settings: &str) -> (ErrorCode, String) {
    let options = options(settings);
    let error = options.open().expect_err(settings);
    let shown = format!("{options:?} {error:?} {error}");
    assert!(!shown.contains(SECRET) && !shown.contains("secret-of-polyflake"), "{shown}");
    (error.code(), error.to_string())
}

#[test]
fn options_that_cannot_be() {
    let store = Sqlite::begin();
    let url = store.url();
    let with = |name: &str, more: &str| settings(name, &[&url], &[more]);
    for (settings, says) in [
        (with("orders", "step=0"), &["step", "0", "1 to 1000000000"][..]),
        (with("orders", "step=1099511627776"), &["step", "1099511627776", "1 to 1000000000"]),
        (with("orders", "step=18446744073709551616"), &["step"]),
        (with("orders", "step=many"), &["step", "many"]),
        (with("orders", "start=0"), &["start", "1 to 9223372036854775807"]),
        (with("orders", "start=9223372036854775808"), &["start", "9223372036854775808"]),
        (with("orders", "start=-1"), &["start", "-1"]),
        (with("orders", "max_wait_ms=4294967296"), &["max_wait_ms"]),
        (with("orders", "speed=1"), &["there is no option `speed`"]),
        (with("orders", &format!("redis://user:{SECRET}@host/0=store")), &["there is no option `redis://…`"]),
        (with("orders", &format!("step=redis://user:{SECRET}@host/0")), &["step is redis://…;"]),
        (with("", "step=1"), &["the counter's name has 0 characters; it takes 1 to 100"]),
        (with(&"n".repeat(1_000), "step=1"), &["the counter's name has 1000 characters"]),
        (with(&"ö".repeat(101), "step=1"), &["the counter's name has 101 characters"]),
        (with("a\tb", "step=1"), &["a control character"]),
        (with("a\u{0}", "step=1"), &["a control character"]),
        (with("a\u{85}", "step=1"), &["a control character"]),
        (settings("orders", &[], &[]), &["store is missing", "postgres://host/shop"]),
        (settings("orders", &["here"], &[]), &["store: "]),
        (settings("orders", &[&format!("mongo://u:{SECRET}@h")], &[]), &["store: ", "no such kind of store"]),
        // The first of several errors is reported.
        (settings("", &[], &["step=0"]), &["name"]),
    ] {
        let (code, text) = why(&settings);
        assert_eq!(code, ErrorCode::InvalidOption, "{settings:?}: {text}");
        for says in says {
            assert!(text.contains(says), "{settings:?}: {text}");
        }
        assert!(text.len() < 400, "{text}");
    }
    // These are just within the limits.
    for (settings, first) in [
        (with(&"ö".repeat(100), "step=1000000000"), 1),
        (with("it's; \"quoted\" %_\\ {0} $1 ?", "start=7"), 7),
        (with("orders", "start=9223372036854775807"), 9_223_372_036_854_775_807),
    ] {
        let counter = options(&settings).open().unwrap();
        assert_eq!(counter.next_id(), Ok(first), "{settings}");
        counter.close();
    }
    // Two Counters in one process that would share the numbers in hand.
    let counter = options(&with("shared", "step=20")).open().unwrap();
    let (code, text) = why(&with("shared", "step=21"));
    assert_eq!(code, ErrorCode::InvalidOption);
    assert!(text.contains("with start=1 and step=20 already, not with start=1 and step=21"), "{text}");
    assert_eq!(options(&with("shared", "step=20")).open().unwrap().next_id(), Ok(1));
    for n in [0, 16_777_217_u64] {
        assert_eq!(counter.next_ids(n).unwrap_err().code(), ErrorCode::InvalidOption);
        assert_eq!(counter.next_block(n).unwrap_err().code(), ErrorCode::InvalidOption);
    }
    assert_eq!(counter.raise(0_u64).unwrap_err().code(), ErrorCode::InvalidOption);
    assert_eq!(counter.raise(1_u64 << 63).unwrap_err().code(), ErrorCode::InvalidOption);
    assert_eq!(counter.next_id(), Ok(2));
}

fn with_a_wrong_password(url: &str, says: &str) {
    let settings = settings("orders", &[url], &[]);
    let (code, text) = why(&settings);
    assert_eq!(code, ErrorCode::CounterUnavailable, "{text}");
    assert!(text.contains(says) && text.contains("127.0.0.1:"), "{text}");
    // Sequences do not wait for a lease they cannot get.
    let error = Sequences::open("inbox", &format!("{url}?wait=1h")).expect_err(url);
    let text = error.to_string();
    assert_eq!(error.code(), ErrorCode::LeaseUnavailable, "{text}");
    assert!(text.contains(says) && !text.contains(SECRET), "{text}");
}

#[test]
fn a_wrong_password() {
    let redis = Redis::with(&["--requirepass", "the-password"]);
    with_a_wrong_password(
        &format!("redis://:{SECRET}@127.0.0.1:{}/0", redis.port()),
        "authentication failed",
    );
    let etcd = Etcd::new();
    etcd.ctl(&["user", "add", "root:the-password"]);
    etcd.ctl(&["user", "grant-role", "root", "root"]);
    etcd.ctl(&["auth", "enable"]);
    with_a_wrong_password(
        &format!("etcd://root:{SECRET}@127.0.0.1:{}", etcd.port()),
        "authentication failed",
    );
    let postgres = Postgres::new();
    let url = postgres.url().replace("secret-of-polyflake", SECRET);
    with_a_wrong_password(&url, "password authentication failed");
    let maria = MariaDb::new();
    let url = maria.url().replace("secret-of-polyflake", SECRET);
    with_a_wrong_password(&url, "Access denied for user");
}

#[test]
fn nobody_answers() {
    // This host accepts connections but never answers.
    let silent = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = silent.local_addr().unwrap().port();
    for scheme in ["redis", "postgres", "mysql", "etcd"] {
        let url = format!("{scheme}://somebody:{SECRET}@127.0.0.1:{port}/0?ttl=3s");
        let url = if scheme == "etcd" { url.replace("/0", "") } else { url };
        // With no time to wait, the reason is usually not known yet.
        let says = ["gave no number", "no answer"];
        let why = |max_wait_ms: &str| {
            let (code, text) = why(&settings("orders", &[&url], &[max_wait_ms]));
            assert_eq!(code, ErrorCode::CounterUnavailable, "{text}");
            assert!(says.iter().any(|says| text.contains(says)), "{text}");
            assert!(text.contains(&format!(": {scheme}://127.0.0.1:{port}")), "{text}");
            text
        };
        why("max_wait_ms=0");
        while !why("max_wait_ms=1500").contains("no answer") {}
    }
}
