//! Properties of the host that can serve as a node: the number in its name, and its address.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::string::String;

/// The host's name, up to the first dot.
pub(crate) fn name() -> Option<String> {
    host_name().map(|name| name.split('.').next().unwrap_or_default().into())
}

#[cfg(unix)]
fn host_name() -> Option<String> {
    // POSIX allows 255 bytes and a NUL.
    let mut bytes = [0_u8; 256];
    // SAFETY: it writes at most as many bytes as the array holds.
    #[allow(unsafe_code)]
    let failed = unsafe { libc::gethostname(bytes.as_mut_ptr().cast(), bytes.len()) };
    let name = core::ffi::CStr::from_bytes_until_nul(&bytes).ok().filter(|_| failed == 0)?;
    name.to_str().ok().map(String::from)
}

#[cfg(not(unix))]
fn host_name() -> Option<String> {
    std::env::var("COMPUTERNAME").ok()
}

/// Returns the number at the end of a name, such as 3 for `web-3`.
pub(crate) fn ordinal_of(name: &str) -> Option<u64> {
    let start = name.trim_end_matches(|letter: char| letter.is_ascii_digit()).len();
    // Leading zeros are ignored, and a number that is too large does not count.
    name.get(start..)?.parse().ok()
}

/// Returns the private address (RFC 1918) from which this host reaches other hosts.
pub(crate) fn private_address() -> Option<Ipv4Addr> {
    // This sends nothing: the system just chooses the source address. 192.0.2.1 belongs to no real network
    // (RFC 5737).
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).ok()?;
    match socket.local_addr().ok()?.ip() {
        IpAddr::V4(address) if address.is_private() => Some(address),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_ends_in_a_number() {
        for (name, ordinal) in [
            ("web-3", Some(3)),
            ("web-0", Some(0)),
            ("db12", Some(12)),
            ("shard-007", Some(7)),
            ("42", Some(42)),
            ("web", None),
            ("", None),
            ("web-3a", None),
            ("web-99999999999999999999", None),
            ("web-\u{663}", None),
        ] {
            assert_eq!(ordinal_of(name), ordinal, "{name}");
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no host")]
    fn this_host_has_a_name_without_its_domain() {
        let name = name().unwrap();
        assert!(!name.is_empty() && !name.contains('.'), "{name}");
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no network")]
    fn an_address_is_a_private_one() {
        assert!(private_address().is_none_or(|address| address.is_private()));
    }
}
