use std::fmt::Write as _;

use super::{ID, fails, has, polyflake, prints, prints_of, stderr, stdout};

const OLD: &str = "pfk_05tGsbz35qmkGBZiVPCD6A7";
const NEW: &str = "pfk_10kvEGTqNtUTXFUlMnM4wIa";
/// `ID` encoded with each of the keys and the prefix `order`.
const OLD_TEXT: &str = "order_042HT4sjr6xoF6lBGELuh3X";
const NEW_TEXT: &str = "order_15ShV20Bxc6UJvKSQbDvo0J";

/// Creates a folder with a file of keys, and returns both paths.
fn keys(keys: &[&str]) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys");
    std::fs::write(&path, keys.join("\n") + "\n").unwrap();
    #[cfg(unix)]
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let path = path.to_str().unwrap().to_owned();
    (folder, path)
}

fn public<'a>(what: &'a str, keys: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["public", what, "--keys", keys, "--prefix", "order"], more].concat()
}

#[test]
fn ids_become_texts_and_texts_become_ids() {
    let (_folder, keys) = keys(&[NEW, OLD]);
    let of = |what, more: &[&str]| prints(&public(what, &keys, more));
    assert_eq!(of("encode", &[ID, ID]), format!("{NEW_TEXT}\n{NEW_TEXT}\n"));
    assert_eq!(of("encode", &["--text", "base62", "1ptWyK4WgZU"]), format!("{NEW_TEXT}\n"));
    assert_eq!(of("decode", &[NEW_TEXT, OLD_TEXT]), format!("{ID}\n{ID}\n"));
    assert_eq!(of("decode", &["--text", "base62", OLD_TEXT]), "1ptWyK4WgZU\n");
    assert_eq!(of("rotate", &[NEW_TEXT, OLD_TEXT]), format!("{NEW_TEXT}\n{NEW_TEXT}\n"));
    let input = format!("{ID}\r\n\n \"{ID}\",\n");
    assert_eq!(prints_of(&public("encode", &keys, &[]), &input), format!("{NEW_TEXT}\n{NEW_TEXT}\n"));
    assert_eq!(prints_of(&public("decode", &keys, &["-"]), OLD_TEXT), format!("{ID}\n"));
    // Without a prefix, and the largest ID.
    let max = u64::MAX.to_string();
    let text = prints(&["public", "encode", "--keys", &keys, &max]);
    assert_eq!(text.trim_end().len(), 23);
    assert_eq!(prints(&["public", "decode", "--keys", &keys, text.trim_end()]), format!("{max}\n"));
}

#[test]
fn keys_come_from_the_environment_too() {
    let run = |keys: &str| {
        let output = polyflake(&["public", "encode", "-p", "order", ID])
            .env("POLYFLAKE_PUBLIC_KEYS", keys)
            .output()
            .unwrap();
        (output.status.code(), stdout(&output) + &stderr(&output))
    };
    assert_eq!(run(&format!("{OLD},{NEW}")), (Some(0), format!("{OLD_TEXT}\n")));
    has(&run("").1, &["invalid_option: keys is empty; it takes 1 to 16 keys"]);
    has(
        &fails(&["public", "encode", ID], 2),
        &["usage: no keys are given", "--keys", "POLYFLAKE_PUBLIC_KEYS"],
    );
    has(&fails(&["public", "encode", "--keys", "/none/keys", ID], 1), &["polyflake: io: /none/keys: "]);
}

#[test]
fn a_column_of_csv() {
    let (folder, keys) = keys(&[NEW, OLD]);
    let path = folder.path().join("orders.csv");
    let rows = format!("name,id,note\n\"a,b\",{ID},\"say \"\"x\"\"\"\nc,,none\nd,NULL,\n");
    std::fs::write(&path, &rows).unwrap();
    let path = path.to_str().unwrap();
    let encoded = rows.replace(ID, NEW_TEXT);
    assert_eq!(prints(&public("encode", &keys, &["--column", "id", "-i", path])), encoded);
    assert_eq!(prints_of(&public("encode", &keys, &["--column", "2"]), &rows), encoded);
    assert_eq!(prints_of(&public("decode", &keys, &["--column", "id"]), &encoded), rows);
    assert_eq!(
        prints_of(&public("rotate", &keys, &["--column", "id"]), &rows.replace(ID, OLD_TEXT)),
        encoded
    );
    let rows = format!("{ID};1\n{ID};2;3\n");
    let column = &["--column", "1", "--no-header", "--delimiter", ";"];
    assert_eq!(prints_of(&public("encode", &keys, column), &rows), rows.replace(ID, NEW_TEXT));
}

#[test]
fn many_rows_come_back() {
    let (_folder, keys) = keys(&[OLD]);
    let rows = (0..20_000_u64).fold("id,n\n".to_owned(), |mut rows, n| {
        let _ = writeln!(rows, "{},{n}", n * 461_168_601_842_739);
        rows
    });
    let encoded = prints_of(&public("encode", &keys, &["--column", "id"]), &rows);
    assert!(prints_of(&public("decode", &keys, &["--column", "id"]), &encoded) == rows);
}

#[test]
fn what_cannot_be_turned_is_named_and_left_out() {
    let (_folder, keys) = keys(&[NEW]);
    let of = |what, more: &[&str], input: &str| {
        let output = polyflake(&public(what, &keys, more)).write_stdin(input).output().unwrap();
        assert_eq!(output.status.code(), Some(15));
        (stdout(&output), stderr(&output))
    };
    let (printed, errors) =
        of("decode", &[], &format!("{OLD_TEXT}\nuser_{}\n{NEW_TEXT}\n{ID}\n", &NEW_TEXT[6..]));
    assert_eq!(printed, format!("{ID}\n"));
    has(
        &errors,
        &[
            "invalid_id: line 1: the string was encoded with key 0,",
            "line 2: the string's prefix is `user`",
            "line 4: the string does not",
        ],
    );
    let (printed, errors) = of("encode", &["--column", "id"], &format!("id,n\n{ID},1\n{ID}00,2\n{ID}\n"));
    assert_eq!(printed, format!("id,n\n{NEW_TEXT},1\n{NEW_TEXT}\n"));
    has(&errors, &["invalid_id: line 3: a decimal ID has at most 20 characters"]);
    let (printed, errors) = of("encode", &["--column", "1"], "1.5,n\n7,1\n");
    assert_eq!(printed.lines().count(), 1);
    has(&errors, &["line 1: `.` at position 2", "if this line has names, give --column a name"]);
    has(&of("decode", &["x"], "").1, &["invalid_id: public ID 1: the string does not begin with `order_`"]);
}

#[test]
fn keys_are_made_with_numbers_that_are_free() {
    let key = prints(&["public", "key"]);
    assert!(key.starts_with("pfk_0") && key.len() == 28 && key != prints(&["public", "key"]), "{key}");
    assert!(prints(&["public", "key", "--number", "61"]).starts_with("pfk_z"));
    has(
        &fails(&["public", "key", "--number", "62"], 14),
        &["number is 62; it takes a whole number from 0 to 61"],
    );
    has(&fails(&["public", "key", "--number", "-1"], 14), &["number is -1"]);
    for (there, next) in [(&[OLD][..], "pfk_1"), (&[NEW, OLD], "pfk_2"), (&[OLD, NEW], "pfk_2")] {
        let (_folder, keys) = keys(there);
        let key = prints(&["public", "key", "--keys", &keys]);
        assert!(key.starts_with(next), "{there:?}: {key}");
    }
    let (_folder, last) = keys(&[&OLD.replace("pfk_0", "pfk_z"), &NEW.replace("pfk_1", "pfk_0")]);
    assert!(prints(&["public", "key", "--keys", &last]).starts_with("pfk_1"));
}

#[test]
fn no_message_shows_a_key() {
    let (_folder, path) = keys(&[&NEW.replace('w', "-")]);
    let open = keys(&[NEW]);
    for (arguments, code) in [
        (&["public", "encode", "--keys", NEW, ID][..], 2),
        (&["public", "encode", "--key", NEW, ID], 2),
        (&["public", NEW], 2),
        (&["public", "encode", "--keys", &open.1, NEW], 15),
        (&["public", "decode", "--keys", &open.1, NEW], 15),
        (&["public", "decode", "--keys", &open.1, "-p", NEW, ID], 14),
        (&["public", "encode", "--keys", &open.1, "--text", NEW, ID], 14),
        (&["public", "encode", "--keys", &open.1, "--column", NEW], 14),
        (&["public", "encode", "--keys", &path, ID], 14),
        (&["public", "key", "--number", NEW], 14),
        (&["decode", NEW], 15),
    ] {
        let errors = fails(arguments, code);
        for part in NEW.as_bytes()[5..].windows(4) {
            assert!(!errors.contains(std::str::from_utf8(part).unwrap()), "{arguments:?}: {errors}");
        }
    }
}

#[cfg(unix)]
#[test]
fn a_file_that_others_can_read_is_named() {
    let (_folder, keys) = keys(&[NEW]);
    std::fs::set_permissions(&keys, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    let output = polyflake(&public("encode", &keys, &[ID])).output().unwrap();
    assert_eq!(stdout(&output), format!("{NEW_TEXT}\n"));
    has(&stderr(&output), &["polyflake: open: other users can read ", &keys, "chmod o-r"]);
}
