//! Listening: accepts connections, as many as may be open, and hands them to a protocol.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, Sleep, sleep, timeout};
use tokio_rustls::TlsAcceptor;

use super::shutdown::Ending;
use crate::failure::Failure;

/// How long a client may take to agree on TLS.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// What the listeners share.
#[derive(Clone)]
pub(crate) struct Door {
    /// Another one once the certificate was renewed.
    pub(crate) tls: Option<watch::Receiver<TlsAcceptor>>,
    pub(crate) places: Arc<Semaphore>,
    pub(crate) idle: Duration,
    pub(crate) ending: Ending,
}

/// What serves a connection.
pub(crate) trait Protocol: Clone + Send + Sync + 'static {
    const NAME: &'static str;

    /// Serves it until it ends.
    fn serve(&self, stream: Stream, ending: Ending) -> impl Future<Output = ()> + Send;
}

/// Every connection is a file, of which shells let a program have few: from now on as many as the system lets it.
#[cfg(unix)]
pub(crate) fn allow_many() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // Where it may not, it has fewer.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

#[cfg(not(unix))]
pub(crate) fn allow_many() {}

/// Takes the address. It listens at once: until one does, Linux lets several programs have the same port.
pub(crate) fn listen(flag: &str, address: SocketAddr) -> Result<TcpListener, Failure> {
    let listen = || {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        // Else connections of the server before it would hold the port. Windows means something else by it.
        #[cfg(unix)]
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        socket.listen(1024)
    };
    listen().map_err(|error: io::Error| match error.kind() {
        io::ErrorKind::AddrInUse => Failure::Io(format!(
            "{address} is in use by another program: end that one, or give {flag} another address"
        )),
        _ => Failure::io(format_args!("{flag} {address}"), &error),
    })
}

/// Accepts connections until the server ends.
pub(crate) async fn accept<P: Protocol>(listener: TcpListener, door: Door, protocol: P) {
    let mut ending = door.ending.clone();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = ending.begins() => return,
        };
        match accepted {
            Ok((stream, _)) => {
                // It waits for one of the others to end; those behind it wait in the system's queue.
                let place = tokio::select! {
                    place = Arc::clone(&door.places).acquire_owned() => place,
                    () = ending.begins() => return,
                };
                let Ok(place) = place else { return };
                drop(tokio::spawn(one(stream, door.clone(), protocol.clone(), place)));
            }
            Err(error) => {
                // The process has no file left, or the client went: others may come.
                tracing::warn!(protocol = P::NAME, "a connection was not accepted: {error}");
                sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

async fn one<P: Protocol>(stream: TcpStream, door: Door, protocol: P, place: OwnedSemaphorePermit) {
    let _ = stream.set_nodelay(true);
    let stream: Box<dyn Both> = match door.tls {
        None => Box::new(stream),
        Some(tls) => match timeout(HANDSHAKE, accept_tls(&tls, stream)).await {
            Ok(Ok(stream)) => Box::new(stream),
            Ok(Err(_)) | Err(_) => return,
        },
    };
    protocol.serve(Stream::new(stream, door.idle), door.ending).await;
    drop(place);
}

fn accept_tls(tls: &watch::Receiver<TlsAcceptor>, stream: TcpStream) -> tokio_rustls::Accept<TcpStream> {
    tls.borrow().accept(stream)
}

trait Both: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Both for S {}

/// A connection on which a read or a write fails if nothing has come or gone for too long.
pub(crate) struct Stream {
    inner: Box<dyn Both>,
    idle: Duration,
    sleep: Pin<Box<Sleep>>,
    /// Since when nothing came or went while something was to.
    is_waiting: bool,
}

impl Stream {
    fn new(inner: Box<dyn Both>, idle: Duration) -> Self {
        Self { inner, idle, sleep: Box::pin(sleep(idle)), is_waiting: false }
    }

    pub(crate) const fn idle(&self) -> Duration {
        self.idle
    }

    fn look<T>(&mut self, context: &mut Context<'_>, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.is_waiting = false;
            return polled;
        }
        if !self.is_waiting {
            self.is_waiting = true;
            self.sleep.as_mut().reset(Instant::now() + self.idle);
        }
        match self.sleep.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.inner).poll_read(context, buffer);
        self.look(context, polled)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.inner).poll_write(context, data);
        self.look(context, polled)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.inner).poll_flush(context);
        self.look(context, polled)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.inner).poll_shutdown(context);
        self.look(context, polled)
    }
}
