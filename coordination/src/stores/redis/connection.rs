//! Connects to a single server, to the master that Sentinel reports, or to a cluster.
//!
//! A host that does not answer must not use up a whole attempt. Each host gets a share of the attempt, and
//! the next attempt starts with the next host.

use core::time::Duration;
use std::collections::HashMap;
use std::io;

use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, FromRedisValue, IntoConnectionInfo as _, Pipeline,
    RedisConnectionInfo, RedisError, Script, Value,
};
use tokio::time::timeout;

use super::RedisStore;
use crate::lease::Time as _;
use crate::local::Clocks;
use crate::store::StoreError;
use crate::url::Scheme;

/// The maximum number of redirections that a command follows in a cluster.
const REDIRECTIONS: u32 = 4;
/// A command that every user may run.
const PROBE: &str = "TIME";

/// A host and its port.
pub(super) type Place = (String, u16);

/// The connections to the servers that calls have needed so far. In a cluster, there may be several.
pub(super) struct Connection {
    pub(super) entrance: Place,
    servers: HashMap<Place, Server>,
    /// In a cluster, the host and port of the server that holds each key.
    homes: HashMap<String, Place>,
    /// The server that answered last.
    answered: Place,
}

pub(super) struct Server {
    connection: MultiplexedConnection,
    used_ms: u64,
    is_checked: bool,
}

impl Connection {
    fn home(&self, key: &str) -> Place {
        self.homes.get(key).unwrap_or(&self.entrance).clone()
    }

    /// Returns true if the server that holds a key is known to keep everything a counter needs.
    pub(super) fn is_checked(&self, key: &str) -> bool {
        self.servers.get(&self.home(key)).is_some_and(|it| it.is_checked)
    }

    /// Marks the server that answered last as one that keeps everything a counter needs.
    pub(super) fn set_checked(&mut self) {
        if let Some(server) = self.servers.get_mut(&self.answered) {
            server.is_checked = true;
        }
    }
}

impl RedisStore {
    /// Returns the connection, and true if it is new.
    pub(super) async fn connection(&mut self, key: &str) -> Result<(Connection, bool), StoreError> {
        match self.kept(key).await {
            Some(it) => Ok((it, false)),
            None => Ok((self.connect().await?, true)),
        }
    }

    /// Returns the existing connection. If it has been idle for longer than the time between renewals, it may
    /// have died unnoticed, so it must answer a probe first.
    async fn kept(&mut self, key: &str) -> Option<Connection> {
        let mut connection = self.connection.take()?;
        let home = connection.home(key);
        if let Some(server) = connection.servers.get_mut(&home) {
            let idle_ms = Clocks.elapsed_ms().saturating_sub(server.used_ms);
            if idle_ms > self.address.ttl_ms / 3 {
                let probe = redis::cmd(PROBE);
                let probed = server.connection.send_packed_command(&probe);
                timeout(self.address.attempt() / 4, probed).await.ok()?.ok()?;
            }
        }
        Some(connection)
    }

    async fn connect(&mut self) -> Result<Connection, StoreError> {
        let hosts: Vec<Place> = self.address.hosts().to_vec();
        let start = self.turn % hosts.len().max(1);
        self.turn = start + 1;
        let (mut said, mut is_later) = (Vec::new(), false);
        for host in hosts.iter().cycle().skip(start).take(hosts.len()) {
            match self.enter(host).await {
                Ok((entrance, server)) => {
                    let servers = HashMap::from([(entrance.clone(), server)]);
                    let answered = entrance.clone();
                    return Ok(Connection { entrance, servers, homes: HashMap::new(), answered });
                }
                Err((may_mend, text)) => {
                    is_later |= may_mend;
                    said.push(if hosts.len() == 1 { text } else { format!("{}:{}: {text}", host.0, host.1) });
                }
            }
        }
        let text = said.join("; ");
        Err(if is_later { self.unreachable(&text) } else { self.refused(&text) })
    }

    /// Connects to one of the address's hosts. Returns the server there, or the master if the host is a
    /// Sentinel.
    async fn enter(&self, host: &Place) -> Result<(Place, Server), (bool, String)> {
        let path = self.address.path();
        let (master, database) = match self.address.scheme() {
            Scheme::RedisSentinel => {
                path.rsplit_once('/').map_or((Some(&*path), "0"), |it| (Some(it.0), it.1))
            }
            _ => (None, &*path),
        };
        let told = |e: RedisError| self.judge(&e, true);
        let (mut place, mut what) = (host.clone(), String::new());
        if let Some(master) = master {
            let mut settings = RedisConnectionInfo::default().set_skip_set_lib_name();
            if let Some(user) = self.address.parameter("sentinel_username") {
                settings = settings.set_username(user);
            }
            if let Some(password) = self.address.parameter("sentinel_password") {
                settings = settings.set_password(password);
            }
            let mut ask = redis::cmd("SENTINEL");
            ask.arg("get-master-addr-by-name").arg(master);
            let (_, named) = self.dial(host, settings, &ask).await.map_err(told)?;
            let named: Option<Place> = Option::from_redis_value(named).map_err(|e| told(e.into()))?;
            place = named.ok_or((true, "this Sentinel knows no master of that name".to_owned()))?;
            what = format!("the master {}:{}: ", place.0, place.1);
        }
        match self.server(&place, database).await.map_err(told) {
            Ok(server) => Ok((place, server)),
            Err((may_mend, text)) => Err((may_mend, what + &text)),
        }
    }

    async fn server(&self, place: &Place, database: &str) -> Result<Server, RedisError> {
        let mut settings = RedisConnectionInfo::default().set_skip_set_lib_name();
        settings = settings.set_db(database.parse().unwrap_or_default());
        if let Some(user) = self.address.user() {
            settings = settings.set_username(user);
        }
        if let Some(password) = &self.password {
            settings = settings.set_password(password);
        }
        let (connection, _) = self.dial(place, settings, &redis::cmd(PROBE)).await?;
        Ok(Server { connection, used_ms: Clocks.elapsed_ms(), is_checked: false })
    }

    /// Opens a connection, and returns it once the server has answered. A host may accept a connection and
    /// then stay silent.
    async fn dial(
        &self,
        (host, port): &Place,
        settings: RedisConnectionInfo,
        first: &Cmd,
    ) -> Result<(MultiplexedConnection, Value), RedisError> {
        let (host, port) = (host.trim_matches(['[', ']']).to_owned(), *port);
        let place = if self.address.is_tls() {
            ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None }
        } else {
            ConnectionAddr::Tcp(host, port)
        };
        let info = place.into_connection_info()?.set_redis_settings(settings);
        let client = match &self.certificates {
            Some(certificates) => Client::build_with_tls(info, certificates.clone())?,
            None => Client::open(info)?,
        };
        // Connecting is limited by the host's share. After that, the caller sets its own limit.
        let config = AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
        let answered = async {
            let mut connection = client.get_multiplexed_async_connection_with_config(&config).await?;
            let answer = connection.send_packed_command(first).await?.extract_error()?;
            Ok((connection, answer))
        };
        let share = self.share();
        // A server without TLS waits for a line break that never comes.
        let hint =
            if self.address.is_tls() { " (the address asks for TLS: does this port speak it?)" } else { "" };
        timeout(share, answered)
            .await
            .unwrap_or_else(|_| Err(failure(format!("no answer within {} ms{hint}", share.as_millis()))))
    }

    /// Returns the time limit for each host. An equal share of the attempt is left for the request.
    fn share(&self) -> Duration {
        self.address.attempt() / u32::try_from(self.address.hosts().len() + 1).unwrap_or(u32::MAX)
    }

    /// Returns the server at the given host and port. Opens a connection if there is none.
    pub(super) async fn server_of<'a>(
        &self,
        connection: &'a mut Connection,
        place: &Place,
    ) -> Result<&'a mut Server, RedisError> {
        if !connection.servers.contains_key(place) {
            let server = self.server(place, "0").await?;
            connection.servers.insert(place.clone(), server);
        }
        connection.servers.get_mut(place).ok_or_else(|| failure("it has gone".into()))
    }

    /// Sends a command to the server at the given host and port.
    pub(super) async fn send_to(
        &self,
        connection: &mut Connection,
        place: &Place,
        command: &Cmd,
    ) -> Result<Value, RedisError> {
        let server = self.server_of(connection, place).await?;
        server.connection.send_packed_command(command).await?.extract_error()
    }

    /// Sends a command to the server that holds a key.
    pub(super) async fn send<T: FromRedisValue>(
        &self,
        connection: &mut Connection,
        key: &str,
        command: &Cmd,
    ) -> Result<T, RedisError> {
        let mut asked = None;
        for _ in 0..=REDIRECTIONS {
            let place = asked.clone().unwrap_or_else(|| connection.home(key));
            let server = self.server_of(connection, &place).await?;
            let mut all = Pipeline::new();
            if asked.take().is_some() {
                all.cmd("ASKING");
            }
            all.add_command(command.clone());
            let values = server.connection.send_packed_commands(&all, 0, all.len()).await?;
            server.used_ms = Clocks.elapsed_ms();
            connection.answered.clone_from(&place);
            let error = match values.into_iter().next_back().unwrap_or(Value::Nil).extract_error() {
                Ok(value) => return Ok(T::from_redis_value(value)?),
                Err(error) => error,
            };
            let next = error.redirect_node().and_then(|(next, _)| read_place(next, &place));
            match next.filter(|_| self.address.scheme() == Scheme::RedisCluster) {
                Some(next) if error.code() == Some("ASK") => asked = Some(next),
                Some(next) => _ = connection.homes.insert(key.to_owned(), next),
                None => return Err(error),
            }
        }
        Err(failure("its servers do not agree where the key is".into()))
    }

    /// Runs a script on the server that holds its key.
    pub(super) async fn script(
        &self,
        connection: &mut Connection,
        code: &'static str,
        (key, arguments): &(String, Vec<&str>),
    ) -> Result<Value, RedisError> {
        let hash = Script::new(code).get_hash().to_owned();
        match self.send(connection, key, &command("EVALSHA", &hash, key, arguments)).await {
            Err(e) if e.code() == Some("NOSCRIPT") => {
                self.send(connection, key, &command("EVAL", code, key, arguments)).await
            }
            result => result,
        }
    }

    /// Runs a script several times. Sends all calls at once if one server holds all keys.
    pub(super) async fn scripts(
        &self,
        connection: &mut Connection,
        code: &'static str,
        runs: &[(String, Vec<&str>)],
    ) -> Result<Vec<Value>, RedisError> {
        if runs.len() > 1 && self.address.scheme() != Scheme::RedisCluster {
            let hash = Script::new(code).get_hash().to_owned();
            let mut all = Pipeline::new();
            for (key, arguments) in runs {
                all.add_command(command("EVALSHA", &hash, key, arguments));
            }
            let home = connection.entrance.clone();
            let server = self.server_of(connection, &home).await?;
            let values = server.connection.send_packed_commands(&all, 0, all.len()).await?;
            server.used_ms = Clocks.elapsed_ms();
            connection.answered = home;
            let values: Result<_, RedisError> = values.into_iter().map(Value::extract_error).collect();
            // If the server does not know the script, each call is sent separately.
            if !values.as_ref().is_err_and(|e| e.code() == Some("NOSCRIPT")) {
                return values;
            }
        }
        let mut values = Vec::with_capacity(runs.len());
        for run in runs {
            values.push(self.script(connection, code, run).await?);
        }
        Ok(values)
    }

    /// Returns the number of replicas that have the last call's writes. Asks on the same connection, since
    /// only some servers include other clients' writes in the answer.
    pub(super) async fn confirmed(&self, connection: &mut Connection) -> Result<u32, RedisError> {
        let mut wait = redis::cmd("WAIT");
        wait.arg(self.address.replicas).arg(self.wait_ms());
        let answered = connection.answered.clone();
        match self.send_to(connection, &answered, &wait).await {
            // The server is a replica now, so no replica confirmed its earlier writes.
            Err(e) if e.detail().is_some_and(|it| it.contains("cannot be used with replica")) => Ok(0),
            result => Ok(u32::from_redis_value(result?)?),
        }
    }

    /// Returns the time limit for confirmations by replicas. It expires before the caller gives up on the
    /// attempt.
    pub(super) fn wait_ms(&self) -> u64 {
        (self.address.ttl_ms / 12).min(1_000)
    }
}

fn command(name: &str, script: &str, key: &str, arguments: &[&str]) -> Cmd {
    let mut command = redis::cmd(name);
    command.arg(script).arg(1).arg(key).arg(arguments);
    command
}

fn failure(text: String) -> RedisError {
    io::Error::other(text).into()
}

/// Parses `HOST:PORT`, the form in which a cluster's servers refer to one another. A server omits its own
/// host.
pub(super) fn read_place(text: &str, answering: &Place) -> Option<Place> {
    let (host, port) = text.rsplit_once(':')?;
    let host = if matches!(host, "" | "?") { &answering.0 } else { host };
    Some((host.to_owned(), port.parse().ok()?))
}
