use polyflake::{ErrorCode, Format};

use crate::check_error;

/// Reads the bytes as an ID's text in every format, and writes the first eight as an ID in every format.
pub fn id_text(data: &[u8]) {
    if let Some(bytes) = data.first_chunk() {
        let id = u64::from_le_bytes(*bytes);
        Format::ALL.into_iter().for_each(|format| written(format, id));
    }
    if let Ok(text) = std::str::from_utf8(data) {
        Format::ALL.into_iter().for_each(|format| read(format, text));
        let format = Format::ALL.into_iter().find(|format| format.name() == text);
        assert_eq!(text.parse().ok(), format);
    }
}

/// Computes an ID's UUID independently.
fn uuid(id: u64) -> String {
    let (custom_a, custom_b, custom_c) =
        (u128::from(id >> 16), u128::from(id >> 4 & 0xfff), u128::from(id & 0xf) << 58);
    let (version, variant) = (8 << 76, 0b10 << 62);
    let digits = format!("{:032x}", custom_a << 80 | version | custom_b << 64 | variant | custom_c);
    [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-")
}

fn value_of_uuid(text: &str) -> Option<u64> {
    let number = u128::from_str_radix(&text.replace('-', ""), 16).ok()?;
    let (custom_a, custom_b, custom_c) = (number >> 80, number >> 64 & 0xfff, number >> 58 & 0xf);
    let id = u64::try_from(custom_a << 16 | custom_b << 4 | custom_c).ok()?;
    (uuid(id) == text.to_ascii_lowercase()).then_some(id)
}

/// Returns true if any readable string begins with `text`.
fn begins(format: Format, text: &str) -> bool {
    match (format, uuid(0).get(text.len()..)) {
        (Format::Uuid, Some(rest)) => value_of_uuid(&(text.to_owned() + rest)).is_some(),
        _ => value(format, text).is_some(),
    }
}

/// Returns the value of a string's digits if it fits in 64 bits.
fn value(format: Format, text: &str) -> Option<u64> {
    if format == Format::Uuid {
        return value_of_uuid(text);
    }
    let base = format.alphabet().len() as u128;
    let digit = |character: char| {
        let character = match (format, character) {
            (Format::Hex | Format::Base36, _) => character.to_ascii_lowercase(),
            (Format::Base32, 'i' | 'I' | 'l' | 'L') => '1',
            (Format::Base32, 'o' | 'O') => '0',
            (Format::Base32, _) => character.to_ascii_uppercase(),
            _ => character,
        };
        format.alphabet().find(character)
    };
    let digits: Vec<usize> = text.chars().map(digit).collect::<Option<_>>()?;
    if digits.is_empty() || digits.len() > format.max_len() {
        return None;
    }
    u64::try_from(digits.iter().fold(0, |value, digit| value * base + *digit as u128)).ok()
}

fn read(format: Format, text: &str) {
    match format.read(text) {
        Ok(id) => {
            assert_eq!(value(format, text), Some(id), "{format} {text:?}");
            written(format, id);
        }
        Err(error) => {
            assert_eq!(value(format, text), None, "{format} {text:?}: {error}");
            check_error(&error, &[ErrorCode::InvalidId]);
            // The position must be that of the first character that makes the string unreadable. (A later
            // character that is not a digit of the format is equally acceptable.)
            let ends = text.char_indices().map(|(index, character)| index + character.len_utf8());
            let wrong = ends.enumerate().find(|(_, end)| !begins(format, &text[..*end]));
            if let Some((index, _)) = wrong {
                let says = format!("position {}", index + 1);
                let message = error.to_string();
                let mut parts = message.split(says.as_str()).skip(1);
                assert!(parts.any(|rest| !rest.starts_with(|next: char| next.is_ascii_digit())), "{message}");
            }
        }
    }
}

fn written(format: Format, id: u64) {
    let text = format.write(id);
    assert_eq!(value(format, &text), Some(id));
    assert_eq!(format.read(&text), Ok(id));
    assert!(text.len() == format.max_len() || !format.sorts() && text.len() < format.max_len());
    assert!(format.sorts() || id == 0 || !text.starts_with(&format.alphabet()[..1]));
    if let Some(next) = id.checked_add(1).filter(|_| format.sorts()) {
        assert!(*text < *format.write(next));
    }
}
