//! Redis: a single server, the master that Sentinel reports, or a cluster.
//!
//! A group of records is one hash. Each call that uses records is one script, which reads the server's time
//! and its replication ID in the same step. After a restart or a takeover, the server has a different ID.

mod connection;
mod names;
mod records;

use core::fmt;

use redis::{ClientTlsConfig, ErrorKind, FromRedisValue, RedisError, TlsCertificates, Value};

use self::connection::Connection;
use crate::store::StoreError;
use crate::url::{Address, Scheme};

/// Leases and counters in Redis.
pub struct RedisStore {
    address: Address,
    password: Option<String>,
    certificates: Option<TlsCertificates>,
    connection: Option<Connection>,
    /// The host that the next attempt starts with.
    turn: usize,
    /// The number of replicas that may lack acknowledged writes, according to the server that answered last.
    replicas: u64,
    /// The incarnations of servers that have replicas, but have never been replicas themselves since they
    /// started.
    first_masters: Vec<String>,
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore").field("address", &self.address).finish_non_exhaustive()
    }
}

impl RedisStore {
    /// Creates the store. It connects on the first call.
    ///
    /// # Errors
    ///
    /// Fails if a certificate cannot be read.
    pub fn new(address: &Address) -> Result<Self, StoreError> {
        let certificates = if address.is_tls() {
            // The client uses the process's default TLS provider. If the program has set its own provider,
            // that provider stays in place.
            let _ = rustls::crypto::ring::default_provider().install_default();
            let root_cert = read_file(address, "ssl_ca_certs")?;
            let pair = (read_file(address, "ssl_certfile")?, read_file(address, "ssl_keyfile")?);
            let client_tls = match pair {
                (Some(client_cert), Some(client_key)) => Some(ClientTlsConfig { client_cert, client_key }),
                (None, None) => None,
                _ => {
                    return Err(StoreError::Refused(format!(
                        "{address}: ssl_certfile and ssl_keyfile go together"
                    )));
                }
            };
            Some(TlsCertificates { client_tls, root_cert })
        } else {
            None
        };
        let (address, password) = (address.clone(), address.password());
        Ok(Self {
            address,
            password,
            certificates,
            connection: None,
            turn: 0,
            replicas: u64::MAX,
            first_masters: Vec::new(),
        })
    }

    fn refused(&self, why: &str) -> StoreError {
        StoreError::Refused(format!("{}: {why}", self.address))
    }

    fn unreachable(&self, why: &str) -> StoreError {
        StoreError::Unreachable(format!("{}: {why}", self.address))
    }

    /// Returns a script's reply if a master sent it.
    fn reply(&self, value: Value, is_new: bool) -> Result<Reply, StoreError> {
        let reply = Reply::read(value).ok_or_else(|| self.refused("its reply is not Redis's"))?;
        match &*reply.status {
            // This server used to be a master. Connecting again finds the server that took over.
            "replica" if self.address.scheme() != Scheme::Redis || !is_new => {
                Err(self.unreachable("a replica answered: a failover is under way"))
            }
            "replica" => Err(self.refused("it is a replica: connect to its master")),
            "nameless" => {
                Err(self
                    .refused("its INFO has no replication ID, which Polyflake needs to notice lost writes"))
            }
            _ => Ok(reply),
        }
    }

    /// Waits until enough replicas have the last call's writes.
    async fn confirm(&self, connection: &mut Connection) -> Result<(), StoreError> {
        let replicas = self.address.replicas;
        if replicas == 0 {
            return Ok(());
        }
        let confirmed = self.confirmed(connection).await.map_err(|e| self.told(&e, false))?;
        if confirmed < replicas {
            return Err(self.unreachable(&format!(
                "{confirmed} of {replicas} replicas confirmed a change within {} ms",
                self.wait_ms()
            )));
        }
        Ok(())
    }

    fn told(&self, error: &RedisError, is_new: bool) -> StoreError {
        let (may_mend, text) = self.judge(error, is_new);
        if may_mend { self.unreachable(&text) } else { self.refused(&text) }
    }

    /// Returns whether the server may recover without any change on the client's side, along with a message
    /// that helps the user solve the problem.
    fn judge(&self, error: &RedisError, is_new: bool) -> (bool, String) {
        // The first command that failed reveals the reason. The other failures follow from it.
        let server = error.clone().into_server_errors().and_then(|it| it.first().map(|it| it.1.clone()));
        let (code, detail) = server.as_ref().map_or((None, None), |it| (Some(it.code()), it.details()));
        let mut text = match (code, detail) {
            (Some(code), Some(detail)) => format!("{code} {detail}"),
            (Some(code), None) => code.to_owned(),
            (None, _) => error.to_string(),
        };
        // If Redis does not know a command, its error repeats the command's arguments.
        if let Some(end) = text.find(", with args") {
            text.truncate(end);
        }
        let code = code.or_else(|| error.code());
        let secrets = [self.password.clone(), self.address.parameter("sentinel_password")];
        if secrets.iter().flatten().any(|it| text.contains(it.as_str())) {
            text = code.map_or_else(|| error.category().to_owned(), ToOwned::to_owned);
        }
        let may_mend = match (error.kind(), code) {
            // The server is starting or failing over, is out of memory or disk space, or has too few
            // replicas. It recovers without any change on the client's side.
            (
                _,
                Some(
                    "LOADING" | "MASTERDOWN" | "CLUSTERDOWN" | "TRYAGAIN" | "BUSY" | "UNKILLABLE" | "OOM"
                    | "MISCONF" | "NOREPLICAS" | "EXECABORT",
                ),
            ) => true,
            (_, Some("READONLY")) => self.address.scheme() != Scheme::Redis || !is_new,
            (_, Some("MOVED" | "ASK")) if self.address.scheme() == Scheme::RedisCluster => true,
            (_, Some("MOVED" | "ASK" | "CROSSSLOT")) => {
                return (false, "it is a Redis Cluster: the address starts with redis-cluster://".into());
            }
            (_, Some(_)) => text.contains("max number of clients"),
            (ErrorKind::AuthenticationFailed | ErrorKind::InvalidClientConfig, None) => false,
            // The cluster client wraps its first connection's error in another message.
            _ => !["certificate", "AuthenticationFailed", "NOAUTH", "WRONGPASS", "NOPERM"]
                .iter()
                .any(|it| text.contains(it)),
        };
        (may_mend, text)
    }
}

/// A script's reply.
struct Reply {
    status: String,
    texts: Vec<String>,
    rest: Vec<Value>,
}

impl Reply {
    fn read(value: Value) -> Option<Self> {
        let Value::Array(values) = value else { return None };
        let mut values = values.into_iter().peekable();
        let status = String::from_redis_value(values.next()?).ok()?;
        let mut texts = Vec::new();
        while let Some(Value::BulkString(_)) = values.peek() {
            texts.push(String::from_redis_value(values.next()?).ok()?);
        }
        Some(Self { status, texts, rest: values.collect() })
    }

    fn now_ms(&self) -> Option<u64> {
        let seconds: u64 = self.texts.first()?.parse().ok()?;
        let micros: u64 = self.texts.get(1)?.parse().ok()?;
        seconds.checked_mul(1_000)?.checked_add(micros / 1_000)
    }
}

/// Reads the file that a parameter names. Error messages show neither the file's name nor its contents.
fn read_file(address: &Address, parameter: &str) -> Result<Option<Vec<u8>>, StoreError> {
    let Some(path) = address.parameter(parameter) else { return Ok(None) };
    let told = |e: std::io::Error| {
        StoreError::Refused(format!("{address}: the file that {parameter} names: {}", e.kind()))
    };
    std::fs::read(path).map(Some).map_err(told)
}
