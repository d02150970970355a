//! Asks a server to stop a statement.
//!
//! The client's own function closes the connection at once. `PgBouncer` then forgets the statement that it
//! should cancel, and version 1.18 exits ("bad client state"). For this reason, this module waits until the
//! other side closes the connection.

use core::future::{Ready, ready as at_once};
use core::task::{Context, Poll, ready};
use std::io;
use std::pin::Pin;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
#[cfg(unix)]
use tokio::net::UnixStream;
use tokio::time::timeout;
use tokio_postgres::config::Host;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_postgres::{CancelToken, Config, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

/// How long each request may take. A busy server can take several seconds to accept it, and `PgBouncer` 1.18
/// exits if the client gives up earlier.
const LONGEST: Duration = Duration::from_secs(10);

/// How long to wait after the first request for the statement to end. Each further wait is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// How many requests to send for a statement.
const MOST_REQUESTS: u32 = 5;

/// How many statements a store may be stopping at once. Each keeps its connection open, so without a limit they
/// would pile up behind a pooler whose server hangs. Once the limit is reached, the store closes its connection
/// without sending a request.
pub(super) const AT_ONCE: usize = 2;

/// Sends up to [`MOST_REQUESTS`] requests, until the statement has ended. The server ignores a request that arrives
/// before the statement. The client of `connection` has been dropped, so `connection` completes once the server has
/// answered.
pub(super) async fn until_ended<S: Future<Output = io::Result<()>>>(
    mut connection: impl Future + Unpin,
    request: impl Fn() -> S,
) {
    let mut pause = FIRST_PAUSE;
    for _ in 0..MOST_REQUESTS {
        let sent = timeout(LONGEST, request()).await;
        if sent.is_err() || timeout(pause, &mut connection).await.is_ok() {
            return;
        }
        pause *= 2;
    }
}

/// Sends the request, and returns once the server, or a pooler in front of it, has received it. `config` is
/// for a single host.
pub(super) async fn cancel(token: &CancelToken, config: &Config, tls: MakeRustlsConnect) -> io::Result<()> {
    let port = config.get_ports().first().copied().unwrap_or(5432);
    let name = match config.get_hosts().first() {
        #[cfg(unix)]
        Some(Host::Unix(folder)) => {
            let path = folder.join(format!(".s.PGSQL.{port}"));
            return send(token, UnixStream::connect(path).await?, "", tls).await;
        }
        Some(Host::Tcp(name)) => name.as_str(),
        _ => "",
    };
    let stream = match config.get_hostaddrs().first() {
        Some(&address) => TcpStream::connect((address, port)).await?,
        None => TcpStream::connect((name, port)).await?,
    };
    send(token, stream, name, tls).await
}

async fn send<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    token: &CancelToken,
    stream: S,
    host: &str,
    mut tls: MakeRustlsConnect,
) -> io::Result<()> {
    let stream = Lingering(stream);
    let sent = if host.is_empty() {
        // There is no certificate for a folder or a bare address.
        token.cancel_query_raw(stream, NoTls).await
    } else {
        let tls =
            MakeTlsConnect::<Lingering<S>>::make_tls_connect(&mut tls, host).map_err(io::Error::other)?;
        token.cancel_query_raw(stream, tls).await
    };
    sent.map_err(io::Error::other)
}

/// A stream whose shutdown only waits until the other side closes it.
struct Lingering<S>(S);

impl<S: AsyncRead + Unpin> AsyncRead for Lingering<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, into)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Lingering<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let mut room = [0; 64];
            let mut read = ReadBuf::new(&mut room);
            ready!(Pin::new(&mut self.0).poll_read(context, &mut read))?;
            if read.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

/// Returns the server process's number, which the client received when it connected. The client reveals this
/// number only in a request to stop a statement.
pub(super) async fn process_of(token: &CancelToken) -> Option<i32> {
    let mut request = Kept(Vec::new());
    token.cancel_query_raw(&mut request, NoServer).await.ok()?;
    // The request ends with the process's number and a secret.
    let (_, [a, b, c, d, ..]) = request.0.split_last_chunk::<8>()?;
    Some(i32::from_be_bytes([*a, *b, *c, *d]))
}

/// A stream that keeps the bytes the client writes, and sends them nowhere. If the client requests TLS, the
/// stream agrees.
struct Kept(Vec<u8>);

impl AsyncRead for Kept {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        into.put_slice(b"S");
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Kept {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.0.extend(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl TlsStream for &mut Kept {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

struct NoServer;

impl<'a> TlsConnect<&'a mut Kept> for NoServer {
    type Stream = &'a mut Kept;
    type Error = io::Error;
    type Future = Ready<io::Result<Self::Stream>>;

    fn connect(self, stream: &'a mut Kept) -> Self::Future {
        at_once(Ok(stream))
    }
}
