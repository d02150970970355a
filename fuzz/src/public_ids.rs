//! Arbitrary keys, prefixes and strings for public IDs.

use polyflake::{ErrorCode, PublicIds};

use crate::check_error;

/// The first line contains the keys, the second the prefix, and the rest is a string to decode.
pub fn public_ids(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut lines = text.splitn(3, '\n');
    let [keys, prefix, text] = [(); 3].map(|()| lines.next().unwrap_or_default());
    let ids = match PublicIds::from_texts(&[keys], prefix) {
        Ok(ids) => ids,
        Err(error) => return check_error(&error, &[ErrorCode::InvalidOption]),
    };
    match ids.decode(text) {
        // The string is the only one for this ID under the key it names.
        Ok(id) => {
            let named = usize::from(!prefix.is_empty()) + prefix.len();
            let mut rotated: Vec<&str> =
                keys.split(|c: char| c == ',' || c.is_whitespace()).filter(|key| !key.is_empty()).collect();
            rotated.sort_by_key(|key| key.as_bytes().get("pfk_".len()) != text.as_bytes().get(named));
            assert_eq!(&*PublicIds::from_texts(&rotated, prefix).unwrap().encode(id), text);
        }
        Err(error) => check_error(&error, &[ErrorCode::InvalidId]),
    }
    let id = text.bytes().fold(0, |id: u64, byte| id.rotate_left(7) ^ u64::from(byte));
    let encoded = ids.encode(id);
    assert_eq!(ids.decode(&encoded), Ok(id));
    let mut other = encoded.to_string();
    let last = if other.pop() == Some('0') { '1' } else { '0' };
    other.push(last);
    check_error(&ids.decode(&other).unwrap_err(), &[ErrorCode::InvalidId]);
}
