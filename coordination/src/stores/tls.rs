//! Checks certificates at the levels that PostgreSQL's own clients offer.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    AlertDescription, CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore,
    SignatureScheme,
};

/// How strictly a certificate is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Check {
    /// The certificate is not checked. TLS then protects only against eavesdropping.
    Nothing,
    /// An authority must have signed the certificate.
    Authority,
    /// In addition, the certificate must belong to this host.
    Host,
}

/// The paths of PEM files.
#[derive(Debug, Default)]
pub(super) struct Files {
    /// The certificate authorities, or `None` for the authorities that browsers trust.
    pub(super) authorities: Option<String>,
    pub(super) certificate: Option<String>,
    pub(super) key: Option<String>,
}

/// Returns a TLS configuration, or an error that describes the fault in a file.
pub(super) fn config(check: Check, files: &Files) -> Result<ClientConfig, String> {
    let provider = Arc::new(ring::default_provider());
    let mut roots = RootCertStore::empty();
    if let Some(path) = &files.authorities {
        for certificate in certificates(path)? {
            roots.add(certificate).map_err(|error| format!("{path}: {error}"))?;
        }
    } else {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    let inner = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
        .build()
        .map_err(|error| error.to_string())?;
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Verifier { check, inner, provider }));
    match (&files.certificate, &files.key) {
        (None, None) => Ok(builder.with_no_client_auth()),
        (Some(certificate), Some(key)) => {
            let chain = certificates(certificate)?;
            let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| format!("{key}: {error}"))?;
            builder
                .with_client_auth_cert(chain, secret)
                .map_err(|error| format!("{certificate} and {key}: {error}"))
        }
        _ => Err("a client's certificate and its key go together".into()),
    }
}

/// Returns true if the error comes from TLS itself. A fault in a certificate does not go away on its own, but
/// a server's internal error may. For example, etcd reports one while its certificate and key files are being
/// replaced.
pub(super) fn is_fault(error: &std::io::Error) -> bool {
    let error = error.get_ref().and_then(|error| error.downcast_ref());
    error.is_some_and(|error| !matches!(error, Error::AlertReceived(AlertDescription::InternalError)))
}

fn certificates(path: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let explain = |error| format!("{path}: {error}");
    let found: Vec<_> =
        CertificateDer::pem_file_iter(path).map_err(explain)?.collect::<Result<_, _>>().map_err(explain)?;
    if found.is_empty() { Err(format!("{path}: no certificate in it")) } else { Ok(found) }
}

#[derive(Debug)]
struct Verifier {
    check: Check,
    inner: Arc<WebPkiServerVerifier>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        host: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.check == Check::Nothing {
            return Ok(ServerCertVerified::assertion());
        }
        match self.inner.verify_server_cert(certificate, others, host, ocsp, now) {
            // The verifier compares the name last, so the certificate has passed all other checks.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if self.check == Check::Authority => Ok(ServerCertVerified::assertion()),
            checked => checked,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn faults_do_not_go_away_by_themselves() {
        for (error, is) in [
            (Error::InvalidCertificate(CertificateError::Expired), true),
            (Error::AlertReceived(AlertDescription::CertificateRequired), true),
            (Error::AlertReceived(AlertDescription::InternalError), false),
        ] {
            assert_eq!(is_fault(&io::Error::other(error)), is);
        }
        assert!(!is_fault(&io::ErrorKind::UnexpectedEof.into()));
    }
}
