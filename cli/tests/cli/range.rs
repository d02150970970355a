use polyflake::{Layout, UnixTime};

use super::{fails, has, json, prints};

#[test]
fn a_day_is_a_between() {
    let layout = Layout::default();
    let first = layout.min_id(UnixTime::from_ms(1_767_225_600_000_i64)).unwrap();
    let last = layout.max_id(UnixTime::from_ms(1_767_311_999_999_i64)).unwrap();
    let sql = format!("id BETWEEN {first} AND {last}");
    let day = ["range", "--from", "2026-01-01", "--to", "2026-01-01"];
    has(
        &prints(&day),
        &[
            &first.to_string(),
            "2026-01-01T00:00:00.000Z",
            &last.to_string(),
            "2026-01-01T23:59:59.999Z",
            &sql,
        ],
    );
    assert_eq!(prints(&[&day[..], &["--sql"]].concat()), format!("{sql}\n"));
    let column = prints(&[&day[..], &["--sql", "--column", "o.id"]].concat());
    assert_eq!(column, format!("o.{sql}\n"));
    let found = json(&prints(&[&day[..], &["--json"]].concat()));
    assert_eq!((&found["first"]["id"], &found["sql"]), (&first.to_string().into(), &sql.into()));
    assert_eq!(found["last"]["time"], "2026-01-01T23:59:59.999Z");
}

#[test]
fn times_as_people_write_them() {
    let sql = |from: &str, to: &str, tz: &[&str]| {
        prints(&[&["range", "--sql", "--layout", "leaf", "--from", from, "--to", to][..], tz].concat())
    };
    let day = sql("2026-01-01", "2026-01-01", &[]);
    for (from, to) in [
        ("1767225600000", "1767311999999"),
        ("@1767225600", "2026-01-01T23:59:59.999Z"),
        ("2026-01-01T01:00:00+01:00", "2026-01-01 23:59:59.999"),
    ] {
        assert_eq!(sql(from, to, &[]), day, "{from} {to}");
    }
    let berlin = sql("2026-01-01T01:00", "2026-01-02T00:59:59.999", &["--tz", "Europe/Berlin"]);
    assert_eq!(berlin, day);
    sql("2010-12-01", "2026-01-01", &["--tz", "local"]);
    for from in ["yesterday", "2 hours ago", "-3d", "1 month ago"] {
        prints(&["range", "--from", from]);
        prints(&["range", "--from", from, "--to", "in 2 days"]);
    }
}

#[test]
fn what_cannot_be_is_named() {
    for (arguments, code, parts) in [
        (&["--from", "soon"][..], 14, &["invalid_option: from is `soon`; it takes a time such as"][..]),
        (&["--from", "2026-01-02", "--to", "2026-01-01"], 14, &["invalid_option: from is after to"]),
        (&["--from", "2009-01-01"], 16, &["time_out_of_range:", "1230768000000"]),
        (&["--from", "now", "--to", "2090-01-01"], 16, &["time_out_of_range:"]),
        (&["--from", "now", "--layout", "seata"], 11, &["invalid_layout:", "worker"]),
        (&["--from", "now", "--tz", "Mars/Olympus"], 14, &["invalid_option: tz:"]),
        (&["--to", "now"], 2, &["--from"]),
    ] {
        has(&fails(&[&["range"], arguments].concat(), code), parts);
    }
}
