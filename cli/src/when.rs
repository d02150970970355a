//! Times as people write them, and as they are printed.

use jiff::civil::{Date, DateTime};
use jiff::fmt::temporal::DateTimePrinter;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, ToSpan as _, Zoned};
use polyflake::{Number, UnixTime};

use crate::failure::Failure;

/// The present, in Unix ms.
pub(crate) fn now_ms() -> u64 {
    u64::try_from(Timestamp::now().as_millisecond()).unwrap_or(0)
}

const PRINTER: DateTimePrinter = DateTimePrinter::new().precision(Some(3));

/// `2022-06-28T16:07:40.105Z`, added to a text; nothing, and `false`, after the year 9999.
pub(crate) fn push_utc(to: &mut Vec<u8>, unix_ms: u64) -> bool {
    let Some(time) = timestamp(unix_ms) else { return false };
    PRINTER.print_timestamp(&time, to).is_ok()
}

/// `2022-06-28T16:07:40.105Z`; nothing after the year 9999.
pub(crate) fn utc(unix_ms: u64) -> Option<String> {
    timestamp(unix_ms).map(|time| PRINTER.timestamp_to_string(&time))
}

/// The same for people, who get the ms where there is no such text.
pub(crate) fn shown(unix_ms: u64) -> String {
    utc(unix_ms).unwrap_or_else(|| format!("Unix ms {unix_ms}"))
}

fn timestamp(unix_ms: u64) -> Option<Timestamp> {
    i64::try_from(unix_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok())
}

/// Which end of a day its name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    First,
    Last,
}

/// Reads a time.
pub(crate) fn parse(option: &str, text: &str, end: End, zone: &TimeZone) -> Result<UnixTime, Failure> {
    parse_at(text, end, &Timestamp::now().to_zoned(zone.clone())).ok_or_else(|| {
        Failure::option(format!(
            "{option} is `{}`; it takes a time such as 2026-01-31, 2026-01-31T12:30:00Z, `2026-01-31 12:30`, yesterday, now, \
             `2 hours ago`, 1767225600000 (Unix ms) or @1767225600 (Unix seconds)",
            crate::reading::shortened(text)
        ))
    })
}

/// The zone of that name.
pub(crate) fn zone(name: Option<&str>) -> Result<TimeZone, Failure> {
    match name {
        None => Ok(TimeZone::UTC),
        Some("local") => TimeZone::try_system().map_err(|error| Failure::option(format!("tz: {error}"))),
        Some(name) => TimeZone::get(name).map_err(|error| Failure::option(format!("tz: {error}"))),
    }
}

fn parse_at(text: &str, end: End, now: &Zoned) -> Option<UnixTime> {
    let text = text.trim();
    let number = |text| Number::parse(text).to_i64();
    if let Some(ms) = number(text) {
        return Some(UnixTime::from_ms(ms));
    }
    if let Some(seconds) = text.strip_prefix('@') {
        return number(seconds).map(|seconds| UnixTime::from_s_ns(seconds, 0));
    }
    let today = now.date();
    match text.to_ascii_lowercase().as_str() {
        "now" => return Some(unix_time(now.timestamp())),
        "today" => return day(today, end, now),
        "yesterday" => return day(today.yesterday().ok()?, end, now),
        "tomorrow" => return day(today.tomorrow().ok()?, end, now),
        _ => {}
    }
    if let Ok(time) = text.parse::<Timestamp>() {
        return Some(unix_time(time));
    }
    if let Ok(time) = text.parse::<Zoned>() {
        return Some(unix_time(time.timestamp()));
    }
    // A date parses as a date and time too, of its start.
    if !text.contains([':', 'T', 't']) {
        if let Ok(date) = text.parse::<Date>() {
            return day(date, end, now);
        }
    }
    if let Ok(time) = text.parse::<DateTime>() {
        return time.to_zoned(now.time_zone().clone()).ok().map(|time| unix_time(time.timestamp()));
    }
    let span = match text.strip_prefix("in ") {
        Some(span) => span.parse::<Span>().ok().filter(|span| !span.is_negative())?,
        // Without a sign nobody knows which way.
        None if text.ends_with("ago") || text.starts_with(['-', '+']) => text.parse::<Span>().ok()?,
        None => return None,
    };
    now.checked_add(span).ok().map(|time| unix_time(time.timestamp()))
}

fn day(date: Date, end: End, now: &Zoned) -> Option<UnixTime> {
    let start = |date: Date| date.to_zoned(now.time_zone().clone()).ok().map(|time| time.timestamp());
    match end {
        End::First => start(date).map(unix_time),
        End::Last => start(date.tomorrow().ok()?)?.checked_sub(1.nanosecond()).ok().map(unix_time),
    }
}

fn unix_time(time: Timestamp) -> UnixTime {
    let ns = time.as_nanosecond();
    let seconds = i64::try_from(ns.div_euclid(1_000_000_000)).unwrap_or(i64::MAX);
    UnixTime::from_s_ns(seconds, u32::try_from(ns.rem_euclid(1_000_000_000)).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str, end: End, zone: &str) -> Option<UnixTime> {
        let zone = if zone == "UTC" { TimeZone::UTC } else { TimeZone::fixed(jiff::tz::offset(2)) };
        let now: Timestamp = "2026-03-01T12:30:00.5Z".parse().unwrap();
        parse_at(text, end, &now.to_zoned(zone))
    }

    fn ms(rfc: &str) -> UnixTime {
        UnixTime::from_ms(rfc.parse::<Timestamp>().unwrap().as_millisecond())
    }

    #[test]
    fn times_as_people_write_them() {
        for (text, is) in [
            ("1767225600000", "2026-01-01T00:00:00Z"),
            ("-1", "1969-12-31T23:59:59.999Z"),
            ("@1767225600", "2026-01-01T00:00:00Z"),
            ("now", "2026-03-01T12:30:00.5Z"),
            (" Today ", "2026-03-01T00:00:00Z"),
            ("yesterday", "2026-02-28T00:00:00Z"),
            ("tomorrow", "2026-03-02T00:00:00Z"),
            ("2026-01-31", "2026-01-31T00:00:00Z"),
            ("2026-01-31 12:30", "2026-01-31T12:30:00Z"),
            ("2026-01-31T12:30:00+02:00", "2026-01-31T10:30:00Z"),
            ("2026-01-31T12:30:00.25Z", "2026-01-31T12:30:00.25Z"),
            ("2 hours ago", "2026-03-01T10:30:00.5Z"),
            ("1 month ago", "2026-02-01T12:30:00.5Z"),
            ("-90m", "2026-03-01T11:00:00.5Z"),
            ("in 2 days", "2026-03-03T12:30:00.5Z"),
        ] {
            assert_eq!(at(text, End::First, "UTC"), Some(ms(is)), "{text}");
        }
        for text in ["", "2 hours", "in -2 days", "soon", "2026-13-01", "@x", "2026-02-30", "12:30"] {
            assert_eq!(at(text, End::First, "UTC"), None, "{text}");
        }
    }

    #[test]
    fn a_day_ends_before_the_next() {
        let last_ns = UnixTime::from_ms_ns(1_772_323_199_999, 999_999);
        assert_eq!(at("yesterday", End::Last, "UTC"), Some(last_ns));
        assert_eq!(at("2026-02-28", End::Last, "UTC"), Some(last_ns));
        assert_eq!(at("2026-02-28", End::First, "+2"), Some(ms("2026-02-27T22:00:00Z")));
    }

    #[test]
    fn times_are_printed_with_their_ms() {
        assert_eq!(utc(1_656_432_460_105).as_deref(), Some("2022-06-28T16:07:40.105Z"));
        assert_eq!(utc(0).as_deref(), Some("1970-01-01T00:00:00.000Z"));
        assert_eq!(shown(u64::MAX), "Unix ms 18446744073709551615");
    }
}
