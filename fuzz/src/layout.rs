use polyflake::{ErrorCode, Layout, MAX_NODE_FIELDS, Number, PRESETS, UnixTime};

use crate::check_error;

/// Parses a layout string, and compares the result with a plain implementation of the documented grammar and bounds.
pub fn layout(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let preset = PRESETS.iter().find(|preset| preset.name == text);
    match Layout::parse(text) {
        Ok(layout) if preset.is_some_and(|preset| preset.layout == layout) => check(&layout),
        Ok(layout) => {
            let parts = read(text).unwrap_or_else(|| panic!("{text:?} is not a layout"));
            let fields = parts.fields.iter().map(|(name, bits)| (*name, Number::from(*bits)));
            assert_eq!(Layout::from_fields(fields, parts.epoch_ms, parts.tick_ms), Ok(layout));
            let read: Vec<_> =
                layout.fields().iter().map(|field| (field.name(), u64::from(field.bits()))).collect();
            assert_eq!(read, parts.fields);
            assert_eq!((layout.epoch_ms(), layout.tick_ms()), (parts.epoch_ms, parts.tick_ms));
            check(&layout);
        }
        Err(error) => {
            check_error(&error, &[ErrorCode::InvalidLayout, ErrorCode::UnknownLayout]);
            assert!(preset.is_none() && read(text).is_none(), "{text:?} is a layout: {error}");
        }
    }
}

struct Parts<'a> {
    fields: Vec<(&'a str, u64)>,
    epoch_ms: u64,
    tick_ms: u64,
}

fn read(text: &str) -> Option<Parts<'_>> {
    let (fields, rest) = text.split_once('@')?;
    let (epoch, tick) = rest.split_once('/')?;
    let field = |text: &'_ str| text.split_once(':').and_then(|(_, bits)| number(bits));
    let bits: Vec<u64> = fields.split('|').map(field).collect::<Option<_>>()?;
    let names: Vec<&str> = fields.split('|').filter_map(|field| field.split(':').next()).collect();
    let tick_ms = match tick.strip_suffix("ms") {
        Some(ms) => number(ms)?,
        None => number(tick.strip_suffix('s')?)?.checked_mul(1000)?,
    };
    let parts = Parts { fields: names.into_iter().zip(bits).collect(), epoch_ms: number(epoch)?, tick_ms };
    fits(&parts).then_some(parts)
}

fn number(digits: &str) -> Option<u64> {
    digits.parse().ok().filter(|number: &u64| number.to_string() == digits)
}

fn fits(parts: &Parts<'_>) -> bool {
    let fields = &parts.fields;
    let place = |name| fields.iter().position(|field| field.0 == name);
    let (Some(timestamp), Some(sequence)) = (place("timestamp"), place("sequence")) else { return false };
    let is_name = |name: &str| {
        name.len() <= 24
            && name.starts_with(|first: char| first.is_ascii_lowercase())
            && name.chars().all(|letter| matches!(letter, 'a'..='z' | '0'..='9' | '_' | '-'))
    };
    let (timestamp_bits, sequence_bits) = (fields[timestamp].1, fields[sequence].1);
    let sum: u128 = fields.iter().map(|field| u128::from(field.1)).sum();
    sum <= 64
        && fields.iter().all(|(name, bits)| is_name(name) && *bits >= 1)
        && (0..fields.len()).all(|n| place(fields[n].0) == Some(n))
        && fields.len() <= MAX_NODE_FIELDS + 2
        && timestamp < sequence
        && sequence_bits <= 32
        && sum as u64 - timestamp_bits - sequence_bits <= 32
        && parts.tick_ms >= 1
        && (u128::from(parts.tick_ms) << timestamp_bits) + u128::from(parts.epoch_ms) <= 1 << 63
}

/// Checks properties that hold for every layout.
fn check(layout: &Layout) {
    assert_eq!(Layout::parse(&layout.to_string()), Ok(*layout));
    let all = u64::MAX >> (64 - layout.total_bits());
    assert_eq!(layout.fields().iter().fold(0, |bits, field| bits ^ field.mask()), all);
    for id in [0, 1, all, all / 3, all / 5, all - all / 7] {
        let decoded = layout.decode(id).unwrap();
        let time = UnixTime::from_ms(decoded.timestamp_ms());
        assert_eq!(layout.compose(time, decoded.node(), decoded.sequence()), Ok(id));
        let fields = decoded
            .fields()
            .fold(polyflake::Node::NO_FIELDS, |node, (name, value)| node.with_field(name, value));
        assert_eq!(layout.compose(time, fields, decoded.sequence()), Ok(id));
        match (layout.min_id(time), layout.max_id(time)) {
            (Ok(min), Ok(max)) => assert!(min <= id && id <= max),
            (min, max) => assert!(layout.fields()[0].is_node() && min.is_err() && max.is_err()),
        }
    }
    assert_eq!(layout.decode(all).unwrap().timestamp_ms(), layout.ends_at_ms() - (layout.tick_ms() - 1));
    assert!(all == u64::MAX || layout.decode(all + 1).is_err());
}
