//! Decoding an ID into its parts, and composing IDs from parts and instants.

use core::fmt;

use crate::error::{Error, error};
use crate::layout::{Field, Layout, ones};
use crate::node::Node;
use crate::number::Number;

mod all;
mod likelihood;

pub use all::DecodedAll;
pub use likelihood::Likelihood;

/// An instant: a whole number of Unix milliseconds, and a flag that tells whether a fraction of a millisecond
/// follows.
///
/// Built from Unix ms, µs or ns, or from a [`std::time::SystemTime`] with `into`. An instant that is out of
/// range causes an error where it is used, and that error names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct UnixTime {
    floor_ms: Number,
    has_fraction: bool,
}

impl UnixTime {
    /// Creates an instant from milliseconds since 1970-01-01T00:00Z.
    pub fn from_ms(ms: impl Into<Number>) -> Self {
        Self { floor_ms: ms.into(), has_fraction: false }
    }

    /// Creates an instant from microseconds since 1970-01-01T00:00Z.
    pub fn from_us(us: i64) -> Self {
        Self { floor_ms: us.div_euclid(1000).into(), has_fraction: us.rem_euclid(1000) != 0 }
    }

    /// Creates an instant from milliseconds since 1970-01-01T00:00Z plus nanoseconds (0 to 999,999; larger
    /// values carry over).
    pub fn from_ms_ns(ms: i64, ns: u32) -> Self {
        let ms = i128::from(ms) + i128::from(ns / 1_000_000);
        let floor_ms = i64::try_from(ms).map_or_else(|_| Number::of(ms), Number::from);
        Self { floor_ms, has_fraction: ns % 1_000_000 != 0 }
    }

    /// Creates an instant from seconds since 1970-01-01T00:00Z plus nanoseconds (0 to 999,999,999; larger
    /// values carry over).
    pub fn from_s_ns(s: i64, ns: u32) -> Self {
        let ms = i128::from(s) * 1000 + i128::from(ns / 1_000_000);
        let floor_ms = i64::try_from(ms).map_or_else(|_| Number::of(ms), Number::from);
        Self { floor_ms, has_fraction: ns % 1_000_000 != 0 }
    }
}

#[cfg(feature = "std")]
impl From<std::time::SystemTime> for UnixTime {
    fn from(time: std::time::SystemTime) -> Self {
        match time.duration_since(std::time::UNIX_EPOCH) {
            Ok(after) => {
                let s = i64::try_from(after.as_secs()).unwrap_or(i64::MAX);
                Self::from_s_ns(s, after.subsec_nanos())
            }
            Err(before) => {
                let before = before.duration();
                let s = i64::try_from(before.as_secs()).unwrap_or(i64::MAX);
                let ns = before.subsec_nanos();
                if ns == 0 { Self::from_s_ns(-s, 0) } else { Self::from_s_ns(-s - 1, 1_000_000_000 - ns) }
            }
        }
    }
}

/// An ID decoded by [`Layout::decode`].
///
/// ```
/// use polyflake::Layout;
/// let layout = Layout::parse("discord")?;
/// let decoded = layout.decode(175928847299117063_u64)?;
/// assert_eq!(decoded.timestamp_ms(), 1462015105796); // 2016-04-30T11:18:25.796Z
/// assert_eq!(decoded.field("worker"), Some(1));
/// assert_eq!(decoded.sequence(), 7);
/// # Ok::<(), polyflake::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Decoded {
    id: u64,
    layout: Layout,
}

impl Decoded {
    /// The ID.
    pub const fn id(&self) -> u64 {
        self.id
    }

    /// The layout that decoded the ID.
    pub const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The start of the ID's tick, in Unix ms.
    pub const fn timestamp_ms(&self) -> u64 {
        self.layout.epoch_ms() + self.ticks() * self.layout.tick_ms()
    }

    /// The start of the ID's tick, or `None` if it is later than this platform's `SystemTime` can represent.
    #[cfg(feature = "std")]
    pub fn time(&self) -> Option<std::time::SystemTime> {
        std::time::UNIX_EPOCH.checked_add(core::time::Duration::from_millis(self.timestamp_ms()))
    }

    /// The number of ticks since the epoch.
    pub const fn ticks(&self) -> u64 {
        self.layout.timestamp().value(self.id)
    }

    /// The values of all node fields combined into one number, highest field first.
    pub fn node(&self) -> u64 {
        self.layout.node_of(self.id)
    }

    /// The names and values of the node fields, highest first.
    pub fn fields(&self) -> impl Iterator<Item = (&str, u64)> {
        self.layout.node_fields().map(|field| (field.name(), field.value(self.id)))
    }

    /// The value of the node field `name`.
    pub fn field(&self, name: &str) -> Option<u64> {
        self.layout.field(name).filter(Field::is_node).map(|field| field.value(self.id))
    }

    /// The sequence number within the tick.
    pub const fn sequence(&self) -> u64 {
        self.layout.sequence().value(self.id)
    }
}

impl fmt::Debug for Decoded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Decoded {{ id: {}, timestamp_ms: {}", self.id, self.timestamp_ms())?;
        for (name, value) in self.fields() {
            write!(f, ", {name}: {value}")?;
        }
        write!(f, ", sequence: {} }}", self.sequence())
    }
}

impl Layout {
    /// Decodes an ID into its parts.
    ///
    /// # Errors
    ///
    /// `invalid_id` if any bit above the layout's highest bit is set.
    pub fn decode(&self, id: impl Into<Number>) -> Result<Decoded, Error> {
        let given = id.into();
        match given.to_u64() {
            Some(id) if id <= ones(self.total_bits()) => Ok(Decoded { id, layout: *self }),
            _ => Err(given.too_wide(self.total_bits())),
        }
    }

    /// Returns the ID for an instant (rounded down to its tick), a node and a sequence number. Use it in
    /// tests and to migrate rows to new IDs. Nothing prevents it from repeating an ID that has already been
    /// issued.
    ///
    /// # Errors
    ///
    /// `time_out_of_range`, `invalid_node`, or `invalid_option` if the sequence number is out of range.
    ///
    /// ```
    /// use polyflake::{Layout, UnixTime};
    /// let id = Layout::default().compose(UnixTime::from_ms(1656432460105_i64), 378, 0)?;
    /// assert_eq!(id, 1541815603606036480);
    /// # Ok::<(), polyflake::Error>(())
    /// ```
    pub fn compose(
        &self,
        time: impl Into<UnixTime>,
        node: impl Into<Node>,
        sequence: impl Into<Number>,
    ) -> Result<u64, Error> {
        let ticks = self.ticks_at(time.into(), false)?;
        let node = node.into().resolve(self)?;
        let given = sequence.into();
        let max = self.sequence().max();
        let sequence = given.in_range("sequence", 0, max)?;
        Ok(self.join(ticks, self.place_node(node), sequence))
    }

    /// Returns the lowest ID at or after an instant: the lower end of a time range.
    ///
    /// # Errors
    ///
    /// `time_out_of_range`, or `invalid_layout` if a node field is above the timestamp: with such a layout,
    /// the IDs of a time range are not contiguous.
    ///
    /// ```
    /// use polyflake::{Layout, UnixTime};
    /// let layout = Layout::default();
    /// let day = UnixTime::from_ms(1656432460105_i64);
    /// assert!(layout.min_id(day)? <= 1541815603606036480 && 1541815603606036480 <= layout.max_id(day)?);
    /// # Ok::<(), polyflake::Error>(())
    /// ```
    pub fn min_id(&self, time: impl Into<UnixTime>) -> Result<u64, Error> {
        self.needs_time_order()?;
        Ok(self.join(self.ticks_at(time.into(), true)?, 0, 0))
    }

    /// Returns the highest ID at or before an instant: the upper end of a time range.
    ///
    /// # Errors
    ///
    /// The same as for [`min_id`](Self::min_id).
    pub fn max_id(&self, time: impl Into<UnixTime>) -> Result<u64, Error> {
        self.needs_time_order()?;
        let ticks = self.ticks_at(time.into(), false)?;
        Ok(self.join(ticks, self.place_node(ones(self.node_bits())), self.sequence().max()))
    }

    /// The layout's last instant, or `None` if it is later than this platform's `SystemTime` can represent.
    #[cfg(feature = "std")]
    pub fn ends_at(&self) -> Option<std::time::SystemTime> {
        std::time::UNIX_EPOCH.checked_add(core::time::Duration::from_millis(self.ends_at_ms()))
    }

    pub(crate) const fn join(&self, ticks: u64, placed_node: u64, sequence: u64) -> u64 {
        ticks << self.timestamp_shift() | sequence << self.sequence_shift() | placed_node
    }

    pub(crate) fn out_of_range(&self, unix_ms: Number) -> Error {
        out_of_range(unix_ms, self.epoch_ms(), self.ends_at_ms())
    }

    /// Returns the tick that contains an instant or, with `round_up`, the first tick that does not begin
    /// before it.
    fn ticks_at(&self, time: UnixTime, round_up: bool) -> Result<u64, Error> {
        let out_of_range = || self.out_of_range(time.floor_ms);
        let after = time.floor_ms.to_u64().and_then(|ms| ms.checked_sub(self.epoch_ms()));
        let after = after.ok_or_else(out_of_range)?;
        let (mut ticks, rest) = (after / self.tick_ms(), after % self.tick_ms());
        let last_tick = self.timestamp().max();
        if ticks > last_tick {
            return Err(out_of_range());
        }
        if round_up && (rest > 0 || time.has_fraction) {
            ticks += 1;
        }
        if ticks > last_tick {
            let last_ms = self.epoch_ms() + last_tick * self.tick_ms();
            return Err(error!(
                TimeOutOfRange,
                "no tick begins at or after % (Unix ms); the layout's last begins at %",
                Given(time.floor_ms.word()),
                Number(last_ms)
            ));
        }
        Ok(ticks)
    }

    fn needs_time_order(&self) -> Result<(), Error> {
        match self.node_fields().find(|field| field.shift() > self.timestamp_shift()) {
            Some(field) => Err(error!(
                InvalidLayout,
                "IDs of this layout do not sort by time, because node field % is above the timestamp: no range of IDs \
                 holds a span of time",
                Text(field.name())
            )),
            None => Ok(()),
        }
    }
}

pub(crate) fn out_of_range(unix_ms: Number, epoch_ms: u64, ends_at_ms: u64) -> Error {
    error!(
        TimeOutOfRange,
        "% (Unix ms) is outside the layout's range, from its epoch % to its end %",
        Given(unix_ms.word()),
        Number(epoch_ms),
        Number(ends_at_ms)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, UNIX_EPOCH};

    #[test]
    fn parts_of_a_millisecond_round_towards_the_range() {
        let layout = Layout::parse("leaf").unwrap();
        let ms = layout.min_id(UnixTime::from_ms(1_700_000_000_001_i64)).unwrap();
        let later = UnixTime::from_us(1_700_000_000_000_001);
        assert_eq!(layout.min_id(later).unwrap(), ms);
        assert_eq!(layout.max_id(later).unwrap(), ms - 1);
        // The resolution of the Windows clock.
        let later = UNIX_EPOCH + Duration::new(1_700_000_000, 100);
        assert_eq!(layout.min_id(later).unwrap(), ms);
        assert_eq!(layout.max_id(later).unwrap(), ms - 1);
    }

    #[test]
    fn instants_before_1970_keep_their_floor() {
        let before = UnixTime::from(UNIX_EPOCH - Duration::from_micros(1500));
        assert_eq!(before, UnixTime::from_us(-1500));
        assert_eq!(before.floor_ms.to_i64(), Some(-2));
        let refused = Layout::default().compose(before, 0, 0).unwrap_err();
        assert_eq!(refused.code(), crate::ErrorCode::TimeOutOfRange);
    }
}
