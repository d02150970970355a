//! A connection to one of the servers, and the requests sent over it.
//!
//! A session lasts only as long as its connection. The client uses no ephemeral znodes and no watches, so it
//! sends no pings. If a connection has been idle for so long that its session may have expired, the client
//! replaces the connection. The client closes the old session if it can do so without waiting. Otherwise, the
//! session expires on its own.

use core::fmt;
use core::time::Duration;
use std::io;

use polyflake::ThisProcess;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::jute::{AUTH, Access, Answer, CLOSE, MULTI, Op, Reader, Writer, read_multi, write_multi};
use crate::store::StoreError;
use crate::stores::hosts::{Hosts, Used};
use crate::url::Address;

/// The session timeout to request. It is the longest timeout that servers allow by default.
const SESSION_MS: i32 = 40_000;

/// The maximum length of an answer. No answer to these requests is that long.
const MOST: usize = 16 << 20;

/// The maximum number of requests sent before their answers are read.
const AT_ONCE: usize = 256;

/// The reason a request did not match the znode it found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Conflict {
    /// The znode, or a znode above it, does not exist.
    Absent,
    /// The znode already exists.
    Exists,
    /// The znode has another version.
    Version,
}

pub(super) struct Client {
    address: Address,
    connection: Option<Connection>,
    hosts: Hosts,
    /// The last transaction that this client has seen, across all of its sessions. A server that has not seen
    /// it yet refuses the session.
    zxid: i64,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("address", &self.address).finish_non_exhaustive()
    }
}

struct Connection {
    stream: TcpStream,
    /// The process that opened the connection. A forked child that drops the connection must not end its
    /// parent's session.
    process: ThisProcess,
    /// The ID of the last request.
    id: i32,
    /// True if there is a session and every request was sent in full, so that the next bytes begin a new
    /// request.
    is_whole: bool,
    session: Duration,
    used: Used,
}

impl Connection {
    fn is_fresh(&self) -> bool {
        u128::from(self.used.ago_ms()) < self.session.as_millis() * 3 / 4
    }

    async fn read(&mut self) -> io::Result<Vec<u8>> {
        let length = usize::try_from(self.stream.read_i32().await?).ok().filter(|&it| it <= MOST);
        let length = length.ok_or_else(unlike)?;
        let mut message = vec![0; length];
        self.stream.read_exact(&mut message).await?;
        Ok(message)
    }
}

impl Drop for Connection {
    /// Closes the session, so that the server does not have to keep it until it times out.
    fn drop(&mut self) {
        if self.is_whole && self.process.is_alive() {
            let id = self.id.checked_add(1).unwrap_or(1);
            // If the socket has no room for the request, the request is not sent.
            let _ = self.stream.try_write(&Writer::default().frame(&[id, CLOSE]));
        }
    }
}

/// Returns the error for an answer that ZooKeeper would never send.
fn unlike() -> io::Error {
    io::ErrorKind::InvalidData.into()
}

impl Client {
    pub(super) fn new(address: &Address) -> Self {
        Self { address: address.clone(), connection: None, hosts: Hosts::new(address), zxid: 0 }
    }

    pub(super) fn refused(&self, why: &str) -> StoreError {
        StoreError::Refused(format!("{}: {why}", self.address))
    }

    pub(super) fn unreachable(&self, why: &str) -> StoreError {
        StoreError::Unreachable(format!("{}: {why}", self.address))
    }

    /// Returns the access rights for the znodes that this client creates.
    pub(super) fn access(&self) -> Access {
        if self.auth().is_some() { Access::Creator } else { Access::Everyone }
    }

    /// Returns the user and the password in the form that `addauth digest` expects.
    fn auth(&self) -> Option<String> {
        let user = self.address.user()?;
        Some(format!("{user}:{}", self.address.password().unwrap_or_default()))
    }

    pub(super) fn disconnect(&mut self) {
        self.connection = None;
        self.hosts.turn();
    }

    async fn connect_to(&self, host: &str, port: u16) -> Result<Connection, StoreError> {
        let name = host.trim_matches(['[', ']']);
        let told = |e| self.told(&e);
        let stream = TcpStream::connect((name, port)).await.map_err(told)?;
        stream.set_nodelay(true).map_err(told)?;
        let mut connection = Connection {
            stream,
            process: ThisProcess::now(),
            id: 0,
            is_whole: false,
            session: Duration::ZERO,
            used: Used::now(),
        };
        let auth = self.auth();
        let mut frames = hello(self.zxid).frame(&[]);
        if let Some(auth) = &auth {
            let mut request = Writer::default();
            request.int(0).bytes(b"digest").bytes(auth.as_bytes());
            frames.extend(request.frame(&[-4, AUTH]));
        }
        connection.stream.write_all(&frames).await.map_err(told)?;
        let answer = connection.read().await.map_err(told)?;
        let mut answer = Reader(&answer);
        let (_version, session_ms) = answer.int().zip(answer.int()).ok_or_else(|| told(unlike()))?;
        connection.session = match session_ms.try_into() {
            Ok(ms @ 1..) => Duration::from_millis(ms),
            _ => return Err(self.failure(-112, "")),
        };
        if auth.is_some() {
            let answer = connection.read().await.map_err(told)?;
            let (_, _, code) = head(&mut Reader(&answer)).ok_or_else(|| told(unlike()))?;
            if code != 0 {
                return Err(self.failure(code, "the user"));
            }
        }
        connection.is_whole = true;
        Ok(connection)
    }

    /// Sends requests, each with a code and its body. Returns each answer's code and the bytes after its
    /// header. Keeps the connection only if the server answered all requests.
    async fn exchange(&mut self, requests: &[(i32, Writer)]) -> Result<Vec<(i32, Vec<u8>)>, StoreError> {
        let is_good = |it: &Connection| it.is_fresh() && !self.hosts.is_idle(it.used);
        let mut connection = match self.connection.take().filter(is_good) {
            Some(it) => it,
            None => self.hosts.connect(async |host, port| self.connect_to(host, port).await).await?,
        };
        let mut answers = Vec::with_capacity(requests.len());
        for part in requests.chunks(AT_ONCE) {
            let part = connection.exchange(part, &mut self.zxid).await.map_err(|e| self.amid(&e))?;
            answers.extend(part);
        }
        self.connection = Some(connection);
        Ok(answers)
    }

    /// Sends requests together. Each request sees the effects of the requests before it, and everything that
    /// this server has seen so far.
    pub(super) async fn calls(&mut self, ops: &[Op]) -> Result<Vec<Result<Answer, Conflict>>, StoreError> {
        let request = |op: &Op| {
            let mut body = Writer::default();
            op.write(&mut body);
            (op.code(), body)
        };
        let requests: Vec<_> = ops.iter().map(request).collect();
        let answers = self.exchange(&requests).await?;
        let read = |(op, (code, rest)): (&Op, (i32, Vec<u8>))| match conflict(code) {
            None if code == 0 => op.read(&mut Reader(&rest)).map(Ok).ok_or_else(|| self.amid(&unlike())),
            None => Err(self.failure(code, op.path())),
            Some(it) => Ok(Err(it)),
        };
        ops.iter().zip(answers).map(read).collect()
    }

    /// Sends a transaction, which carries out all requests or none.
    pub(super) async fn multi(&mut self, ops: &[Op]) -> Result<Result<Vec<Answer>, Conflict>, StoreError> {
        let mut body = Writer::default();
        write_multi(ops, &mut body);
        let path = ops.last().map_or("", Op::path);
        let answer = self.exchange(&[(MULTI, body)]).await?.pop();
        let result = match &answer {
            Some((0, rest)) => read_multi(ops, &mut Reader(rest)).ok_or_else(|| self.amid(&unlike()))?,
            Some((code, _)) => Err(*code),
            None => return Err(self.amid(&unlike())),
        };
        match result {
            Ok(answers) => Ok(Ok(answers)),
            Err(code) => conflict(code).map(Err).ok_or_else(|| self.failure(code, path)),
        }
    }

    /// Returns the error for a fault in the middle of a session. At that point, an invalid value means that
    /// the connection is broken.
    fn amid(&self, error: &io::Error) -> StoreError {
        match error.kind() {
            io::ErrorKind::InvalidData => self.unreachable("a reply does not match its request"),
            _ => self.told(error),
        }
    }

    fn told(&self, error: &io::Error) -> StoreError {
        match error.kind() {
            io::ErrorKind::InvalidData => self.refused("its reply is not ZooKeeper's"),
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => self
                .unreachable(
                    "it closed the connection: it stops, has no majority, is behind what this process has seen (or \
                     was replaced), has too many connections from this host (maxClientCnxns), or its port is for TLS",
                ),
            _ => self.unreachable(&error.to_string()),
        }
    }

    /// Returns the error for a `KeeperException` code.
    fn failure(&self, code: i32, path: &str) -> StoreError {
        match code {
            -4 => self.unreachable("ConnectionLoss"),
            -6 => self.refused("Unimplemented: ZooKeeper 3.5 or later is needed"),
            -7 => self.unreachable("OperationTimeout"),
            -102 if self.auth().is_some() => self.refused(&format!(
                "NoAuth: the password is wrong, or the user has no right to change {path}"
            )),
            -102 => self.refused(&format!("NoAuth: {path} is not for everyone; give user:password@")),
            -111 => self.refused(&format!("NotEmpty: {path} has znodes below it")),
            -112 => self.unreachable("SessionExpired"),
            -114 => self.refused("InvalidACL"),
            -115 => self.refused("AuthFailed: it does not take a user and a password (scheme digest)"),
            -118 => self.unreachable("SessionMoved"),
            -119 => self.unreachable("NotReadOnly: the server has no majority and only reads"),
            -125 => self.refused(&format!("QuotaExceeded: {path}")),
            // The server could not read the request, or does not accept such a path.
            -8 | -5 => self.refused(&format!("error {code} for {path}")),
            _ => self.unreachable(&format!("error {code}")),
        }
    }
}

impl Connection {
    async fn exchange(
        &mut self,
        requests: &[(i32, Writer)],
        zxid: &mut i64,
    ) -> io::Result<Vec<(i32, Vec<u8>)>> {
        let (first, mut frames) = (self.id, Vec::new());
        for (code, body) in requests {
            self.id = self.id.checked_add(1).unwrap_or(1);
            frames.extend(body.frame(&[self.id, *code]));
        }
        self.is_whole = false;
        self.stream.write_all(&frames).await?;
        self.is_whole = true;
        let mut answers = Vec::with_capacity(requests.len());
        let mut id = first;
        for _ in requests {
            id = id.checked_add(1).unwrap_or(1);
            let answer = self.read().await?;
            let mut rest = Reader(&answer);
            match head(&mut rest) {
                // The answers arrive in the order of the requests.
                Some((of, seen, code)) if of == id => {
                    *zxid = seen.max(*zxid);
                    answers.push((code, rest.0.into()));
                }
                _ => return Err(unlike()),
            }
        }
        // Requests that follow immediately go to the same server or fail, since another server may be behind.
        self.used = Used::now();
        Ok(answers)
    }
}

/// Returns the request that opens a session: version 0, the last transaction seen so far, a new session, and
/// no read-only server.
pub(super) fn hello(zxid: i64) -> Writer {
    let mut hello = Writer::default();
    hello.int(0).long(zxid).int(SESSION_MS).long(0).bytes(&[0; 16]).bool(false);
    hello
}

/// Returns the ID of the request that an answer belongs to, the server's last transaction, and the answer's
/// code.
fn head(answer: &mut Reader<'_>) -> Option<(i32, i64, i32)> {
    Some((answer.int()?, answer.long()?, answer.int()?))
}

fn conflict(code: i32) -> Option<Conflict> {
    match code {
        -101 => Some(Conflict::Absent),
        -103 => Some(Conflict::Version),
        -110 => Some(Conflict::Exists),
        _ => None,
    }
}
