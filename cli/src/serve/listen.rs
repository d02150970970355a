//! Listens and accepts connections, up to the limit, and hands them to a protocol.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{Instant, Sleep, sleep, timeout};
use tokio_rustls::TlsAcceptor;

use super::clients::{Client, Places, Seat};
use super::shutdown::Ending;
use crate::failure::Failure;

/// How long a client may take to complete the TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// The same limit once the server is shutting down.
const AT_ONCE: Duration = Duration::from_secs(1);
/// How many connections may wait to be accepted.
const QUEUE: u32 = 1024;
/// How many bytes of replies the kernel buffers for a connection; Linux doubles this. By default, it would buffer up to
/// 4 MiB for a client that does not read, in addition to `--max-output`.
const SEND_BUFFER: u32 = 128 * 1024;
/// How often a listener logs the same problem.
const COMPLAIN_EVERY: Duration = Duration::from_secs(10);

/// The state that the listeners share.
#[derive(Clone)]
pub(crate) struct Door {
    /// Replaced when the certificate is renewed.
    pub(crate) tls: Option<watch::Receiver<TlsAcceptor>>,
    pub(crate) places: Arc<Places>,
    pub(crate) idle: Duration,
    /// Whether clients need no token.
    pub(crate) is_open: bool,
    pub(crate) ending: Ending,
}

/// Serves connections.
pub(crate) trait Protocol: Clone + Send + Sync + 'static {
    const NAME: &'static str;

    /// Serves the connection until it closes.
    fn serve(&self, stream: Stream, client: Arc<Client>, ending: Ending) -> impl Future<Output = ()> + Send;
}

/// Every connection is an open file, and shells allow a program only a few. This raises the limit to the system's
/// maximum, and returns it if there is one.
#[cfg(unix)]
pub(crate) fn allow_many() -> Option<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // If that is not allowed, the limit stays lower.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    getrlimit(Resource::Nofile).current
}

#[cfg(not(unix))]
pub(crate) fn allow_many() -> Option<u64> {
    None
}

/// Binds the address. The socket listens at once, because Linux lets several programs bind a port until one of them
/// listens.
pub(crate) fn listen(flag: &str, address: SocketAddr) -> Result<TcpListener, Failure> {
    let listen = || {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        // Otherwise, the previous server's connections would hold the port. On Windows, the option means something
        // else.
        #[cfg(unix)]
        socket.set_reuseaddr(true)?;
        // Accepted connections inherit it.
        socket.set_send_buffer_size(SEND_BUFFER)?;
        socket.bind(address)?;
        socket.listen(QUEUE)
    };
    listen().map_err(|error: io::Error| match error.kind() {
        io::ErrorKind::AddrInUse => Failure::Io(format!(
            "{address} is in use by another program: end that one, or give {flag} another address"
        )),
        _ => Failure::io(format_args!("{flag} {address}"), &error),
    })
}

/// Accepts connections until the server shuts down.
pub(crate) async fn accept<P: Protocol>(listener: TcpListener, door: Door, protocol: P) {
    let mut ending = door.ending.clone();
    let mut complained: Option<Instant> = None;
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = ending.begins() => break,
        };
        let why = match accepted {
            Ok((stream, from)) => match door.places.seat(from.ip()) {
                Some(seat) => {
                    // If the server is full, this connection waits for another to close. Those behind it wait in the
                    // system's queue.
                    let place = tokio::select! {
                        // Take a free place even if the server starts shutting down right now.
                        biased;
                        place = door.places.place() => place,
                        () = ending.begins() => return,
                    };
                    let Ok(place) = place else { return };
                    begin(stream, from, &door, &protocol, (place, seat));
                    continue;
                }
                None => format!("{from} already has as many connections as one address may have"),
            },
            Err(error) => {
                // The process has no file descriptors left, or the client went away: others may still connect.
                sleep(Duration::from_millis(50)).await;
                error.to_string()
            }
        };
        if complained.is_none_or(|at| at.elapsed() >= COMPLAIN_EVERY) {
            complained = Some(Instant::now());
            tracing::warn!(protocol = P::NAME, "a connection was not accepted: {why}");
        }
    }
    // Also serve connections in the system's queue, as long as places are free.
    let Ok(listener) = listener.into_std() else { return };
    for _ in 0..QUEUE {
        let Ok((stream, from)) = listener.accept() else { return };
        let stream = stream.set_nonblocking(true).and_then(|()| TcpStream::from_std(stream));
        let (Ok(stream), Some(seat)) = (stream, door.places.seat(from.ip())) else { continue };
        let Some(place) = door.places.free_place() else { return };
        begin(stream, from, &door, &protocol, (place, seat));
    }
}

fn begin<P: Protocol>(
    stream: TcpStream,
    from: SocketAddr,
    door: &Door,
    protocol: &P,
    place: (OwnedSemaphorePermit, Seat),
) {
    let client = Arc::new(Client::new(from.ip(), door.is_open));
    let serving = one(stream, door.clone(), protocol.clone(), Arc::clone(&client), place);
    let task = tokio::spawn(serving).abort_handle();
    if !door.is_open {
        door.places.watch(&client, task);
    }
}

async fn one<P: Protocol>(
    stream: TcpStream,
    door: Door,
    protocol: P,
    client: Arc<Client>,
    place: (OwnedSemaphorePermit, Seat),
) {
    let _ = stream.set_nodelay(true);
    let stream: Box<dyn Both> = match door.tls {
        None => Box::new(stream),
        Some(tls) => {
            let mut ending = door.ending.clone();
            // Boxed: otherwise each connection's task would keep this memory until it ends.
            let mut agreed = Box::pin(timeout(HANDSHAKE, accept_tls(&tls, stream)));
            let agreed = tokio::select! {
                agreed = agreed.as_mut() => agreed,
                // A silent connection must not delay the shutdown.
                () = ending.begins() => timeout(AT_ONCE, agreed).await.and_then(|agreed| agreed),
            };
            match agreed {
                Ok(Ok(stream)) => Box::new(stream),
                Ok(Err(_)) | Err(_) => return,
            }
        }
    };
    protocol.serve(Stream::new(stream, door.idle, Arc::clone(&client)), client, door.ending).await;
    drop(place);
}

fn accept_tls(tls: &watch::Receiver<TlsAcceptor>, stream: TcpStream) -> tokio_rustls::Accept<TcpStream> {
    tls.borrow().accept(stream)
}

trait Both: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Both for S {}

/// A connection on which a read or a write fails if no bytes have moved for too long, or if its client has missed its deadline.
pub(crate) struct Stream {
    inner: Box<dyn Both>,
    idle: Duration,
    client: Arc<Client>,
    sleep: Pin<Box<Sleep>>,
    /// The time at which bytes stopped moving although some were due.
    waiting: Option<Instant>,
    /// Bytes that have already arrived and are read first.
    ahead: Bytes,
}

impl Stream {
    fn new(inner: Box<dyn Both>, idle: Duration, client: Arc<Client>) -> Self {
        Self { inner, idle, client, sleep: Box::pin(sleep(idle)), waiting: None, ahead: Bytes::new() }
    }

    pub(crate) const fn idle(&self) -> Duration {
        self.idle
    }

    /// Puts these bytes back, to be read again.
    pub(crate) fn put_back(&mut self, bytes: Bytes) {
        self.ahead = bytes;
    }

    fn look<T>(&mut self, context: &mut Context<'_>, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.waiting = None;
            return polled;
        }
        let since = *self.waiting.get_or_insert_with(Instant::now);
        let until = self.client.deadline().map_or(since + self.idle, |at| at.min(since + self.idle));
        if until != self.sleep.deadline() {
            self.sleep.as_mut().reset(until);
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
        if !self.ahead.is_empty() {
            let count = self.ahead.len().min(buffer.remaining());
            buffer.put_slice(&self.ahead.split_to(count));
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.inner).poll_read(context, buffer);
        let count = buffer.filled().len() - before;
        self.client.read(count);
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

    /// Lets HTTP write answers without copying them: copies would not count against any memory limit.
    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.inner).poll_write_vectored(context, parts);
        self.look(context, polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
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
