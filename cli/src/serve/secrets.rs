//! The files with secrets, which are reread after SIGHUP.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use super::service::Service;
use super::{auth, config, tls};
use crate::failure::Failure;

/// The files with the tokens, the certificates and the key, and the places that use them.
pub(crate) struct Secrets {
    service: Arc<Service>,
    token_file: Option<PathBuf>,
    tls: Option<((PathBuf, PathBuf), watch::Sender<TlsAcceptor>)>,
}

impl Secrets {
    /// Reads the certificates and the key, and warns if other users can read a file with a secret. The
    /// receiver is sent whatever [`reload`](Self::reload) reads.
    pub(crate) fn read(
        service: Arc<Service>,
        token_file: Option<PathBuf>,
        tls: Option<(PathBuf, PathBuf)>,
    ) -> Result<(Self, Option<watch::Receiver<TlsAcceptor>>), Failure> {
        let acceptor = tls.as_ref().map(|(cert, key)| tls::acceptor(cert, key)).transpose()?;
        token_file.iter().chain(tls.iter().map(|(_, key)| key)).for_each(|file| auth::warn_if_open(file));
        let (sender, receiver) = acceptor.map(watch::channel).unzip();
        Ok((Self { service, token_file, tls: tls.zip(sender) }, receiver))
    }

    /// Rereads the files, and logs whether that worked.
    pub(crate) fn reload(&self) {
        match self.read_again() {
            Ok(()) => tracing::info!("reloaded the certificate and the tokens"),
            Err(error) => {
                tracing::warn!("not reloaded; the earlier certificate and tokens stay: {}", error.message());
            }
        }
    }

    /// Replaces nothing if a file cannot be read.
    fn read_again(&self) -> Result<(), Failure> {
        let tokens = self.token_file.as_deref().map(config::tokens_in).transpose()?;
        if let Some(((cert, key), acceptor)) = &self.tls {
            acceptor.send_replace(tls::acceptor(cert, key)?);
        }
        if let Some(tokens) = tokens {
            self.service.token.replace(tokens);
        }
        Ok(())
    }
}
