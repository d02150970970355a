//! What the stores' clients need for TLS, all by rustls with ring.

use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

use crate::store::StoreError;
use crate::url::Address;

/// Clients take the process's default. A program that has set one of its own keeps it.
pub(super) fn install_ring() {
    let _ = ring::default_provider().install_default();
}

/// The file that a parameter names. Neither the name nor what is in it is told.
pub(super) fn read_file(address: &Address, parameter: &str) -> Result<Option<Vec<u8>>, StoreError> {
    let Some(path) = address.parameter(parameter) else { return Ok(None) };
    let told = |e: std::io::Error| {
        StoreError::Refused(format!("{address}: the file that {parameter} names: {}", e.kind()))
    };
    std::fs::read(path).map(Some).map_err(told)
}

/// With the authorities, the certificate and its key in the files that these parameters name; else with the system's
/// authorities, and without a certificate.
pub(super) fn config(address: &Address, parameters: [&str; 3]) -> Result<ClientConfig, StoreError> {
    let [authorities, certificate, key] = parameters;
    let bad = |what: &str| {
        StoreError::Refused(format!("{address}: the file that {what} names is not PEM of that kind"))
    };
    let mut roots = RootCertStore::empty();
    if let Some(pem) = read_file(address, authorities)? {
        for it in CertificateDer::pem_slice_iter(&pem) {
            roots.add(it.map_err(|_| bad(authorities))?).map_err(|_| bad(authorities))?;
        }
        if roots.is_empty() {
            return Err(bad(authorities));
        }
    } else {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|e| StoreError::Refused(format!("{address}: {e}")))?
        .with_root_certificates(roots);
    match (read_file(address, certificate)?, read_file(address, key)?) {
        (None, None) => Ok(config.with_no_client_auth()),
        (Some(chain), Some(pem)) => {
            let chain = CertificateDer::pem_slice_iter(&chain).collect::<Result<Vec<_>, _>>();
            let chain = chain.map_err(|_| bad(certificate))?;
            let pem = PrivateKeyDer::from_pem_slice(&pem).map_err(|_| bad(key))?;
            config.with_client_auth_cert(chain, pem).map_err(|_| bad(key))
        }
        _ => Err(StoreError::Refused(format!("{address}: {certificate} and {key} go together"))),
    }
}
