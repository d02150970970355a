//! What the stores' clients need for TLS, all by rustls with ring.

use crate::store::StoreError;
use crate::url::Address;

/// Clients take the process's default. A program that has set one of its own keeps it.
pub(super) fn install_ring() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// The file that a parameter names. Neither the name nor what is in it is told.
pub(super) fn read_file(address: &Address, parameter: &str) -> Result<Option<Vec<u8>>, StoreError> {
    let Some(path) = address.parameter(parameter) else { return Ok(None) };
    let told = |e: std::io::Error| {
        StoreError::Refused(format!("{address}: the file that {parameter} names: {}", e.kind()))
    };
    std::fs::read(path).map(Some).map_err(told)
}
