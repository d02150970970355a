//! Replies in both versions of the protocol.

use bytes::BytesMut;
use redis_protocol::{resp2, resp3};

use crate::reading::shown;

/// The version that a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    Two,
    Three,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reply {
    Simple(&'static str),
    Error(String),
    Number(u64),
    Signed(i64),
    Text(String),
    Bytes(Vec<u8>),
    Null,
    List(Vec<Reply>),
    Map(Vec<(&'static str, Reply)>),
}

impl Reply {
    /// The first word is the error's code, as in Redis.
    pub(super) fn error(kind: &str, message: &str) -> Self {
        Self::Error(format!("{kind} {}", shown(message)))
    }

    pub(super) const fn ok() -> Self {
        Self::Simple("OK")
    }

    pub(super) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    pub(super) fn write(&self, version: Version, out: &mut BytesMut) {
        match self {
            // The same in both versions, and the most common reply.
            Self::Number(number) if i64::try_from(*number).is_ok() => head(b':', *number, out),
            // Clients read 63-bit integers. Version 3 has big numbers, but redis-cli exits when it receives
            // one, and other clients return them as a different type.
            Self::Number(number) => Self::text(number.to_string()).write(version, out),
            Self::List(items) => {
                head(b'*', items.len() as u64, out);
                for item in items {
                    item.write(version, out);
                }
            }
            Self::Map(pairs) => {
                match version {
                    Version::Two => head(b'*', 2 * pairs.len() as u64, out),
                    Version::Three => head(b'%', pairs.len() as u64, out),
                }
                for (name, value) in pairs {
                    Self::text(*name).write(version, out);
                    value.write(version, out);
                }
            }
            _ => match version {
                Version::Two => self.write_2(out),
                Version::Three => self.write_3(out),
            },
        }
    }

    fn write_2(&self, out: &mut BytesMut) {
        use resp2::types::BorrowedFrame as Frame;

        let frame = match self {
            Self::Simple(text) => Frame::SimpleString(text.as_bytes()),
            Self::Error(text) => Frame::Error(text),
            Self::Signed(number) => Frame::Integer(*number),
            Self::Text(text) => Frame::BulkString(text.as_bytes()),
            Self::Bytes(bytes) => Frame::BulkString(bytes),
            Self::Null | Self::Number(_) | Self::List(_) | Self::Map(_) => Frame::Null,
        };
        // This allocates the space that it needs.
        let _ = resp2::encode::extend_encode_borrowed(out, &frame, false);
    }

    fn write_3(&self, out: &mut BytesMut) {
        use resp3::types::BorrowedFrame as Frame;

        let attributes = None;
        let frame = match self {
            Self::Simple(text) => Frame::SimpleString { data: text.as_bytes(), attributes },
            Self::Error(text) => Frame::SimpleError { data: text, attributes },
            Self::Signed(number) => Frame::Number { data: *number, attributes },
            Self::Text(text) => Frame::BlobString { data: text.as_bytes(), attributes },
            Self::Bytes(data) => Frame::BlobString { data, attributes },
            Self::Null | Self::Number(_) | Self::List(_) | Self::Map(_) => Frame::Null,
        };
        let _ = resp3::encode::complete::extend_encode_borrowed(out, &frame, false);
    }
}

/// A number, or the length of a list or a map.
fn head(kind: u8, number: u64, out: &mut BytesMut) {
    out.extend_from_slice(&[kind]);
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(reply: &Reply, version: Version) -> String {
        let mut out = BytesMut::new();
        reply.write(version, &mut out);
        String::from_utf8(out.to_vec()).unwrap()
    }

    #[test]
    fn both_versions() {
        let big = Reply::Number(u64::MAX);
        let map = Reply::Map(vec![("a", Reply::Number(1)), ("b", Reply::List(vec![Reply::Null]))]);
        for (reply, two, three) in [
            (Reply::ok(), "+OK\r\n", "+OK\r\n"),
            (Reply::error("ERR", "a\r\nb"), "-ERR a\\u{d}\\u{a}b\r\n", "-ERR a\\u{d}\\u{a}b\r\n"),
            (Reply::Number(7), ":7\r\n", ":7\r\n"),
            (Reply::Signed(-2), ":-2\r\n", ":-2\r\n"),
            (Reply::text("é"), "$2\r\né\r\n", "$2\r\né\r\n"),
            (Reply::Null, "$-1\r\n", "_\r\n"),
            (big, "$20\r\n18446744073709551615\r\n", "$20\r\n18446744073709551615\r\n"),
            (
                map,
                "*4\r\n$1\r\na\r\n:1\r\n$1\r\nb\r\n*1\r\n$-1\r\n",
                "%2\r\n$1\r\na\r\n:1\r\n$1\r\nb\r\n*1\r\n_\r\n",
            ),
        ] {
            assert_eq!(written(&reply, Version::Two), two);
            assert_eq!(written(&reply, Version::Three), three);
        }
    }
}
