//! Redis: one server, the master that Sentinels name, or a Cluster.
//!
//! A space is two hashes, `polyflake:{NAMESPACE/SPACE}:space` and `...:nodes`, in one slot. Each call is one script, which reads
//! the server's time and its replication ID in the same step: a server that took over, or that started again, has another.
//! A counter is a hash of its own, and so are sequences.

mod counters;
mod names;
mod sequences;

use core::fmt;
use core::time::Duration;
use std::collections::HashMap;

use async_trait::async_trait;
use redis::aio::MultiplexedConnection;
use redis::cluster::{ClusterClient, ClusterClientBuilder};
use redis::cluster_async::ClusterConnection;
use redis::cluster_routing::{Route, RoutingInfo, SingleNodeRoutingInfo, SlotAddr};
use redis::sentinel::{SentinelClientBuilder, SentinelServerType};
use redis::{
    AsyncConnectionConfig, Client, ClientTlsConfig, Cmd, ConnectionAddr, ConnectionInfo, ErrorKind,
    FromRedisValue, IntoConnectionInfo as _, Pipeline, RedisConnectionInfo, RedisError, Script,
    TlsCertificates, TlsMode, Value,
};

use super::record;
use crate::space::Space;
use crate::store::{
    Claim, CounterName, CounterRecord, FORMAT, Listing, NodeRecord, Outcome, Put, Reserve, Reserved, Schema,
    SequencesName, SequencesRecord, SpaceRecord, Store, StoreError,
};
use crate::stores::lists;
use crate::url::{Address, Scheme};

/// Before each script. Numbers stay texts: Lua's are exact to 2^53 only.
macro_rules! script {
    ($body:literal) => {
        concat!(
            "local info = redis.call('INFO', 'replication')\n",
            "if string.match(info, 'role:(%a+)') ~= 'master' then return {'replica'} end\n",
            "local life = string.match(info, 'master_replid:(%x+)')\n",
            "if not life then return {'nameless'} end\n",
            "local time = redis.call('TIME')\n",
            "local space = redis.call('HMGET', KEYS[1], 'version', 'incarnation', 'lead_ms', 'fence')\n",
            "if space[1] and space[1] ~= ARGV[1] then return {'version', space[1]} end\n",
            $body
        )
    };
}

const LIST: &str = script!("return {'ok', time[1], time[2], life, space, redis.call('HGETALL', KEYS[2])}");

/// Arguments: version, the new record, and the expected one where there is one.
const PUT_SPACE: &str = script!(
    "
    if life ~= ARGV[2] then return {'no'} end
    local fits
    if ARGV[5] then fits = space[2] == ARGV[5] and space[3] == ARGV[6] and space[4] == ARGV[7]
    else fits = redis.call('EXISTS', KEYS[1]) == 0 end
    if not fits then return {'no'} end
    redis.call('HSET', KEYS[1], 'version', ARGV[1], 'incarnation', ARGV[2], 'lead_ms', ARGV[3], 'fence', ARGV[4])
    return {'written'}"
);

/// Arguments: version, the space's record, node, its new record, whether to confirm what is found, and the claim where
/// there is one. What is found may be what the caller wrote itself in an attempt that no replica confirmed: it is written once
/// more, unchanged, so that the WAIT that follows is for it (servers differ in whether a WAIT is for what others wrote).
const PUT_NODE: &str = script!(
    "
    if life ~= ARGV[2] or space[2] ~= ARGV[2] or space[3] ~= ARGV[3] or space[4] ~= ARGV[4] then
      return {'other', time[1], time[2]}
    end
    local found = redis.call('HGET', KEYS[2], ARGV[5])
    local fits = not found
    if ARGV[8] then
      fits = false
      if found then
        local read, it = pcall(cjson.decode, found)
        if not read then return {'broken'} end
        fits = it.token == ARGV[8] and it.reserved_until == ARGV[9]
      end
    end
    if fits then
      redis.call('HSET', KEYS[2], ARGV[5], ARGV[6])
      return {'written', time[1], time[2]}
    end
    if found and ARGV[7] == '1' then redis.call('HSET', KEYS[2], ARGV[5], found) end
    return {'found', time[1], time[2], found}"
);

/// What the query of the address may have for this client.
const PARAMETERS: [&str; 5] =
    ["ssl_ca_certs", "ssl_certfile", "ssl_keyfile", "sentinel_username", "sentinel_password"];

/// Leases and counters in Redis.
pub struct RedisStore {
    address: Address,
    password: Option<String>,
    certificates: Option<TlsCertificates>,
    connection: Option<Connection>,
}

enum Connection {
    One(MultiplexedConnection),
    Cluster(ClusterConnection),
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore").field("address", &self.address).finish_non_exhaustive()
    }
}

impl RedisStore {
    /// Connects at the first call.
    ///
    /// # Errors
    ///
    /// A parameter that this client does not know, or a certificate that cannot be read.
    pub fn new(address: &Address) -> Result<Self, StoreError> {
        for name in address.parameter_names() {
            if !PARAMETERS.contains(&&*name) {
                return Err(StoreError::Refused(format!(
                    "{address}: a parameter that is not known; there are {}",
                    PARAMETERS.join(", ")
                )));
            }
        }
        let certificates = if address.is_tls() {
            // The client takes the process's default. A program that has set one of its own keeps it.
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
        Ok(Self { address: address.clone(), password: address.password(), certificates, connection: None })
    }

    /// A database of Redis by itself; in a Cluster and behind Sentinels the path is read otherwise.
    fn settings(&self, database: i64) -> RedisConnectionInfo {
        let mut settings = RedisConnectionInfo::default().set_db(database).set_skip_set_lib_name();
        if let Some(user) = self.address.user() {
            settings = settings.set_username(user);
        }
        if let Some(password) = &self.password {
            settings = settings.set_password(password);
        }
        settings
    }

    fn places(&self) -> impl Iterator<Item = ConnectionAddr> {
        let is_tls = self.address.is_tls();
        self.address.hosts().iter().map(move |(host, port)| {
            let host = host.trim_matches(['[', ']']).to_owned();
            if is_tls {
                ConnectionAddr::TcpTls { host, port: *port, insecure: false, tls_params: None }
            } else {
                ConnectionAddr::Tcp(host, *port)
            }
        })
    }

    /// A new connection, to a server that keeps what it acknowledges.
    async fn connect(&self, key: &str) -> Result<Connection, StoreError> {
        // The caller ends attempts that take too long.
        let config = AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
        let told = |e| self.told(&e, true);
        let mut connection = match self.address.scheme() {
            Scheme::RedisCluster => {
                let client = self.cluster().map_err(told)?;
                Connection::Cluster(client.get_async_connection().await.map_err(told)?)
            }
            Scheme::RedisSentinel => {
                let client = self.sentinel().await.map_err(told)?;
                let it = client.get_multiplexed_async_connection_with_config(&config).await;
                Connection::One(it.map_err(told)?)
            }
            _ => {
                let client = self.one().map_err(told)?;
                let it = client.get_multiplexed_async_connection_with_config(&config).await;
                Connection::One(it.map_err(told)?)
            }
        };
        if !self.address.is_durability_none {
            self.check_durability(&mut connection, key).await?;
        }
        Ok(connection)
    }

    fn info(&self, place: ConnectionAddr, database: i64) -> Result<ConnectionInfo, RedisError> {
        Ok(place.into_connection_info()?.set_redis_settings(self.settings(database)))
    }

    fn one(&self) -> Result<Client, RedisError> {
        let none = || RedisError::from((ErrorKind::InvalidClientConfig, "no host"));
        let place = self.places().next().ok_or_else(none)?;
        let info = self.info(place, self.address.path().parse().unwrap_or_default())?;
        match &self.certificates {
            Some(certificates) => Client::build_with_tls(info, certificates.clone()),
            None => Client::open(info),
        }
    }

    fn cluster(&self) -> Result<ClusterClient, RedisError> {
        let places: Result<Vec<_>, _> = self.places().map(|it| self.info(it, 0)).collect();
        // One attempt at a time is the caller's: only redirections are followed.
        let mut builder = ClusterClientBuilder::new(places?)
            .retries(3)
            .connection_timeout(Duration::from_secs(5))
            .response_timeout(Duration::from_secs(10));
        if let Some(certificates) = &self.certificates {
            builder = builder.certs(certificates.clone());
        }
        builder.build()
    }

    /// Asks the Sentinels again, since the master may be another by now.
    async fn sentinel(&self) -> Result<Client, RedisError> {
        let path = self.address.path();
        let (master, database) = path.rsplit_once('/').unwrap_or((&path, "0"));
        let mut builder = SentinelClientBuilder::new(self.places(), master, SentinelServerType::Master)?
            .set_client_to_redis_db(database.parse().unwrap_or_default());
        if let Some(user) = self.address.user() {
            builder = builder.set_client_to_redis_username(user);
        }
        if let Some(password) = &self.password {
            builder = builder.set_client_to_redis_password(password);
        }
        if let Some(user) = self.address.parameter("sentinel_username") {
            builder = builder.set_client_to_sentinel_username(user);
        }
        if let Some(password) = self.address.parameter("sentinel_password") {
            builder = builder.set_client_to_sentinel_password(password);
        }
        if let Some(certificates) = &self.certificates {
            builder = builder
                .set_client_to_redis_tls_mode(TlsMode::Secure)
                .set_client_to_redis_certificates(certificates.clone())
                .set_client_to_sentinel_certificates(certificates.clone());
        }
        builder.build()?.async_get_client().await
    }

    /// Refuses a server that may drop keys, or that has nothing after a restart.
    async fn check_durability(&self, connection: &mut Connection, key: &str) -> Result<(), StoreError> {
        let told = |e| self.told(&e, true);
        let info = redis::cmd("INFO");
        let text: String = connection.send(key, info).await.map_err(told)?;
        let field = |name: &str| {
            text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
        };
        if let Some(policy) = field("maxmemory_policy").filter(|it| it.starts_with("allkeys")) {
            return Err(self.refused(&format!(
                "maxmemory-policy {policy} drops keys that are in use: set noeviction or a volatile policy; \
                 durability=none in the address says that it is meant"
            )));
        }
        if field("aof_enabled") == Some("1") {
            return Ok(());
        }
        let mut points = redis::cmd("CONFIG");
        points.arg("GET").arg("save");
        // Managed services refuse CONFIG: there it cannot be known.
        match connection.send::<HashMap<String, String>>(key, points).await {
            Ok(it) if it.get("save").is_some_and(|it| it.trim().is_empty()) => Err(self.refused(
                "it keeps nothing on disk: set appendonly yes; durability=none in the address says that it is meant",
            )),
            Err(e) if e.is_io_error() => Err(told(e)),
            _ => Ok(()),
        }
    }

    fn refused(&self, why: &str) -> StoreError {
        StoreError::Refused(format!("{}: {why}", self.address))
    }

    fn unreachable(&self, why: &str) -> StoreError {
        StoreError::Unreachable(format!("{}: {why}", self.address))
    }

    /// Runs a script, and waits for the replicas that must have what it wrote.
    async fn run(
        &mut self,
        keys: &[String],
        code: &'static str,
        arguments: &[String],
        is_change: bool,
    ) -> Result<Reply, StoreError> {
        let (mut connection, is_new) = match self.connection.take() {
            Some(it) => (it, false),
            None => (self.connect(first(keys)).await?, true),
        };
        let replicas = if is_change { self.address.replicas } else { 0 };
        // It ends before the caller gives an attempt up.
        let wait_ms = (self.address.ttl_ms / 12).min(1_000);
        let reply = match connection.script(keys, code, arguments, replicas, wait_ms).await {
            Ok(it) => it,
            Err(e) => return Err(self.told(&e, is_new)),
        };
        let reply = Reply::read(reply).ok_or_else(|| self.refused("it answered with something else"))?;
        match &*reply.status {
            // It was a master before: what took over is found by connecting again.
            "replica" if self.address.scheme() != Scheme::Redis || !is_new => {
                return Err(self.unreachable("a replica answered: a failover is under way"));
            }
            "replica" => {
                return Err(self.refused("it is a replica: leases and counters are kept in its master"));
            }
            "version" => {
                return Err(self.refused(&format!(
                    "its leases have version {} of their form, and this program knows {FORMAT}",
                    reply.texts.first().map_or("?", |it| it.as_str())
                )));
            }
            "nameless" => {
                return Err(
                    self.refused("its INFO has no replication ID, without which a lost write is not seen")
                );
            }
            "broken" => return Err(self.refused("a node's record is not readable")),
            _ => {}
        }
        let is_to_confirm = !counters::UNCHANGED.contains(&&*reply.status);
        if is_to_confirm && reply.confirmed < replicas {
            return Err(self.unreachable(&format!(
                "{} of {replicas} replicas confirmed a change within {wait_ms} ms",
                reply.confirmed
            )));
        }
        self.connection = Some(connection);
        Ok(reply)
    }

    fn told(&self, error: &RedisError, is_new: bool) -> StoreError {
        // The first of the commands that failed says why; the others follow from it.
        let server = error.clone().into_server_errors().and_then(|it| it.first().map(|it| it.1.clone()));
        let (code, detail) = server.as_ref().map_or((None, None), |it| (Some(it.code()), it.details()));
        let mut text = match (code, detail) {
            (Some(code), Some(detail)) => format!("{code} {detail}"),
            (Some(code), None) => code.to_owned(),
            (None, _) => error.to_string(),
        };
        // Redis repeats arguments of a command that it does not know.
        if let Some(end) = text.find(", with args") {
            text.truncate(end);
        }
        let code = code.or_else(|| error.code());
        let secrets = [self.password.clone(), self.address.parameter("sentinel_password")];
        if secrets.iter().flatten().any(|it| text.contains(it.as_str())) {
            text = code.map_or_else(|| error.category().to_owned(), ToOwned::to_owned);
        }
        let is_later = match (error.kind(), code) {
            // A failover or a start; no room, no disk, too few replicas: it mends without a change here.
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
                return self.refused("it is a Redis Cluster: the address starts with redis-cluster://");
            }
            (_, Some(_)) => text.contains("max number of clients"),
            (ErrorKind::AuthenticationFailed | ErrorKind::InvalidClientConfig, None) => false,
            // A Cluster's client tells what its first connection said in a text of its own.
            _ => !["certificate", "AuthenticationFailed", "NOAUTH", "WRONGPASS", "NOPERM"]
                .iter()
                .any(|it| text.contains(it)),
        };
        if is_later { self.unreachable(&text) } else { self.refused(&text) }
    }
}

/// What a script said.
struct Reply {
    status: String,
    texts: Vec<String>,
    rest: Vec<Value>,
    confirmed: u32,
}

impl Reply {
    fn read((value, confirmed): (Value, u32)) -> Option<Self> {
        let Value::Array(values) = value else { return None };
        let mut values = values.into_iter().peekable();
        let status = String::from_redis_value(values.next()?).ok()?;
        let mut texts = Vec::new();
        while let Some(Value::BulkString(_)) = values.peek() {
            texts.push(String::from_redis_value(values.next()?).ok()?);
        }
        Some(Self { status, texts, rest: values.collect(), confirmed })
    }

    fn now_ms(&self) -> Option<u64> {
        let seconds: u64 = self.texts.first()?.parse().ok()?;
        let micros: u64 = self.texts.get(1)?.parse().ok()?;
        seconds.checked_mul(1_000)?.checked_add(micros / 1_000)
    }

    fn listing(mut self) -> Option<Listing> {
        let now_ms = self.now_ms()?;
        let incarnation = self.texts.get(2)?.clone();
        let nodes: HashMap<u64, String> = FromRedisValue::from_redis_value(self.rest.pop()?).ok()?;
        let fields: [Option<String>; 4] =
            Vec::from_redis_value(self.rest.pop()?).ok().and_then(|it| it.try_into().ok())?;
        let space = match fields {
            [None, None, None, None] => None,
            [Some(_), Some(incarnation), Some(lead), Some(fence)] => {
                Some(SpaceRecord { incarnation, lead_ms: lead.parse().ok()?, fence: fence.parse().ok()? })
            }
            _ => return None,
        };
        let nodes = nodes.into_iter().map(|(node, text)| record::read(node, &text)).collect::<Option<_>>()?;
        // What was dropped and what never was look alike here.
        Some(Listing { now_ms, incarnation, space, is_new: false, nodes })
    }
}

fn keys(space: &Space) -> [String; 2] {
    let tag = format!("polyflake:{{{}/{space}}}", space.namespace);
    [format!("{tag}:space"), format!("{tag}:nodes")]
}

fn arguments(record: &SpaceRecord) -> [String; 3] {
    [record.incarnation.clone(), record.lead_ms.to_string(), record.fence.to_string()]
}

impl Connection {
    /// To the server that has the key's slot.
    async fn send<T: FromRedisValue>(&mut self, key: &str, command: Cmd) -> Result<T, RedisError> {
        let value = match self {
            Self::One(it) => it.send_packed_command(&command).await?,
            Self::Cluster(it) => it.route_command(command, RoutingInfo::SingleNode(route(key))).await?,
        };
        Ok(T::from_redis_value(value.extract_error()?)?)
    }

    /// The WAIT goes with the script, since it is for what its own connection wrote: on one that was opened in between it would
    /// be for nothing.
    async fn script(
        &mut self,
        keys: &[String],
        code: &'static str,
        arguments: &[String],
        replicas: u32,
        wait_ms: u64,
    ) -> Result<(Value, u32), RedisError> {
        let hash = Script::new(code).get_hash().to_owned();
        let mut tries = [("EVALSHA", &*hash), ("EVAL", code)].into_iter();
        loop {
            let Some((name, what)) = tries.next() else {
                return Err(RedisError::from((ErrorKind::Client, "a script was not taken")));
            };
            let mut command = redis::cmd(name);
            command.arg(what).arg(keys.len()).arg(keys).arg(arguments);
            let result = if replicas == 0 {
                self.send(first(keys), command).await.map(|it| (it, 0))
            } else {
                let mut pipeline = Pipeline::new();
                pipeline.add_command(command).cmd("WAIT").arg(replicas).arg(wait_ms);
                self.send_both(first(keys), pipeline).await
            };
            match result {
                Err(e) if is_no_script(&e) && name == "EVALSHA" => {}
                result => return result,
            }
        }
    }

    async fn send_both(&mut self, key: &str, pipeline: Pipeline) -> Result<(Value, u32), RedisError> {
        let values = match self {
            Self::One(it) => it.send_packed_commands(&pipeline, 0, 2).await?,
            Self::Cluster(it) => it.route_pipeline(pipeline, 0, 2, route(key)).await?,
        };
        let mut values = values.into_iter();
        let mut next = || values.next().unwrap_or(Value::Nil).extract_error();
        let reply = next()?;
        match next() {
            Ok(confirmed) => Ok((reply, u32::from_redis_value(confirmed)?)),
            // A replica by now: its script says so itself, and what it wrote before that nobody confirmed.
            Err(e) if e.detail().is_some_and(|it| it.contains("cannot be used with replica")) => {
                Ok((reply, 0))
            }
            Err(e) => Err(e),
        }
    }
}

/// The file that a parameter names. Neither the name nor what is in it is told.
fn read_file(address: &Address, parameter: &str) -> Result<Option<Vec<u8>>, StoreError> {
    let Some(path) = address.parameter(parameter) else { return Ok(None) };
    let told = |e: std::io::Error| {
        StoreError::Refused(format!("{address}: the file that {parameter} names: {}", e.kind()))
    };
    std::fs::read(path).map(Some).map_err(told)
}

/// All keys of a script are in one slot.
fn first(keys: &[String]) -> &str {
    keys.first().map_or("", String::as_str)
}

fn route(key: &str) -> SingleNodeRoutingInfo {
    SingleNodeRoutingInfo::SpecificNode(Route::with_key(key, SlotAddr::Master))
}

fn is_no_script(error: &RedisError) -> bool {
    let errors = error.clone().into_server_errors();
    errors.is_some_and(|it| it.first().is_some_and(|(_, it)| it.code() == "NOSCRIPT"))
}

#[async_trait(?Send)]
impl Store for RedisStore {
    async fn list(&mut self, space: &Space) -> Result<Listing, StoreError> {
        let reply = self.run(&keys(space), LIST, &[FORMAT.to_string()], false).await?;
        reply.listing().ok_or_else(|| self.refused("the records of the space are not readable"))
    }

    async fn put_space(
        &mut self,
        space: &Space,
        expected: Option<&SpaceRecord>,
        new: &SpaceRecord,
    ) -> Result<bool, StoreError> {
        let mut all = vec![FORMAT.to_string()];
        all.extend(arguments(new));
        all.extend(expected.map(arguments).into_iter().flatten());
        Ok(self.run(&keys(space), PUT_SPACE, &all, true).await?.status == "written")
    }

    async fn put_node(
        &mut self,
        space: &Space,
        under: &SpaceRecord,
        expected: Option<&Claim>,
        new: &NodeRecord,
    ) -> Result<Put, StoreError> {
        let text = record::write(new).ok_or_else(|| self.refused("the record cannot be written"))?;
        let is_confirmed = if self.address.replicas > 0 { "1" } else { "0" };
        let mut all = vec![FORMAT.to_string()];
        all.extend(arguments(under));
        all.extend([new.node.to_string(), text, is_confirmed.to_owned()]);
        if let Some(Claim { token, reserved_until }) = expected {
            all.extend([token.clone(), reserved_until.to_string()]);
        }
        let reply = self.run(&keys(space), PUT_NODE, &all, true).await?;
        let unreadable = || self.refused("a node's record is not readable");
        let now_ms = reply.now_ms().ok_or_else(unreadable)?;
        let outcome = match (&*reply.status, reply.texts.get(2)) {
            ("written", _) => Outcome::Written,
            ("other", _) => Outcome::OtherSpace,
            (_, None) => Outcome::Found(None),
            (_, Some(text)) => Outcome::Found(Some(record::read(new.node, text).ok_or_else(unreadable)?)),
        };
        Ok(Put { now_ms, outcome })
    }

    async fn reserve(&mut self, counter: &CounterName, reserve: &Reserve) -> Result<Reserved, StoreError> {
        self.take(counter, reserve).await
    }

    async fn counter(&mut self, counter: &CounterName) -> Result<Option<CounterRecord>, StoreError> {
        self.look(counter).await
    }

    async fn put_counter(
        &mut self,
        counter: &CounterName,
        expected: Option<&CounterRecord>,
        new: &CounterRecord,
    ) -> Result<bool, StoreError> {
        self.put(counter, expected, new).await
    }

    async fn remove_counter(&mut self, counter: &CounterName) -> Result<bool, StoreError> {
        self.remove(counter).await
    }

    async fn sequences(&mut self, name: &SequencesName) -> Result<Option<SequencesRecord>, StoreError> {
        self.read_sequences(name).await
    }

    async fn put_sequences(
        &mut self,
        name: &SequencesName,
        expected: Option<u64>,
        new: &SequencesRecord,
    ) -> Result<bool, StoreError> {
        self.write_sequences(name, expected, new).await
    }

    async fn spaces(&mut self, namespace: &str) -> Result<Vec<Space>, StoreError> {
        Ok(lists::spaces(namespace, self.names(namespace, "", "}:space").await?))
    }

    async fn counter_names(&mut self, namespace: &str, _: Schema) -> Result<Vec<String>, StoreError> {
        Ok(self.names(namespace, "counter:", "}").await?.into_iter().collect())
    }

    fn disconnect(&mut self) {
        self.connection = None;
    }
}
