use polyflake::PRESETS;

use super::{ID, TIME, fails, has, json, prints};

#[test]
fn every_layout_that_fits_the_likeliest_first() {
    let text = prints(&["inspect", ID]);
    has(&text, &[ID, "as decimal it fits", &format!("of {} layouts", PRESETS.len()), "twitter", TIME]);
    has(
        &text,
        &["datacenter 11, worker 26, sequence 0", "years ago, 11.6 years after its epoch", "unlikely"],
    );
    let found = json(&prints(&["inspect", "--json", ID]));
    let fits = found["readings"][0]["fits"].as_array().unwrap();
    let rank =
        |name: &str| ["plausible", "early", "future", "too_old"].iter().position(|it| *it == name).unwrap();
    let ranks: Vec<_> = fits.iter().map(|fit| rank(fit["likelihood"].as_str().unwrap())).collect();
    assert!(ranks.is_sorted() && ranks.contains(&2), "{ranks:?}");
    assert_eq!(found["readings"][0]["id"], ID);
    assert_eq!((&fits[0]["layout"], &fits[0]["time"]), (&"twitter".into(), &TIME.into()));
    assert_eq!(found["others"].as_array().unwrap().len(), 0);
}

#[test]
fn formats_are_tried_the_likeliest_first() {
    let first = |text: &str| {
        let found = json(&prints(&["inspect", "--json", text]));
        let reading = &found["readings"][0];
        let fit = reading["fits"][0]["layout"].as_str().unwrap_or("none").to_owned();
        (reading["format"].as_str().unwrap().to_owned(), reading["id"].as_str().unwrap().to_owned(), fit)
    };
    let tsid = ("base32".to_owned(), "38358284406638839".to_owned(), "tsid".to_owned());
    assert_eq!(first("01226N0640J7Q"), tsid);
    assert_eq!(first("0x1565a11f622f5000").0, "hex");
    assert_eq!(first("\"1541815603606036480n\",").1, ID);
    // The output includes the user's own layout.
    let own = "timestamp:29|worker:21|sequence:13@1474300800000/1s";
    let found = json(&prints(&["inspect", "--json", "--layout", own, "180363646902239241"]));
    let fits = found["readings"][0]["fits"].as_array().unwrap();
    let fit = fits.iter().find(|fit| fit["layout"] == own).unwrap();
    assert_eq!((&fit["time"], &fit["fields"]["worker"]), (&"2017-01-19T04:15:46.000Z".into(), &4.into()));
}

#[test]
fn texts_of_bwmarrins_snowflake_are_found() {
    for (text, format) in [("bk3pbd7tbxeyy", "bwmarrin-base32"), ("4zzv4rZaYpj", "bwmarrin-base58")] {
        let found = json(&prints(&["inspect", "--json", text]));
        let reading = found["readings"].as_array().unwrap().iter().find(|it| it["format"] == format).unwrap();
        assert_eq!((&reading["id"], &reading["fits"][0]["time"]), (&ID.into(), &TIME.into()));
        has(&prints(&["inspect", text]), &[&format!("as {format} {ID}"), TIME]);
    }
}

#[test]
fn what_is_no_snowflake_says_what_it_holds() {
    for (text, kind, time) in [
        ("919108f7-52d1-4320-9bac-f847db4148a8", "UUID version 4", None),
        ("017F22E2-79B0-7CC3-98C4-DC0C0C07398F", "UUID version 7", Some("2022-02-22T19:22:22.000Z")),
        ("01ARZ3NDEKTSV4RRFFQ69G5FAV", "ULID", Some("2016-07-30T23:54:10.259Z")),
        ("507f1f77bcf86cd799439011", "ObjectId of MongoDB", Some("2012-10-17T21:13:27.000Z")),
        ("0ujtsYcgvSTl8PAuAdqWYSMnLOv", "KSUID", Some("2017-10-10T04:00:47.000Z")),
    ] {
        let found = json(&prints(&["inspect", "--json", text]));
        let other = &found["others"][0];
        assert_eq!((other["kind"].as_str(), other["time"].as_str()), (Some(kind), time), "{text}");
        has(&prints(&["inspect", text]), &[text, kind, time.unwrap_or("random bits")]);
    }
    // Several IDs at once.
    assert_eq!(prints(&["inspect", "--json", ID, "01ARZ3NDEKTSV4RRFFQ69G5FAV"]).lines().count(), 2);
}

#[test]
fn what_is_nothing_is_3() {
    let errors = fails(&["inspect", "no id!"], 3);
    has(&errors, &["polyflake: unknown: `no id!` is not a known kind of ID", "decimal", "base62"]);
    for arguments in [&["inspect", "no id!", "--json", ID][..], &["inspect", ID, "no id!"]] {
        let output = super::polyflake(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(3));
        assert!(super::stdout(&output).contains(ID));
        has(&super::stderr(&output), &["`no id!`"]);
    }
    // A word can be read as digits, but not as a time.
    let output = super::polyflake(&["inspect", "hello"]).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    has(&super::stdout(&output), &["as base36", "unlikely"]);
    has(&super::stderr(&output), &["polyflake: unknown: `hello` is probably not an ID"]);
    has(&fails(&["inspect"], 2), &["<ID>"]);
    has(&fails(&["inspect", "1", "--layout", "nope"], 12), &["unknown_layout"]);
}

#[test]
fn ids_whose_epoch_is_that_of_unix() {
    let ms = 1_767_225_600_000_u64;
    let id = (ms << 22 | 42 << 12 | 7).to_string();
    let found = json(&prints(&["inspect", "--json", &id]));
    let fits = found["readings"][0]["fits"].as_array().unwrap();
    let fit = fits.iter().find(|fit| fit["layout"] == "clickhouse").unwrap();
    assert_eq!(fit["likelihood"], "plausible");
    assert_eq!((&fit["time"], &fit["fields"]["machine"]), (&"2026-01-01T00:00:00.000Z".into(), &42.into()));
    assert_eq!(fit["sequence"], 7);
    has(&prints(&["inspect", &id]), &["clickhouse", "machine 42, sequence 7", "snowflake-id"]);
    // A Snowflake is not mistaken for another kind of ID.
    let found = json(&prints(&["inspect", "--json", ID]));
    let fits = found["readings"][0]["fits"].as_array().unwrap();
    let fit = fits.iter().find(|fit| fit["layout"] == "clickhouse").unwrap();
    assert_eq!(fit["likelihood"], "too_old");
}

/// The zone applies wherever a time is printed.
#[test]
fn a_zone() {
    let berlin = "2022-06-28T18:07:40.105+02:00";
    for arguments in [
        &["inspect", ID][..],
        &["inspect", ID, "--json"],
        &["decode", ID],
        &["decode", ID, "--json"],
        &["decode", ID, "--lines"],
        &["range", "--from", TIME, "--to", TIME],
        &["range", "--from", "2022-06-28 18:07:40.105", "--to", TIME, "--json"],
    ] {
        let said = prints(&[arguments, &["--tz", "Europe/Berlin"]].concat());
        assert!(said.contains(berlin) && !said.contains(TIME), "{arguments:?}: {said}");
    }
    let said = prints(&["inspect", "017F22E2-79B0-7CC3-98C4-DC0C0C07398F", "--tz", "Asia/Kolkata"]);
    has(&said, &["2022-02-23T00:52:22.000+05:30"]);
    has(&prints(&["layout", "js-safe", "--tz", "Asia/Kolkata"]), &["from 2025-01-01T05:30:00.000+05:30"]);
    has(
        &prints(&["layout", "js-safe", "--tz", "Asia/Kolkata", "--json"]),
        &["\"2025-01-01T05:30:00.000+05:30\""],
    );
    let ends = |zone| {
        prints(&["layouts", "--tz", zone, "--json"])
            .lines()
            .map(|it| json(it)["ends_at"].clone())
            .collect::<Vec<_>>()
    };
    assert_ne!(ends("Asia/Kolkata"), ends("UTC"));
    has(&fails(&["decode", ID, "--tz", "Mars"], 14), &["invalid_option: tz: ", "Mars", "Europe/Berlin"]);
}
