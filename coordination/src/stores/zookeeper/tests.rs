//! Tests the wire format against bytes that a server accepted and sent.

use super::client::hello;
use super::jute::{Access, Answer, Op, Reader, Stat, Writer, read_multi, write_multi};
use super::records::set;

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<_> = hex.bytes().filter(|it| !it.is_ascii_whitespace()).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

/// Returns the written bytes as a frame that contains nothing else.
fn written(write: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut it = Writer::default();
    write(&mut it);
    it.frame(&[])[4..].into()
}

const STAT: &str = "0000000000000102 0000000000000305 0000018bcfe56800 0000018bcfe568ff 00000007 00000000 \
                    00000000 0000000000000000 00000001 00000003 0000000000000102";

fn stat() -> Stat {
    Stat { mtime_ms: 1_700_000_000_255, version: 7, children: 3 }
}

#[test]
fn a_frame_has_its_length_first() {
    let mut body = Writer::default();
    body.bool(true).long(-2);
    assert_eq!(body.frame(&[5, 11]), bytes("00000011 00000005 0000000b 01 fffffffffffffffe"));
}

#[test]
fn a_session_begins_with_what_was_seen_so_far() {
    let hello = |zxid| hello(zxid).frame(&[]);
    let rest = "00009c40 0000000000000000 00000010 00000000000000000000000000000000 00";
    assert_eq!(hello(0), bytes(&format!("0000002d 00000000 0000000000000000 {rest}")));
    assert_eq!(hello((5 << 32) + 0x102), bytes(&format!("0000002d 00000000 0000000500000102 {rest}")));
}

#[test]
fn requests() {
    let path = "/a".to_owned();
    for (op, code, hex) in [
        (
            Op::Create(path.clone(), "xy".into(), Access::Everyone),
            1,
            "00000002 2f61 00000002 7879 00000001 0000001f 00000005 776f726c64 00000006 616e796f6e65 00000000",
        ),
        (
            Op::Create(path.clone(), String::new(), Access::Creator),
            1,
            "00000002 2f61 00000000 00000001 0000001f 00000004 61757468 00000000 00000000",
        ),
        (Op::Delete(path.clone(), None), 2, "00000002 2f61 ffffffff"),
        (Op::Delete(path.clone(), Some(3)), 2, "00000002 2f61 00000003"),
        (Op::Set(path.clone(), "x".into(), Some(3)), 5, "00000002 2f61 00000001 78 00000003"),
        (Op::Set(path.clone(), "x".into(), None), 5, "00000002 2f61 00000001 78 ffffffff"),
        (Op::Check(path.clone(), 9), 13, "00000002 2f61 00000009"),
        (Op::Get(path.clone()), 4, "00000002 2f61 00"),
        (Op::Children(path), 8, "00000002 2f61 00"),
    ] {
        assert_eq!((op.code(), written(|to| op.write(to))), (code, bytes(hex)), "{op:?}");
    }
}

#[test]
fn answers() {
    let path = || "/a".to_owned();
    for (op, hex, answer) in [
        (Op::Create(path(), String::new(), Access::Everyone), "00000002 2f61".into(), Answer::Nothing),
        (Op::Set(path(), String::new(), None), STAT.into(), Answer::Stat(stat())),
        (Op::Get(path()), format!("00000002 7879 {STAT}"), Answer::Data(b"xy".into(), stat())),
        // A length of -1 means no data.
        (Op::Get(path()), format!("ffffffff {STAT}"), Answer::Data(Vec::new(), stat())),
        (
            Op::Children(path()),
            "00000002 00000001 31 00000002 3233".into(),
            Answer::Names(vec!["1".into(), "23".into()]),
        ),
        (Op::Delete(path(), None), String::new(), Answer::Nothing),
    ] {
        let all = bytes(&hex);
        assert_eq!(op.read(&mut Reader(&all)), Some(answer), "{op:?}");
        // Reading an incomplete answer fails without panicking.
        for end in 0..all.len() {
            assert_eq!(op.read(&mut Reader(&all[..end])), None, "{op:?} {end}");
        }
    }
    let path = path();
    for hex in ["00000001 ffffffff 31", "7fffffff 00000001 31", "00000001 00000001 ff"] {
        let said = Op::Children(path.clone()).read(&mut Reader(&bytes(hex)));
        assert!(said.is_none() || said == Some(Answer::Names(vec![String::new()])), "{hex}: {said:?}");
    }
}

#[test]
fn transactions() {
    let ops = [Op::Check("/a".into(), 1), Op::Set("/b".into(), "x".into(), Some(2))];
    assert_eq!(
        written(|to| write_multi(&ops, to)),
        bytes(
            "0000000d 00 ffffffff 00000002 2f61 00000001 \
             00000005 00 ffffffff 00000002 2f62 00000001 78 00000002 ffffffff 01 ffffffff"
        )
    );
    let read = |hex: &str| read_multi(&ops, &mut Reader(&bytes(hex)));
    assert_eq!(
        read(&format!("0000000d 00 00000000 00000005 00 00000000 {STAT} ffffffff 01 ffffffff")),
        Some(Ok(vec![Answer::Nothing, Answer::Stat(stat())]))
    );
    // The first request found another version, and the second was not tried.
    let failed = "ffffffff 00 ffffff99 ffffff99 ffffffff 00 fffffffe fffffffe ffffffff 01 ffffffff";
    assert_eq!(read(failed), Some(Err(-103)));
    // The second znode does not exist.
    let failed = "ffffffff 00 00000000 00000000 ffffffff 00 ffffff9b ffffff9b ffffffff 01 ffffffff";
    assert_eq!(read(failed), Some(Err(-101)));
    for other in ["", "00000002 00 00000000", "ffffffff 01 ffffffff", &failed[..40]] {
        assert_eq!(read(other), None, "{other}");
    }
}

#[test]
fn no_znode_is_left_with_the_version_that_stands_for_any() {
    let op = |version| Op::Set("/a".into(), "x".into(), version);
    for version in [0, 1, i32::MAX, i32::MIN, -3] {
        assert_eq!(set("/a", "x", version), [op(Some(version))]);
    }
    assert_eq!(set("/a", "x", -2), [op(Some(-2)), op(None)]);
}
