//! Records in etcd, through each server's JSON gateway, `/v3/kv/txn`.
//!
//! Each record has a key. A change is one transaction that compares the values of the record and its guard.
//! Polyflake does not use etcd's own leases. Instead, the record contains the expiry, based on the time in
//! the replies' `Date` header, so that an expired lease looks the same in every store.

mod records;

use core::fmt;
use std::collections::HashMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, DATE, HOST};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::hosts::{Hosts, Used};
use super::tls;
use crate::store::StoreError;
use crate::url::Address;

/// The prefix of all of Polyflake's keys, in every namespace.
const PREFIX: &str = "polyflake/";

/// The maximum length of an answer. No answer to these requests is that long.
const MOST: usize = 16 << 20;

/// Leases and counters in etcd.
pub struct EtcdStore {
    address: Address,
    tls: Option<Arc<ClientConfig>>,
    connection: Option<Connection>,
    hosts: Hosts,
    /// The values that this store last read or wrote, by key, so that the next change can skip the read.
    known: HashMap<String, String>,
}

impl fmt::Debug for EtcdStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdStore").field("address", &self.address).finish_non_exhaustive()
    }
}

struct Connection {
    sender: SendRequest<Full<Bytes>>,
    host: String,
    token: Option<String>,
    cluster: String,
    used: Used,
}

#[derive(Deserialize)]
struct Reply {
    header: Header,
    #[serde(default)]
    succeeded: bool,
    #[serde(default)]
    responses: Vec<Part>,
    #[serde(skip)]
    now_ms: u64,
}

#[derive(Deserialize)]
struct Header {
    cluster_id: String,
}

#[derive(Deserialize)]
struct Part {
    #[serde(default)]
    response_range: Option<Range>,
}

#[derive(Deserialize)]
struct Range {
    #[serde(default)]
    kvs: Vec<Pair>,
}

#[derive(Deserialize)]
struct Pair {
    key: String,
    #[serde(default)]
    value: String,
}

/// The reason a request received no usable answer.
enum Fault {
    /// The token is no longer valid.
    Token,
    Store(StoreError),
}

impl EtcdStore {
    /// Creates the store. It connects on the first call.
    ///
    /// # Errors
    ///
    /// Fails if a certificate cannot be read.
    pub fn new(address: &Address) -> Result<Self, StoreError> {
        let tls = if address.is_tls() {
            let [authorities, certificate, key] = ["cacert", "cert", "key"].map(|it| address.parameter(it));
            let files = tls::Files { authorities, certificate, key };
            let mut config = tls::config(tls::Check::Host, &files)
                .map_err(|e| StoreError::Refused(format!("{address}: {e}")))?;
            config.alpn_protocols = vec![b"http/1.1".to_vec()];
            Some(Arc::new(config))
        } else {
            None
        };
        let hosts = Hosts::new(address);
        Ok(Self { address: address.clone(), tls, connection: None, hosts, known: HashMap::new() })
    }

    fn refused(&self, why: &str) -> StoreError {
        StoreError::Refused(format!("{}: {why}", self.address))
    }

    fn unreachable(&self, why: &str) -> StoreError {
        StoreError::Unreachable(format!("{}: {why}", self.address))
    }

    /// Returns the existing connection, or a new one.
    async fn connection(&mut self) -> Result<Connection, StoreError> {
        let is_good = |it: &Connection| !it.sender.is_closed() && !self.hosts.is_idle(it.used);
        if let Some(it) = self.connection.take().filter(is_good) {
            return Ok(it);
        }
        // The new connection may lead to a different store with different values.
        self.known.clear();
        self.hosts.connect(async |host, port| self.connect_to(host, port).await).await
    }

    async fn connect_to(&self, host: &str, port: u16) -> Result<Connection, StoreError> {
        let name = host.trim_matches(['[', ']']);
        let told = |e: std::io::Error| {
            let text = e.to_string();
            if tls::is_fault(&e) { self.refused(&text) } else { self.unreachable(&text) }
        };
        let stream = TcpStream::connect((name, port)).await.map_err(told)?;
        stream.set_nodelay(true).map_err(told)?;
        let sender = match &self.tls {
            Some(config) => {
                let server = ServerName::try_from(name.to_owned())
                    .map_err(|_| self.refused("a host name that no certificate can have"))?;
                let connector = TlsConnector::from(Arc::clone(config));
                self.handshake(connector.connect(server, stream).await.map_err(told)?).await?
            }
            None => self.handshake(stream).await?,
        };
        let host = format!("{host}:{port}");
        let mut connection =
            Connection { sender, host, token: None, cluster: String::new(), used: Used::now() };
        self.authenticate(&mut connection).await?;
        // Neither a member without a leader nor a learner answers a linearizable read. The user may have
        // rights only in this namespace.
        let any = range(&format!("{PREFIX}{}/", self.address.namespace), None, &json!({}));
        let reply = self.post(&mut connection, "/v3/kv/txn", &json!({ "success": [any] })).await;
        connection.cluster = reply.map_err(|e| self.told(e))?.header.cluster_id;
        Ok(connection)
    }

    async fn handshake<T>(&self, stream: T) -> Result<SendRequest<Full<Bytes>>, StoreError>
    where
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (sender, connection) =
            handshake(TokioIo::new(stream)).await.map_err(|e| self.unreachable(&e.to_string()))?;
        // The task ends when the sender is dropped.
        drop(tokio::spawn(connection));
        Ok(sender)
    }

    async fn authenticate(&self, connection: &mut Connection) -> Result<(), StoreError> {
        let Some(name) = self.address.user() else { return Ok(()) };
        let password = self.address.password().unwrap_or_default();
        connection.token = None;
        let request = json!({ "name": name, "password": password });
        let (status, _, body) = self.send(connection, "/v3/auth/authenticate", &request).await?;
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        connection.token = match body.get("token") {
            Some(Value::String(token)) if status == StatusCode::OK => Some(token.clone()),
            // The server does not use authentication, so no token is needed.
            _ if body.get("code") == Some(&json!(9)) => None,
            _ => match self.fault(status, &body) {
                Fault::Store(e) => return Err(e),
                Fault::Token => return Err(self.refused("user or password is wrong")),
            },
        };
        Ok(())
    }

    /// Sends one request unchanged.
    async fn send(
        &self,
        connection: &mut Connection,
        path: &str,
        body: &Value,
    ) -> Result<(StatusCode, Option<u64>, Bytes), StoreError> {
        let mut request =
            Request::post(path).header(HOST, &connection.host).header(CONTENT_TYPE, "application/json");
        if let Some(token) = &connection.token {
            request = request.header(AUTHORIZATION, token);
        }
        let request = request
            .body(Full::new(Bytes::from(body.to_string())))
            .map_err(|_| self.refused("a request that HTTP does not allow"))?;
        let told = |e: hyper::Error| self.unreachable(&e.to_string());
        connection.sender.ready().await.map_err(told)?;
        let reply = connection.sender.send_request(request).await.map_err(told)?;
        let status = reply.status();
        let now_ms = reply.headers().get(DATE).and_then(|it| read_date(it.to_str().ok()?));
        let body = Limited::new(reply.into_body(), MOST).collect().await.map_err(|e| {
            if e.is::<LengthLimitError>() {
                self.refused(&format!("its answer is longer than {} MB, and etcd's are not", MOST >> 20))
            } else {
                self.unreachable(&e.to_string())
            }
        })?;
        let body = body.to_bytes();
        Ok((status, now_ms, body))
    }

    async fn post(&self, connection: &mut Connection, path: &str, body: &Value) -> Result<Reply, Fault> {
        let (status, now_ms, body) = self.send(connection, path, body).await.map_err(Fault::Store)?;
        if status != StatusCode::OK {
            return Err(self.fault(status, &serde_json::from_slice(&body).unwrap_or_default()));
        }
        let unlike = || Fault::Store(self.refused("its reply is not etcd's"));
        let mut reply: Reply = serde_json::from_slice(&body).map_err(|_| unlike())?;
        reply.now_ms = now_ms.ok_or_else(unlike)?;
        Ok(reply)
    }

    /// Converts the gRPC code in the body to a fault.
    fn fault(&self, status: StatusCode, body: &Value) -> Fault {
        let text = ["message", "error"].iter().find_map(|it| body.get(it)?.as_str());
        let text = text.map_or_else(|| format!("HTTP status {status}"), ToOwned::to_owned);
        let code = body.get("code").and_then(Value::as_u64);
        if code == Some(16) || text.contains("revision of auth store is old") {
            return Fault::Token;
        }
        Fault::Store(match (code, status) {
            // These codes mean invalid argument, not found, permission denied, failed precondition, and not
            // implemented.
            (Some(3 | 5 | 7 | 9 | 12), _) => self.refused(&text),
            (None, StatusCode::NOT_FOUND) => {
                self.refused("it has no JSON gateway at /v3: etcd 3.4 or later, with its gateway switched on")
            }
            (None, _) if status.is_client_error() => self.refused(&text),
            _ => self.unreachable(&text),
        })
    }

    fn told(&self, fault: Fault) -> StoreError {
        match fault {
            Fault::Store(error) => error,
            Fault::Token => self.refused("it rejected its own token"),
        }
    }

    /// Sends one transaction. Keeps the connection only if the server answered the transaction.
    async fn txn(&mut self, body: &Value) -> Result<Reply, StoreError> {
        let mut connection = self.connection().await?;
        let reply = match self.post(&mut connection, "/v3/kv/txn", body).await {
            // Tokens expire after a few minutes. The request changed nothing.
            Err(Fault::Token) if connection.token.is_some() => {
                self.authenticate(&mut connection).await?;
                self.post(&mut connection, "/v3/kv/txn", body).await
            }
            Err(Fault::Token) => Err(Fault::Store(self.refused("it asks for a user and a password"))),
            it => it,
        };
        let reply = reply.map_err(|e| self.told(e))?;
        if reply.header.cluster_id != connection.cluster {
            return Err(self.unreachable("a different cluster answered"));
        }
        connection.used = Used::now();
        self.connection = Some(connection);
        Ok(reply)
    }

    fn decode(&self, pair: &Pair) -> Result<(String, String), StoreError> {
        let text = |it: &str| STANDARD.decode(it).ok().and_then(|it| String::from_utf8(it).ok());
        let both = text(&pair.key).zip(text(&pair.value));
        both.ok_or_else(|| self.refused("a record is not a text"))
    }
}

/// Returns a range request, for one key or for all keys that start with `key`.
fn range(key: &str, prefix: Option<&str>, more: &Value) -> Value {
    let mut it = more.clone();
    it["key"] = json!(STANDARD.encode(key));
    if let Some(prefix) = prefix {
        // Prefixes end in a slash, and `0` is the next character in ASCII.
        it["range_end"] = json!(STANDARD.encode(format!("{}0", prefix.trim_end_matches('/'))));
    }
    json!({ "request_range": it })
}

fn read_date(text: &str) -> Option<u64> {
    let since = httpdate::parse_http_date(text).ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    u64::try_from(since.as_millis()).ok()
}
