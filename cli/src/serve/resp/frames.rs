//! Splits the client's bytes into commands. A command is a list of strings: its head is read here, and each string by
//! `redis-protocol`, so no client can nest lists.

use std::ops::Range;

use redis_protocol::resp2::decode::decode_range;
use redis_protocol::resp2::types::RangeFrame;

/// More arguments than any command has.
const MOST_ARGUMENTS: usize = 64;
/// `*64` and the line break, with room to spare.
const LONGEST_HEAD: usize = 32;

/// Finds the first command in `input`: the positions of its words, and how many bytes it takes. `None` if it is
/// incomplete. If there are no words, it is not a command.
pub(super) fn command(
    input: &[u8],
    limit: usize,
    words: &mut Vec<Range<usize>>,
) -> Result<Option<usize>, String> {
    words.clear();
    let found = match input.first() {
        None => return Ok(None),
        Some(b'*') => list(input, words)?,
        Some(_) => inline(input, words)?,
    };
    match found {
        None if input.len() >= limit => Err(format!("a command has at most {limit} bytes")),
        Some(used) if used > limit => Err(format!("a command has at most {limit} bytes")),
        found => Ok(found),
    }
}

fn list(input: &[u8], words: &mut Vec<Range<usize>>) -> Result<Option<usize>, String> {
    let head = input.get(..LONGEST_HEAD).unwrap_or(input);
    let Some(end) = head.windows(2).position(|two| two == b"\r\n") else {
        return if head.len() < LONGEST_HEAD { Ok(None) } else { Err("invalid multibulk length".into()) };
    };
    let digits = head.get(1..end).and_then(|digits| std::str::from_utf8(digits).ok()).unwrap_or_default();
    let count: i64 = digits.parse().map_err(|_| "invalid multibulk length")?;
    let count = usize::try_from(count).unwrap_or(0);
    if count > MOST_ARGUMENTS {
        return Err(format!("a command has at most {MOST_ARGUMENTS} words"));
    }
    let mut at = end + 2;
    for _ in 0..count {
        let rest = input.get(at..).unwrap_or_default();
        match rest.first() {
            None => return Ok(None),
            Some(b'$') => {}
            Some(other) => return Err(format!("expected '$', got '{}'", other.escape_ascii())),
        }
        match decode_range(rest) {
            Ok(Some((RangeFrame::BulkString((from, to)), used))) => {
                words.push(at + from..at + to);
                at += used;
            }
            Ok(None) => return Ok(None),
            Ok(Some(_)) | Err(_) => return Err("invalid bulk length".into()),
        }
    }
    Ok(Some(at))
}

/// Parses a command as people type it.
fn inline(input: &[u8], words: &mut Vec<Range<usize>>) -> Result<Option<usize>, String> {
    let Some(end) = input.iter().position(|&byte| byte == b'\n') else { return Ok(None) };
    let line = input.get(..end).unwrap_or_default();
    let mut at = 0;
    for word in line.split(u8::is_ascii_whitespace) {
        if !word.is_empty() {
            words.push(at..at + word.len());
        }
        at += word.len() + 1;
    }
    if words.len() > MOST_ARGUMENTS {
        return Err(format!("a command has at most {MOST_ARGUMENTS} words"));
    }
    // If a browser was tricked into sending a request here, the request's body must not be executed.
    let first = words.first().and_then(|first| input.get(first.clone())).unwrap_or_default();
    if first.eq_ignore_ascii_case(b"post") || first.eq_ignore_ascii_case(b"host:") {
        return Err("this is not an HTTP server".into());
    }
    Ok(Some(end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(input: &[u8]) -> Result<Option<(Vec<String>, usize)>, String> {
        let mut words = Vec::new();
        let used = command(input, 1024, &mut words)?;
        let text = |range: &Range<usize>| String::from_utf8_lossy(&input[range.clone()]).into_owned();
        Ok(used.map(|used| (words.iter().map(text).collect(), used)))
    }

    fn of(words: &[&str], used: usize) -> (Vec<String>, usize) {
        (words.iter().map(ToString::to_string).collect(), used)
    }

    #[test]
    fn commands_and_parts_of_them() {
        let whole = b"*2\r\n$4\r\nINCR\r\n$3\r\na\rb\r\n*1";
        assert_eq!(read(whole).unwrap(), Some(of(&["INCR", "a\rb"], 23)));
        for end in 0..23 {
            assert_eq!(read(&whole[..end]).unwrap(), None, "{end}");
        }
        assert_eq!(read(b"  incr  orders\r\nrest").unwrap(), Some(of(&["incr", "orders"], 16)));
        assert_eq!(read(b"\r\n").unwrap(), Some(of(&[], 2)));
        assert_eq!(read(b"*0\r\nx").unwrap(), Some(of(&[], 4)));
        assert_eq!(read(b"*-1\r\n").unwrap(), Some(of(&[], 5)));
    }

    /// Bytes that resemble commands, though only a few are valid.
    #[test]
    fn anything_at_all() {
        const PIECES: [&[u8]; 14] = [
            b"*1\r\n", b"*2\r\n", b"$1\r\n", b"$3\r\n", b"*", b"$", b"-", b"1", b"9", b"\r\n", b"\n", b"a",
            b" ", b"\xff",
        ];
        let mut random = 1_u64;
        let mut commands = 0;
        for _ in 0..50_000 {
            let mut input = Vec::new();
            for _ in 0..12 {
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                input.extend_from_slice(PIECES[usize::try_from(random >> 33).unwrap() % PIECES.len()]);
            }
            let mut words = Vec::new();
            if let Ok(Some(used)) = command(&input, 1024, &mut words) {
                commands += words.len();
                assert!(used > 0 && used <= input.len());
                assert!(words.iter().all(|word| word.start <= word.end && word.end <= used));
            }
        }
        assert!(commands > 1_000, "{commands}");
    }

    #[test]
    fn what_is_none() {
        for wrong in [
            &b"*x\r\n"[..],
            b"*65\r\n",
            b"*99999999999999999999\r\n",
            b"*1111111111111111111111111111111111111111111",
            b"*1\r\n*1\r\n*1\r\n",
            b"*1\r\n:5\r\n",
            b"*1\r\n$-1\r\n",
            b"*1\r\n$x\r\n",
            b"POST / HTTP/1.1\r\n",
            b"Host: localhost\r\n",
        ] {
            assert!(read(wrong).is_err(), "{}", wrong.escape_ascii());
        }
        assert!(read(&[b'x'; 1024]).is_err());
        assert!(read(&vec![b'a'; 2000]).is_err());
        // A command that declares the greatest possible length.
        let mut long = b"*1\r\n$9223372036854775807\r\n".to_vec();
        assert!(read(&long).is_ok_and(|found| found.is_none()));
        long.resize(1024, b'x');
        assert!(read(&long).is_err());
    }
}
