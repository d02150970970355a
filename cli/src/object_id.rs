//! `MongoDB`'s `ObjectId`s: seconds, five random bytes per process, and a count. `MongoDB`'s crate implements
//! a whole format, of which only these twelve bytes are needed.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

/// Generates `ObjectId`s on any thread.
pub(crate) struct ObjectIds {
    process: [u8; 5],
    /// The seconds and the count of the last `ObjectId`, as one number that only grows: a full count carries
    /// into the next second.
    last: AtomicU64,
}

const COUNT_BITS: u32 = 24;
const COUNT: u64 = (1 << COUNT_BITS) - 1;

impl ObjectIds {
    pub(crate) fn new() -> Result<Self, getrandom::Error> {
        let [_, _, _, process @ ..] = getrandom::u64()?.to_be_bytes();
        Ok(Self { process, last: AtomicU64::new(getrandom::u64()? & COUNT) })
    }

    /// Returns the next `ObjectId` at this Unix time.
    pub(crate) fn next(&self, seconds: u64) -> [u8; 12] {
        let step = |last: u64| {
            let next = last + 1;
            if next >> COUNT_BITS >= seconds { next } else { seconds << COUNT_BITS | next & COUNT }
        };
        let last = self.last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(step(last)));
        let [_, s0, s1, s2, s3, c0, c1, c2] = step(last.unwrap_or_else(|last| last)).to_be_bytes();
        let [p0, p1, p2, p3, p4] = self.process;
        [s0, s1, s2, s3, p0, p1, p2, p3, p4, c0, c1, c2]
    }
}

/// An `ObjectId` as text.
pub(crate) fn text(id: [u8; 12]) -> String {
    let mut text = String::with_capacity(24);
    for byte in id {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_count_goes_on_in_the_next_second() {
        let ids = ObjectIds { process: [1, 2, 3, 4, 5], last: AtomicU64::new(0x10_FF_FF_FE) };
        assert_eq!(
            [16, 16, 16, 99].map(|second| text(ids.next(second))),
            [
                "000000100102030405ffffff",
                "000000110102030405000000",
                "000000110102030405000001",
                "000000630102030405000002",
            ]
        );
    }
}
