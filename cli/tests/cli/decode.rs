use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

use polyflake::{Format, Layout, UnixTime};

use super::{ID, TIME, fails, has, json, polyflake, prints, prints_of, stderr, stdout};

const LINE: &str = "1541815603606036480 2022-06-28T16:07:40.105Z datacenter=11 worker=26 sequence=0\n";

#[test]
fn an_id_is_drawn() {
    let text = prints(&["decode", ID]);
    let bits = "0 00101010110010110100001000111110110001000 01011 11010 000000000000";
    has(&text, &[ID, "as twitter", bits, "timestamp", "bits 62-22  41", "367597485448", TIME, "ago"]);
    has(&text, &["datacenter", "21-17", "11", "worker", "16-12", "26", "sequence", "11-0", "node", "378"]);
    // The bits make up the ID.
    let bits: String = bits.chars().filter(|c| *c != ' ').collect();
    assert_eq!(u64::from_str_radix(&bits, 2).unwrap().to_string(), ID);
    let two = prints(&["decode", ID, "\"175928847299117063\",", "--layout", "discord"]);
    has(&two, &[ID, "as discord", "175928847299117063", "2016-04-30T11:18:25.796Z"]);
}

#[test]
fn colour_is_where_it_is_wanted() {
    let is_coloured = |arguments: &[&str], environment: &[(&str, &str)]| {
        let output = polyflake(arguments).envs(environment.iter().copied()).output().unwrap();
        assert!(output.status.success());
        stdout(&output).contains('\u{1b}')
    };
    // A pipe is not a terminal.
    assert!(!is_coloured(&["decode", ID], &[]));
    assert!(is_coloured(&["decode", ID, "--color", "always"], &[]));
    assert!(is_coloured(&["--color=always", "decode", ID], &[("NO_COLOR", "1")]));
    assert!(is_coloured(&["decode", ID], &[("CLICOLOR_FORCE", "1")]));
    assert!(!is_coloured(&["decode", ID], &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
    assert!(!is_coloured(&["decode", ID, "--color", "never"], &[("CLICOLOR_FORCE", "1")]));
    // Machine-readable output has no colour.
    assert!(!is_coloured(&["decode", ID, "--json", "--color", "always"], &[]));
    assert!(!is_coloured(&["decode", ID, "--lines", "--color", "always"], &[]));
}

#[test]
fn lines_and_json() {
    assert_eq!(prints(&["decode", "--lines", ID]), LINE);
    let line = prints(&["decode", "--json", ID]);
    assert_eq!(
        line,
        "{\"id\":\"1541815603606036480\",\"time\":\"2022-06-28T16:07:40.105Z\",\"timestamp_ms\":1656432460105,\
         \"ticks\":367597485448,\"node\":378,\"fields\":{\"datacenter\":11,\"worker\":26},\"sequence\":0}\n"
    );
    // Times after the year 9999 have no such form.
    let late = "timestamp:48|worker:4|sequence:12@0/1s";
    let id = Layout::parse(late).unwrap().compose(UnixTime::from_ms(253_402_300_800_000_i64), 5, 6).unwrap();
    let line = prints(&["decode", "--json", "--layout", late, &id.to_string()]);
    let found = json(&line);
    assert_eq!((found["time"].is_null(), found["timestamp_ms"].as_u64()), (true, Some(253_402_300_800_000)));
    has(&prints(&["decode", "-l", late, &id.to_string()]), &["Unix ms 253402300800000"]);
    let lines = prints(&["decode", "--lines", "-l", late, &id.to_string()]);
    assert_eq!(lines, format!("{id} 253402300800000 worker=5 sequence=6\n"));
    // A layout without node fields, whose ticks are a second long.
    assert!(prints(&["decode", "--json", "-l", "mastodon", "65536000"]).contains("\"fields\":{},"));
}

/// The fast code prints the same lines as the core.
#[test]
fn lines_are_what_the_core_says() {
    for preset in &polyflake::PRESETS {
        let layout = &preset.layout;
        let mut input = String::new();
        let mut expected = Vec::new();
        for n in 0..500_u64 {
            // Times in different seconds, in the same second, and earlier than the one before.
            let ms = layout.epoch_ms() + 7_777_777 + (n * 997) % 4_999 + (n / 100) * 86_399_999;
            let id =
                layout.compose(UnixTime::from_ms(ms), n % layout.nodes(), n % layout.ids_per_tick()).unwrap();
            let _ = writeln!(input, "{}", Format::Base62.write(id));
            expected.push(layout.decode(id).unwrap());
        }
        let lines = prints_of(&["decode", "--json", "--text", "base62", "--layout", preset.name], &input);
        assert_eq!(lines.lines().count(), expected.len());
        for (line, decoded) in lines.lines().zip(expected) {
            let found = json(line);
            assert_eq!(found["id"], decoded.id().to_string());
            assert_eq!(found["timestamp_ms"], decoded.timestamp_ms());
            let time: jiff::Timestamp = found["time"].as_str().unwrap().parse().unwrap();
            assert_eq!(u64::try_from(time.as_millisecond()).unwrap(), decoded.timestamp_ms(), "{line}");
            assert_eq!(found["ticks"], decoded.ticks());
            assert_eq!(found["node"], decoded.node());
            assert_eq!(found["sequence"], decoded.sequence());
            for (name, value) in decoded.fields() {
                assert_eq!(found["fields"][name], value);
            }
        }
    }
}

#[test]
fn standard_input_line_by_line() {
    assert_eq!(prints_of(&["decode"], &format!("{ID}\r\n\n  \"{ID}\",\n{ID}n")), LINE.repeat(3));
    assert_eq!(prints_of(&["decode", "-"], ID), LINE);
    assert_eq!(prints_of(&["decode"], ""), "");
    for format in Format::ALL {
        let text = format.write(ID.parse().unwrap());
        assert_eq!(prints_of(&["decode", "--text", format.name()], &text), LINE);
    }
}

#[test]
fn what_is_no_id_is_named_and_the_rest_goes_on() {
    let input = format!("id\n{ID}\n-1\n18446744073709551616\n9223372036854775808\n\u{1b}[2J\n{ID}\n");
    let output = polyflake(&["decode"]).write_stdin(input).output().unwrap();
    assert_eq!(output.status.code(), Some(15));
    assert_eq!(stdout(&output), LINE.repeat(2));
    let errors = stderr(&output);
    has(
        &errors,
        &[
            "polyflake: invalid_id: line 1: `i` at position 1",
            "invalid_id: line 3: `-` at position 1",
            "invalid_id: line 4: the decimal ID exceeds 64 bits",
            "invalid_id: line 5: ID 9223372036854775808 does not fit 63 bits",
            "invalid_id: line 6:",
        ],
    );
    assert!(!errors.contains('\u{1b}'), "{errors}");
    // A file that contains something else does not fill the screen.
    let output = polyflake(&["decode"]).write_stdin("x\n".repeat(1000)).output().unwrap();
    let errors = stderr(&output);
    assert_eq!(errors.lines().count(), 11, "{errors}");
    has(&errors, &["invalid_id: 990 more"]);
    let output = polyflake(&["decode"]).write_stdin(b"\xfe\xfd\n".to_vec()).output().unwrap();
    has(&stderr(&output), &["invalid_id: line 1: it is not UTF-8"]);

    for (arguments, parts) in [
        (&["decode", "x"][..], &["polyflake: invalid_id: `x` at position 1"][..]),
        (&["decode", "-1"], &["polyflake: invalid_id:"]),
        (&["decode", "1", "9223372036854775808", "--layout", "leaf", "--json"], &["invalid_id: ID 2: ID 92"]),
    ] {
        let output = polyflake(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(15), "{arguments:?}");
        has(&stderr(&output), parts);
    }
}

#[test]
fn a_column_of_csv() {
    let csv = format!("\u{feff}name,order id\n\"a, \"\"b\"\"\n\",{ID}\nx,\"{ID}\"\n");
    for column in ["order id", "2"] {
        assert_eq!(prints_of(&["decode", "--column", column], &csv), LINE.repeat(2));
    }
    assert_eq!(prints_of(&["decode", "--column", "1", "--no-header"], &format!("{ID},x\n")), LINE);
    let semicolons = format!("a;id\nx;{ID}\n");
    assert_eq!(prints_of(&["decode", "--column", "id", "--delimiter", ";"], &semicolons), LINE);
    let first_name = format!("\u{feff}id,x\n{ID},1\n");
    assert_eq!(prints_of(&["decode", "--column", "id"], &first_name), LINE);

    let output =
        polyflake(&["decode", "--column", "2"]).write_stdin(format!("a,b\n1\n1,x\n1,{ID}\n")).output();
    let output = output.unwrap();
    assert_eq!((output.status.code(), &*stdout(&output)), (Some(15), LINE));
    has(&stderr(&output), &["line 2: it has 1 columns", "line 3: `x` at position 1"]);
    for (arguments, part) in [
        (&["decode", "--column", "id"][..], "column is `id`; the first line has "),
        (&["decode", "--column", "0"], "column is `0`"),
        (&["decode", "--column", "id", "--no-header"], "takes a number from 1"),
        (&["decode", "--column", "1", "--delimiter", "::"], "delimiter"),
        (&["decode", "--column", "1", "--delimiter", "\""], "delimiter"),
        (&["decode", "--column", "1", "--delimiter", "\n"], "delimiter"),
    ] {
        has(&fails(arguments, 14), &["polyflake: invalid_option: ", part]);
    }
}

/// Returns the exit code, the output for an input, and the complaints.
fn decodes(arguments: &[&str], input: impl Into<Vec<u8>>) -> (i32, String, String) {
    let output = polyflake(&[&["decode"], arguments].concat()).write_stdin(input.into()).output().unwrap();
    (output.status.code().unwrap(), stdout(&output), stderr(&output))
}

#[test]
fn a_byte_order_mark_is_no_part_of_a_name_or_an_object() {
    let quoted = format!("\"\u{feff}id\",x\n{ID},1\n");
    assert_eq!(decodes(&["--column", "id"], &*quoted), (0, LINE.into(), String::new()));
    let object = format!("\u{feff}{{\"id\":\"\u{feff}{ID}\"}}\n");
    assert_eq!(decodes(&["--key", "id"], object.repeat(2)), (0, LINE.repeat(2), String::new()));
}

/// The output of `psql -At -F, ...`, for example, has no line of column names.
#[test]
fn a_first_line_whose_column_is_an_id_is_data() {
    for (column, rows) in [
        ("1", format!("{ID},a\n{ID},b\n{ID},c\n")),
        ("2", format!("a,{ID}\r\nb,{ID}\r\nc,{ID}")),
        ("1", format!("\"{ID}\",\"a\nb\"\n{ID}\n{ID},x,y\n")),
        ("1", format!("\u{feff}{ID},a\n{ID},b\n{ID},c\n")),
        ("2", format!("\u{feff}\"a\",{ID}\n\u{feff}b,{ID}\nc,\"\u{feff}{ID}\"\n")),
        // The first row contains a number that is also the column's number.
        ("2", format!("2,{ID}\n2,{ID}\n2,{ID}\n")),
    ] {
        assert_eq!(decodes(&["--column", column], &*rows), (0, LINE.repeat(3), String::new()), "{rows:?}");
    }
    let tabs = format!("x\t{ID}\ny\t{ID}\n");
    assert_eq!(prints_of(&["decode", "--column", "2", "--delimiter", "\t"], &tabs), LINE.repeat(2));
    // In any ID format.
    for format in Format::ALL {
        let text = format.write(ID.parse().unwrap());
        let rows = format!("{text},a\n{text},b\n");
        assert_eq!(prints_of(&["decode", "--column", "1", "--text", format.name()], &rows), LINE.repeat(2));
    }
    // `id` is also an ID in base 62, which has no `_`.
    for (first, lines) in [("id", 2), ("order_id", 1)] {
        let printed = prints_of(&["decode", "--column", "1", "--text", "base62"], &format!("{first}\nid\n"));
        assert_eq!(printed.lines().count(), lines, "{first}: {printed}");
    }
    // A file without rows decodes to nothing, although its columns are unknown.
    assert_eq!(decodes(&["--column", "1"], ""), (0, String::new(), String::new()));
    assert_eq!(decodes(&["--column", "1"], "\u{feff}"), (0, String::new(), String::new()));
}

/// Each value is shown as an ID or reported, unless it can only be a column name.
#[test]
fn a_first_line_is_never_lost() {
    for first in [
        "",
        "\"\"",
        "NULL",
        "null",
        "\\N",
        "1.54e18",
        "-1541815603606036480",
        "99999999999999999999",
        "9223372036854775808",
        "15418l5603606036480",
        "id2",
    ] {
        let (code, printed, said) = decodes(&["--column", "2"], format!("a,{first}\nb,{ID}\n"));
        assert_eq!((code, &*printed), (15, LINE), "{first}: {said}");
        assert_eq!(said.lines().count(), 1, "{first}: {said}");
        has(&said, &["polyflake: invalid_id: line 1: "]);
    }
    let (_, _, said) = decodes(&["--column", "1"], format!("id2\n{ID}\n"));
    has(&said, &["line 1: `i` at position 1", "if this line has names, give --column a name"]);
    // The solution if names contain digits or could be read as IDs.
    assert_eq!(prints_of(&["decode", "--column", "id2"], &format!("id2\n{ID}\n")), LINE);
    let base36 = Format::Base36.write(ID.parse().unwrap());
    assert_eq!(
        prints_of(&["decode", "--column", "id", "--text", "base36"], &format!("id\n{base36}\n")),
        LINE
    );
    // A number is a column's number, never its name, so here the first line does not count as a line of names.
    let (code, printed, said) = decodes(&["--column", "7"], format!("{ID},7\n{ID},8\n"));
    assert_eq!((code, &*printed), (14, ""), "{said}");
    has(&said, &["invalid_option: column is `7`; the first line has 2 columns"]);
    // A name that is a number is treated as an ID.
    let of_2024 = prints(&["decode", "--lines", "2024"]);
    assert_eq!(prints_of(&["decode", "--column", "1"], &format!("2024,2025\n{ID},1\n")), of_2024 + LINE);
}

/// An unclosed quote would swallow all later rows.
#[test]
fn rows_behind_an_open_quote_are_not_lost() {
    let open = format!("{ID},a\n{ID},\"b\n{ID},c\n{ID},d\n");
    let (code, printed, said) = decodes(&["--column", "1"], open);
    assert_eq!((code, printed), (1, LINE.repeat(2)), "{said}");
    has(
        &said,
        &["polyflake: io: standard input: the quote in the row that begins in line 2 is never closed"],
    );
    // A closed quote may contain anything.
    let (code, printed, said) = decodes(&["--column", "1"], format!("{ID},\"b\n,\"\"c\n\"\n{ID},\"\""));
    assert_eq!((code, printed, &*said), (0, LINE.repeat(2), ""));
}

/// Windows editors and spreadsheets write a byte order mark at the start of a file.
#[test]
fn a_byte_order_mark_is_no_part_of_an_id() {
    let marked = format!("\u{feff}{ID}");
    assert_eq!(prints(&["decode", "--lines", &marked]), LINE);
    has(&prints(&["decode", &marked]), &[ID, "as twitter"]);
    has(&prints(&["inspect", &marked]), &[ID, "as decimal"]);
    // At the start, and in places where files were joined.
    assert_eq!(prints_of(&["decode"], &format!("{marked}\r\n{marked}\n")), LINE.repeat(2));
    assert_eq!(prints_of(&["decode"], "\u{feff}"), "");
    assert_eq!(prints_of(&["decode"], "\u{feff}\r\n"), "");
    let object = format!("\u{feff}{{\"id\":\"{marked}\"}}\n{{\"id\":{ID}}}\n");
    assert_eq!(prints_of(&["decode", "--key", "id"], &object), LINE.repeat(2));
    for header in ["id,x", "\"id\",x", "x,id"] {
        let column = if header.starts_with('x') { format!("1,{ID}") } else { format!("{ID},1") };
        let rows = format!("\u{feff}{header}\n{column}\n");
        assert_eq!(prints_of(&["decode", "--column", "id"], &rows), LINE, "{header}");
    }
    let rows = format!("{marked},1\n");
    assert_eq!(prints_of(&["decode", "--column", "1", "--no-header"], &rows), LINE);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ids.txt");
    std::fs::write(&path, &marked).unwrap();
    assert_eq!(prints(&["decode", "--input", path.to_str().unwrap()]), LINE);
    assert_eq!(prints(&["decode", "--column", "1", "--input", path.to_str().unwrap()]), LINE);
    assert_eq!(prints_of(&["decode", "--column", "1"], &format!("{marked}\n{ID}\n")), LINE.repeat(2));
}

/// PowerShell's `>` writes UTF-16.
#[test]
fn utf_16_is_refused_by_its_name() {
    for arguments in [&[][..], &["--column", "1"], &["--column", "id"], &["--key", "id"]] {
        for mark in ["\u{feff}", ""] {
            let text = format!("{mark}id\r\n{ID}\r\n");
            let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
            let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
            for input in [little, big] {
                let (code, printed, said) = decodes(arguments, input);
                assert_eq!((code, &*printed), (1, ""), "{arguments:?}: {said}");
                has(&said, &["polyflake: io: standard input: it is UTF-16; it must be UTF-8"]);
            }
        }
    }
}

#[test]
fn a_key_of_json_lines() {
    let lines = format!(
        "{{\"a\":[1,{{\"id\":2}}],\"id\":\"{ID}\"}}\n\n{{\"id\":{ID},\"id2\":null}}\n{{\"\\u0069d\":\"{ID}\"}}\n"
    );
    assert_eq!(prints_of(&["decode", "--key", "id"], &lines), LINE.repeat(3));
    let deep = format!("{{\"user\":{{\"name\":\"x\",\"id\":{ID}}}}}");
    assert_eq!(prints_of(&["decode", "--key", "user.id"], &deep), LINE);
    let wrong = format!(
        "{{\"x\":1}}\n[1]\n{{\"id\":1.5}}\n{{\"id\":null}}\n{{\"id\":{ID}\n{{\"id\":\"x\"}}\n{{\"id\":1e30}}\n{{\"id\":{ID}}}\n"
    );
    let output = polyflake(&["decode", "--key", "id"]).write_stdin(wrong).output().unwrap();
    assert_eq!((output.status.code(), &*stdout(&output)), (Some(15), LINE));
    has(
        &stderr(&output),
        &[
            "line 1: it has no key `id`",
            "line 2: invalid type: sequence, expected an object",
            "line 3: the number has a fraction",
            "line 4: invalid type: null, expected an ID",
            "line 5: EOF while parsing",
            "line 6: `x` at position 1",
            "line 7: the number has a fraction",
        ],
    );
}

#[test]
fn a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ids.txt");
    std::fs::write(&path, format!("{ID}\n")).unwrap();
    assert_eq!(prints(&["decode", "--input", path.to_str().unwrap()]), LINE);
    has(&fails(&["decode", "--input", "/no/such/file"], 1), &["polyflake: io: /no/such/file: "]);
    has(&fails(&["decode", "--input", "/tmp"], 1), &["polyflake: io: /tmp: "]);
    has(&fails(&["decode", ID, "--input", "x"], 2), &["cannot be used with"]);
    has(&fails(&["decode", "--key", "x", "--column", "y"], 2), &["cannot be used with"]);
}

#[test]
fn a_closed_pipe_ends_it_quietly() {
    let mut child = Command::new(assert_cmd::cargo::cargo_bin!("polyflake"))
        .args(["decode", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut input = child.stdin.take().unwrap();
    // The command may have exited before everything was written.
    let _ = input.write_all(format!("{ID}\n").repeat(100_000).as_bytes());
    drop(input);
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), &*stderr(&output)), (Some(0), ""));
}

/// Users run `tail -f ids.txt | polyflake decode`.
#[test]
fn a_line_is_answered_before_the_next_is_there() {
    use std::io::{BufRead as _, BufReader};

    let mut child = Command::new(assert_cmd::cargo::cargo_bin!("polyflake"))
        .arg("decode")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    for _ in 0..3 {
        writeln!(input, "{ID}").unwrap();
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert_eq!(line, LINE);
    }
    drop(input);
    assert!(child.wait().unwrap().success());
}

/// The command keeps only one line of its input in memory.
#[cfg(target_os = "linux")]
#[test]
fn memory_is_bounded() {
    use std::io::Read as _;

    const LINES: usize = 1_000_000;
    for (arguments, line) in [
        (&["decode"][..], format!("{ID}\n")),
        (&["decode", "--column", "1", "--no-header"], format!("{ID},x\n")),
        (&["decode", "--key", "id"], format!("{{\"id\":{ID}}}\n")),
    ] {
        let mut child = Command::new(assert_cmd::cargo::cargo_bin!("polyflake"))
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        let mut output = child.stdout.take().unwrap();
        let reader = std::thread::spawn(move || {
            let (mut piece, mut read) = (vec![0; 1 << 16], 0);
            loop {
                match output.read(&mut piece).unwrap() {
                    0 => return read,
                    more => read += more,
                }
            }
        });
        let block = line.repeat(1000);
        for _ in 0..LINES / 1000 {
            input.write_all(block.as_bytes()).unwrap();
        }
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        let most: u64 = most.trim().trim_end_matches(" kB").parse().unwrap();
        drop(input);
        assert!(child.wait().unwrap().success());
        assert_eq!(reader.join().unwrap(), LINES * LINE.len());
        assert!(most < 64 * 1024, "{arguments:?}: {most} KB");
    }
}

/// JavaScript, floating-point columns and spreadsheets lose the last digits of IDs.
#[test]
fn ids_that_were_rounded_are_told() {
    let first: u64 = ID.parse().unwrap();
    // Each ID is in a different millisecond and has an arbitrary sequence number.
    let ids: Vec<u64> = (0..50_u64).map(|n| first + (n << 22) + n * 997 % 4096).collect();
    // A column whose sequence numbers are all zero has lost nothing.
    let zeros: Vec<u64> = (0..50_u64).map(|n| first + (n << 22)).collect();
    let text =
        |ids: &[u64], of: &dyn Fn(u64) -> String| ids.iter().map(|&id| of(id) + "\n").collect::<String>();
    let said = |input: String| {
        let output = polyflake(&["decode"]).write_stdin(input).output().unwrap();
        assert!(output.status.success());
        assert_eq!(stdout(&output).lines().count(), 50);
        stderr(&output)
    };
    assert_eq!(said(text(&ids, &|id| id.to_string())), "");
    assert_eq!(said(text(&zeros, &|id| id.to_string())), "");
    #[expect(clippy::cast_precision_loss, reason = "as a float does")]
    let float = |id: u64| id as f64;
    let exact = |id: u64| format!("{:.0}", (float(id) / 256.0).trunc() * 256.0);
    let sheet = |id: u64| (id / 10_000 * 10_000).to_string();
    for lossy in [&|id| float(id).to_string() as String, &exact as &dyn Fn(u64) -> String, &sheet] {
        let told = said(text(&ids, lossy));
        has(&told, &["polyflake: rounded: 50 of 50 IDs look rounded"]);
    }
}

/// An endless line is refused rather than kept in memory.
#[test]
fn a_line_has_a_longest() {
    let endless = "1".repeat(17 << 20);
    for (arguments, input) in [
        (&["decode"][..], endless.clone()),
        (&["decode", "--key", "id"], format!("{{\"x\":\"{endless}")),
        (&["decode", "--column", "1"], format!("id\n\"{endless}")),
    ] {
        let output = polyflake(arguments).write_stdin(input).output().unwrap();
        assert_eq!((output.status.code(), &*stdout(&output)), (Some(1), ""), "{arguments:?}");
        has(&stderr(&output), &["polyflake: io: standard input", "has more than 16 MiB"]);
    }
}
