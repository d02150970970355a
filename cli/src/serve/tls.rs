//! TLS, for both protocols.

use std::path::Path;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use crate::failure::Failure;

/// Creates an acceptor from PEM files.
pub(crate) fn acceptor(certificates: &Path, key: &Path) -> Result<TlsAcceptor, Failure> {
    let wrong = |path: &Path, why: &dyn std::fmt::Display| Failure::Io(format!("{}: {why}", path.display()));
    let chain: Vec<_> = CertificateDer::pem_file_iter(certificates)
        .and_then(Iterator::collect)
        .map_err(|error| wrong(certificates, &error))?;
    if chain.is_empty() {
        return Err(wrong(certificates, &"there is no certificate in it"));
    }
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(key, &error))?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, secret))
        .map_err(|error| wrong(certificates, &error))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}
