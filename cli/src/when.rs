//! Times, as people write them and as the command prints them.

use std::ops::Range;

use clap::Args;
use jiff::civil::{Date, DateTime};
use jiff::tz::{TimeZone, TimeZoneTransition};
use jiff::{Span, Timestamp, ToSpan as _, Zoned};
use polyflake::{Number, UnixTime};

use crate::failure::Failure;

const DAY_S: i64 = 86_400;

/// The current time, in Unix ms.
pub(crate) fn now_ms() -> u64 {
    u64::try_from(Timestamp::now().as_millisecond()).unwrap_or(0)
}

/// The time zone, the same option for every subcommand.
#[derive(Debug, Args)]
pub(crate) struct ZoneArg {
    /// The time zone, such as Europe/Berlin, or `local` [default: UTC]
    #[arg(long, value_name = "ZONE")]
    tz: Option<String>,
}

impl ZoneArg {
    pub(crate) fn zone(&self) -> Result<Zone, Failure> {
        let named = match self.tz.as_deref() {
            None => return Ok(Zone::UTC),
            Some("local") => TimeZone::try_system(),
            Some(name) => TimeZone::get(name),
        };
        named.map(Zone).map_err(|error| {
            Failure::option(format!("tz: {error}; it takes a name such as Europe/Berlin, or `local`"))
        })
    }
}

/// The zone for times without one, and for all printed times.
#[derive(Debug, Clone)]
pub(crate) struct Zone(TimeZone);

impl Zone {
    pub(crate) const UTC: Self = Self(TimeZone::UTC);

    /// `2022-06-28T16:07:40.105Z`, or `2022-06-28T18:07:40.105+02:00`; `None` after the year 9999.
    pub(crate) fn text(&self, unix_ms: u64) -> Option<String> {
        let mut text = Vec::new();
        Times::new(self.clone()).push(unix_ms, &mut text).then(|| String::from_utf8_lossy(&text).into_owned())
    }

    /// Like [`text`](Self::text), but for display: falls back to the Unix ms.
    pub(crate) fn shown(&self, unix_ms: u64) -> String {
        self.text(unix_ms).unwrap_or_else(|| format!("Unix ms {unix_ms}"))
    }
}

/// [`Zone::text`] in UTC.
pub(crate) fn utc(unix_ms: u64) -> Option<String> {
    Zone::UTC.text(unix_ms)
}

/// Prints many times quickly: those in the same second share everything but the ms, those on the same day
/// share their date, and those between two clock changes share their offset.
pub(crate) struct Times {
    zone: Zone,
    /// The Unix seconds that have this offset.
    seconds: Range<i64>,
    offset_s: i64,
    suffix: String,
    /// Days from 1970 to the day of this date, in local time.
    day: Option<i64>,
    date: String,
    /// The Unix second of this text: `2022-06-28T16:07:40.`
    second: Option<u64>,
    text: Vec<u8>,
}

impl Default for Times {
    fn default() -> Self {
        Self::new(Zone::UTC)
    }
}

impl Times {
    pub(crate) const fn new(zone: Zone) -> Self {
        Self {
            zone,
            seconds: 0..0,
            offset_s: 0,
            suffix: String::new(),
            day: None,
            date: String::new(),
            second: None,
            text: Vec::new(),
        }
    }

    /// Appends [`Zone::text`] to a buffer. If there is none, it appends nothing and returns `false`.
    #[inline]
    pub(crate) fn push(&mut self, unix_ms: u64, to: &mut Vec<u8>) -> bool {
        let (second, ms) = (unix_ms / 1000, unix_ms % 1000);
        if self.second != Some(second) && !self.find_second(second) {
            return false;
        }
        to.extend_from_slice(&self.text);
        to.extend_from_slice(&[digit(ms / 100), digit(ms / 10), digit(ms)]);
        to.extend_from_slice(self.suffix.as_bytes());
        true
    }

    fn find_second(&mut self, second: u64) -> bool {
        let time = i64::try_from(second).ok().and_then(|second| Timestamp::from_second(second).ok());
        let Some(time) = time else { return false };
        if !self.seconds.contains(&time.as_second()) {
            self.find_offset(time);
        }
        let local = time.as_second() + self.offset_s;
        let day = local.div_euclid(DAY_S);
        if self.day != Some(day) {
            let date = self.zone.0.to_datetime(time).date();
            self.date = format!("{:04}-{:02}-{:02}T", date.year(), date.month(), date.day());
            self.day = Some(day);
        }
        let of_day = local.rem_euclid(DAY_S).unsigned_abs();
        let [h, m, s] = [of_day / 3600, of_day / 60 % 60, of_day % 60];
        self.text.clear();
        self.text.extend_from_slice(self.date.as_bytes());
        self.text.extend_from_slice(&[digit(h / 10), digit(h), b':', digit(m / 10), digit(m), b':']);
        self.text.extend_from_slice(&[digit(s / 10), digit(s), b'.']);
        self.second = Some(second);
        true
    }

    fn find_offset(&mut self, time: Timestamp) {
        let Zone(zone) = &self.zone;
        let after = time.checked_add(1.second()).unwrap_or(time);
        let second_of = |change: Option<TimeZoneTransition<'_>>| change.map(|it| it.timestamp().as_second());
        self.seconds = second_of(zone.preceding(after).next()).unwrap_or(i64::MIN)
            ..second_of(zone.following(time).next()).unwrap_or(i64::MAX);
        self.offset_s = i64::from(zone.to_offset(time).seconds());
        let minutes = (self.offset_s.abs() + 30) / 60;
        let sign = if self.offset_s < 0 { '-' } else { '+' };
        self.suffix = if *zone == TimeZone::UTC {
            "Z".into()
        } else {
            format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60)
        };
    }
}

fn digit(of: u64) -> u8 {
    b'0' + u8::try_from(of % 10).unwrap_or(0)
}

/// Whether the name of a day stands for its start or its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    First,
    Last,
}

/// Reads a time.
pub(crate) fn parse(option: &str, text: &str, end: End, zone: &Zone) -> Result<UnixTime, Failure> {
    parse_at(text, end, &Timestamp::now().to_zoned(zone.0.clone())).ok_or_else(|| {
        Failure::option(format!(
            "{option} is `{}`; it takes a time such as 2026-01-31, 2026-01-31T12:30:00Z, `2026-01-31 12:30`, yesterday, now, \
             `2 hours ago`, 1767225600000 (Unix ms) or @1767225600 (Unix seconds)",
            crate::reading::shortened(text)
        ))
    })
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
    // A date also parses as a date and time, at its start.
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
        // Without a sign, it could mean either direction.
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
        assert_eq!(Zone::UTC.shown(u64::MAX), "Unix ms 18446744073709551615");
        assert_eq!(utc(253_402_300_800_000), None);
    }

    #[test]
    fn each_zone_has_the_texts_of_the_library() {
        use jiff::fmt::temporal::DateTimePrinter;
        const PRINTER: DateTimePrinter = DateTimePrinter::new().precision(Some(3));

        let posix = |rule| Zone(TimeZone::posix(rule).unwrap());
        let zones = [
            posix("CET-1CEST,M3.5.0,M10.5.0/3"),
            posix("EST5EDT,M3.2.0,M11.1.0"),
            Zone(TimeZone::fixed(jiff::tz::Offset::from_seconds(20_700).unwrap())),
        ];
        for zone in zones {
            let mut times = Times::new(zone.clone());
            // Step forwards and backwards over each clock change.
            for step in 0_u64..6000 {
                let hours = if step < 5000 { step * 7 } else { (6000 - step) * 31 };
                let ms = 1_600_000_000_000 + hours * 1_800_000 - step % 2;
                let mut text = Vec::new();
                assert!(times.push(ms, &mut text));
                let time = Timestamp::from_millisecond(ms.try_into().unwrap()).unwrap();
                let is = PRINTER.timestamp_with_offset_to_string(&time, zone.0.to_offset(time));
                assert_eq!(String::from_utf8(text).unwrap(), is);
            }
        }
    }
}
