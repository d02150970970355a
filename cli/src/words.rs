//! Numbers and durations in human-readable form.

use std::fmt::Write as _;

const SECOND: u64 = 1000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
/// 365.2425 days.
const YEAR: u64 = 31_556_952 * SECOND;

/// `4,096,000`
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + 6);
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 node`, `2 nodes`
pub(crate) fn counted(number: u64, one: &str) -> String {
    format!("{} {one}{}", count(number), if number == 1 { "" } else { "s" })
}

/// A duration in its largest unit: `69.7 years`, `3 days`, `17 ms`.
pub(crate) fn duration(ms: u64) -> String {
    if ms >= YEAR {
        let tenths = ms / (YEAR / 10);
        let (whole, tenth) = (tenths / 10, tenths % 10);
        let mut text = count(whole);
        if whole < 100 && tenth > 0 {
            let _ = write!(text, ".{tenth}");
        }
        text.push_str(if whole == 1 && tenth == 0 { " year" } else { " years" });
        return text;
    }
    for (unit, length) in [("day", DAY), ("hour", HOUR), ("minute", MINUTE), ("second", SECOND)] {
        if ms >= length {
            return counted(ms / length, unit);
        }
    }
    format!("{ms} ms")
}

/// `3 hours ago`, `in 2 days`, `now`
pub(crate) fn from_now(ms: u64, now_ms: u64) -> String {
    match ms.abs_diff(now_ms) {
        0..SECOND => "now".into(),
        apart if ms > now_ms => format!("in {}", duration(apart)),
        apart => format!("{} ago", duration(apart)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_durations() {
        assert_eq!((count(0), count(999), count(1000)), ("0".into(), "999".into(), "1,000".into()));
        assert_eq!(count(u64::MAX), "18,446,744,073,709,551,615");
        for (ms, text) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (1000, "1 second"),
            (119_999, "1 minute"),
            (2 * HOUR, "2 hours"),
            (YEAR - 1, "365 days"),
            (YEAR, "1 year"),
            (YEAR + YEAR / 10, "1.1 years"),
            (YEAR * 697 / 10 + 1, "69.7 years"),
            (YEAR * 8925, "8,925 years"),
        ] {
            assert_eq!(duration(ms), text);
        }
        assert_eq!(from_now(1000, 1999), "now");
        assert_eq!(from_now(0, 2 * HOUR), "2 hours ago");
        assert_eq!(from_now(2 * DAY, 0), "in 2 days");
    }
}
