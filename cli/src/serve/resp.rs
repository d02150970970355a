//! RESP, the Redis protocol, for Redis clients.

mod commands;
mod frames;
mod reply;

use std::ops::Range;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf as _, BytesMut};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{Instant, timeout_at};

use super::clients::Client;
use super::listen::{Protocol, Stream};
use super::service::Service;
use super::shutdown::Ending;
use commands::{After, Session};
use reply::Reply;

/// Replies are sent once they amount to this many bytes.
const FULL: usize = 64 * 1024;
/// Each connection may hold this many bytes of replies, regardless of the other connections.
const FEW: usize = 4 * 1024;
/// An idle connection keeps at most this much of each buffer.
const KEPT: usize = 16 * 1024;

/// How long the server keeps reading requests that arrived before the shutdown.
const HERE: Duration = Duration::from_millis(100);

/// Serves RESP connections.
#[derive(Clone)]
pub(crate) struct Resp(Arc<Service>);

impl Resp {
    pub(crate) const fn new(service: Arc<Service>) -> Self {
        Self(service)
    }
}

impl Protocol for Resp {
    const NAME: &'static str = "resp";

    async fn serve(&self, mut stream: Stream, client: Arc<Client>, mut ending: Ending) {
        let _open = self.0.metrics.resp().begin();
        let mut session = Session::new(Arc::clone(&self.0), Arc::clone(&client));
        let (mut input, mut output) = (BytesMut::new(), BytesMut::new());
        // The deadline for a command that has begun. Otherwise, only the stream's own limit applies.
        let mut deadline = None;
        // Created only once, because each such future joins and leaves a list that all connections share.
        let mut ends = pin!(ending.begins());
        let mut last = None;
        loop {
            let had = input.len();
            let after = session.run_all(&mut input, &mut output, &mut stream).await;
            client.admit(session.is_admitted());
            if !output.is_empty() && stream.write_all(&output).await.is_err() {
                return;
            }
            output.clear();
            session.sent();
            if output.capacity() > KEPT {
                output = BytesMut::new();
            }
            if after == After::Close {
                let _ = stream.shutdown().await;
                return;
            }
            if input.is_empty() {
                deadline = None;
                if input.capacity() > 2 * KEPT {
                    input = BytesMut::new();
                }
            } else if deadline.is_none() || input.len() < had {
                deadline = Some(Instant::now() + stream.idle());
            }
            let room = session.limit().saturating_sub(input.len()).max(1);
            input.reserve(room.min(KEPT));
            let mut limited = (&mut stream).take(room as u64);
            let read = async {
                let read = limited.read_buf(&mut input);
                match last.or(deadline) {
                    None => read.await.ok(),
                    // The command must be complete by then, no matter how slowly it arrives.
                    Some(deadline) => timeout_at(deadline, read).await.ok()?.ok(),
                }
            };
            tokio::select! {
                read = read => match read {
                    Some(1..) => {}
                    _ => return,
                },
                () = &mut ends, if last.is_none() => last = Some(Instant::now() + HERE),
            }
        }
    }
}

impl Session {
    /// Runs all complete commands, and collects their replies.
    async fn run_all(&mut self, input: &mut BytesMut, output: &mut BytesMut, stream: &mut Stream) -> After {
        let mut args = Vec::new();
        loop {
            let used = match frames::command(input, self.limit(), &mut args) {
                Ok(Some(used)) => used,
                Ok(None) => return After::GoOn,
                Err(why) => {
                    Reply::error("ERR", &format!("Protocol error: {why}")).write(self.version(), output);
                    return After::Close;
                }
            };
            if let Some(reply) = self.incr(input, &args) {
                reply.write(self.version(), output);
            } else if !args.is_empty() {
                let words: Vec<&[u8]> = args.iter().map(|range| word(input, range)).collect();
                // Boxed, since few of the many connections run such a command at the same time.
                let (reply, after) = Box::pin(self.run(&words)).await;
                reply.write(self.version(), output);
                if after == After::Close {
                    return After::Close;
                }
            }
            input.advance(used);
            if output.len() >= FEW && (output.len() >= FULL || !self.has_room(2 * FULL)) {
                self.keep(output.capacity());
                if stream.write_all(output).await.is_err() {
                    return After::Close;
                }
                if output.capacity() > 2 * FULL {
                    *output = BytesMut::new();
                }
                output.clear();
                self.sent();
            }
        }
    }

    /// Answers the request that nearly all clients send, `INCR name`, if that is possible at once.
    fn incr(&self, input: &[u8], args: &[Range<usize>]) -> Option<Reply> {
        let [command, name] = args else { return None };
        if !word(input, command).eq_ignore_ascii_case(b"incr") {
            return None;
        }
        std::str::from_utf8(word(input, name)).ok().and_then(|name| self.next_at_once(name))
    }
}

fn word<'a>(input: &'a [u8], range: &Range<usize>) -> &'a [u8] {
    input.get(range.clone()).unwrap_or_default()
}
