//! `ObjectId`s of `MongoDB`: seconds, five random bytes of this process, and a count. `MongoDB`'s crate is a whole format; this is
//! twelve bytes of it.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Generator, Ids, MANY, Made, Options, TextId};
use crate::serve::error::Error;
use crate::when;

struct ObjectIds {
    process: [u8; 5],
    /// Seconds and count of the last one, as one number that only grows: a full count goes on in the next second.
    last: AtomicU64,
}

const COUNT_BITS: u32 = 24;
const COUNT: u64 = (1 << COUNT_BITS) - 1;

pub(super) fn make(options: &Options) -> Result<Made, Error> {
    if let Some((name, _)) = options.all().next() {
        return Err(Error::option(name, "an ObjectId has no options"));
    }
    Ok(Made::new(|| {
        let random = || getrandom::u64().map_err(|error| Error::new("io", error.to_string()));
        let [_, _, _, process @ ..] = random()?.to_be_bytes();
        Ok(Box::new(ObjectIds { process, last: AtomicU64::new(random()? & COUNT) }))
    }))
}

impl ObjectIds {
    fn next(&self, seconds: u64) -> TextId {
        let step = |last: u64| {
            let next = last + 1;
            if next >> COUNT_BITS >= seconds { next } else { seconds << COUNT_BITS | next & COUNT }
        };
        let last = self.last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(step(last)));
        let [_, s0, s1, s2, s3, c0, c1, c2] = step(last.unwrap_or_else(|last| last)).to_be_bytes();
        let [p0, p1, p2, p3, p4] = self.process;
        let bytes = vec![s0, s1, s2, s3, p0, p1, p2, p3, p4, c0, c1, c2];
        let mut text = String::with_capacity(2 * bytes.len());
        for byte in &bytes {
            let _ = write!(text, "{byte:02x}");
        }
        TextId { text, bytes }
    }
}

impl Generator for ObjectIds {
    fn ids(&self, n: usize) -> Result<Ids, Error> {
        let seconds = when::now_ms() / 1000;
        Ok(Ids::Texts((0..n).map(|_| self.next(seconds)).collect()))
    }

    fn try_ids(&self, n: usize) -> Result<Ids, Error> {
        if n > MANY {
            return Ok(Ids::Texts(Vec::new()));
        }
        self.ids(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_count_goes_on_in_the_next_second() {
        let ids = ObjectIds { process: [1, 2, 3, 4, 5], last: AtomicU64::new(0x10_FF_FF_FE) };
        let texts = [ids.next(16), ids.next(16), ids.next(16), ids.next(99)].map(|id| id.text);
        assert_eq!(
            texts,
            [
                "000000100102030405ffffff",
                "000000110102030405000000",
                "000000110102030405000001",
                "000000630102030405000002",
            ]
        );
    }
}
