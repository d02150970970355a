//! Store addresses: `redis://user:password@host:6379/0?namespace=shop&ttl=30s`.
//!
//! Some addresses name several hosts, which no URL parser supports, so this module splits addresses itself,
//! and uses `url` for the hosts and `percent-encoding` for the escapes. No message in this module shows any
//! part of the address that may be a secret.

use core::fmt::{self, Write as _};
use core::hash::{Hash as _, Hasher as _};
use core::ops::RangeInclusive;
use core::time::Duration;
use std::collections::hash_map::DefaultHasher;
use std::sync::OnceLock;

use percent_encoding::percent_decode_str;
use url::{Host, form_urlencoded};

use crate::store::Schema;

const OURS: [&str; 12] = [
    "namespace",
    "ttl",
    "wait",
    "nodes",
    "label",
    "clock_difference",
    "replicas",
    "durability",
    "after_loss",
    "init",
    "schema",
    "schema_name",
];

/// Driver parameters whose names look like those of Polyflake's own parameters.
const THEIRS: [&str; 2] = ["wait_timeout", "ttl_check_interval"];

/// The function that finds the name of a registered store. It is set once a store is registered.
pub(crate) static REGISTERED: OnceLock<fn(&str) -> Option<&'static str>> = OnceLock::new();

/// A kind of store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Scheme {
    /// `redis`, `rediss`: a single server.
    Redis,
    /// `redis-sentinel`, `rediss-sentinel`: the master that Sentinel reports.
    RedisSentinel,
    /// `redis-cluster`, `rediss-cluster`.
    RedisCluster,
    /// `postgres`, `postgresql`; `postgresql+psycopg` and the like, as in `SQLAlchemy`.
    Postgres,
    /// `mysql`, `mariadb`.
    Mysql,
    /// `etcd`, `etcds`.
    Etcd,
    /// `zookeeper`.
    Zookeeper,
    /// `sqlite`: a file.
    Sqlite,
    /// A name registered with [`stores::register`](crate::stores::register).
    Custom(&'static str),
}

impl Scheme {
    /// Returns the parameters of the store's own client, if the client does not check them itself.
    const fn parameters(self) -> Option<&'static [&'static str]> {
        match self {
            Self::Redis | Self::RedisSentinel | Self::RedisCluster => Some(&[
                "ssl_ca_certs",
                "ssl_certfile",
                "ssl_keyfile",
                "sentinel_username",
                "sentinel_password",
            ]),
            // The names that `etcdctl` uses.
            Self::Etcd => Some(&["cacert", "cert", "key"]),
            Self::Sqlite | Self::Zookeeper => Some(&[]),
            Self::Postgres | Self::Mysql | Self::Custom(_) => None,
        }
    }

    fn read(name: &str) -> Result<(Self, bool), String> {
        Ok(match name {
            "redis" => (Self::Redis, false),
            "rediss" => (Self::Redis, true),
            "redis-sentinel" => (Self::RedisSentinel, false),
            "rediss-sentinel" => (Self::RedisSentinel, true),
            "redis-cluster" => (Self::RedisCluster, false),
            "rediss-cluster" => (Self::RedisCluster, true),
            "postgres" | "postgresql" => (Self::Postgres, false),
            // The part after the plus names a driver for a Python program.
            _ if name.starts_with("postgresql+") => (Self::Postgres, false),
            "mysql" | "mariadb" => (Self::Mysql, false),
            "etcd" => (Self::Etcd, false),
            "etcds" => (Self::Etcd, true),
            "sqlite" => (Self::Sqlite, false),
            "zookeeper" => (Self::Zookeeper, false),
            _ => match REGISTERED.get().and_then(|registered| registered(name)) {
                Some(name) => (Self::Custom(name), false),
                None => {
                    return Err("no such kind of store: an address starts with redis://, rediss://, \
                                redis-sentinel://, redis-cluster://, postgres://, mysql://, etcd://, etcds://, \
                                zookeeper:// or sqlite://"
                        .into());
                }
            },
        })
    }

    /// Returns true if Polyflake comes with a store for this scheme.
    pub(crate) fn is_ours(name: &str) -> bool {
        matches!(Self::read(name), Ok((scheme, _)) if !matches!(scheme, Self::Custom(_)))
    }

    const fn name(self, is_tls: bool) -> &'static str {
        match (self, is_tls) {
            (Self::Redis, false) => "redis",
            (Self::Redis, true) => "rediss",
            (Self::RedisSentinel, false) => "redis-sentinel",
            (Self::RedisSentinel, true) => "rediss-sentinel",
            (Self::RedisCluster, false) => "redis-cluster",
            (Self::RedisCluster, true) => "rediss-cluster",
            (Self::Postgres, _) => "postgres",
            (Self::Mysql, _) => "mysql",
            (Self::Etcd, false) => "etcd",
            (Self::Etcd, true) => "etcds",
            (Self::Zookeeper, _) => "zookeeper",
            (Self::Sqlite, _) => "sqlite",
            (Self::Custom(name), _) => name,
        }
    }

    const fn port(self) -> u16 {
        match self {
            Self::Redis | Self::RedisCluster => 6379,
            Self::RedisSentinel => 26379,
            Self::Postgres => 5432,
            Self::Mysql => 3306,
            Self::Etcd => 2379,
            Self::Zookeeper => 2181,
            Self::Sqlite | Self::Custom(_) => 0,
        }
    }

    /// Returns the store's display name, and the name of the Cargo feature that includes the store.
    pub(crate) const fn feature(self) -> (&'static str, &'static str) {
        match self {
            Self::Redis | Self::RedisSentinel | Self::RedisCluster => ("Redis", "redis"),
            Self::Postgres => ("PostgreSQL", "postgres"),
            Self::Mysql => ("MySQL", "mysql"),
            Self::Etcd => ("etcd", "etcd"),
            Self::Zookeeper => ("ZooKeeper", "zookeeper"),
            Self::Sqlite => ("SQLite", "sqlite"),
            // A custom store needs no feature.
            Self::Custom(name) => (name, name),
        }
    }

    /// Returns true for any kind of Redis.
    pub const fn is_redis(self) -> bool {
        matches!(self, Self::Redis | Self::RedisSentinel | Self::RedisCluster)
    }

    /// Returns true for a database with tables.
    pub const fn is_sql(self) -> bool {
        matches!(self, Self::Postgres | Self::Mysql | Self::Sqlite)
    }
}

/// A store's location, and the terms of its leases. Neither `Display` nor `Debug` shows a secret.
#[derive(Clone, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is a parameter")]
pub struct Address {
    /// The namespace. Leases in different namespaces are independent of each other.
    pub namespace: String,
    /// The TTL of a lease.
    pub ttl_ms: u64,
    /// The maximum time to wait for a free node.
    pub wait_ms: u64,
    /// The nodes that may be leased, or `None` for all nodes.
    pub nodes: Option<RangeInclusive<u64>>,
    /// The largest allowed difference between the local clock and the store's clock.
    pub clock_difference_ms: u64,
    /// True if the address sets no clock difference. In that case, an existing space's value applies if it is
    /// smaller.
    pub is_clock_difference_default: bool,
    /// Redis: the number of replicas that must confirm a change before it counts.
    pub replicas: u32,
    /// Redis, PostgreSQL and MySQL: true if the user accepts that the server may lose acknowledged writes.
    pub is_durability_none: bool,
    /// True if a counter whose store has lost writes issues no numbers until someone raises the counter.
    pub is_refused_after_loss: bool,
    /// True if the user declares, at each start, that nobody has held a lease before.
    pub is_init: bool,
    /// SQL stores: the system whose tables contain the counters.
    pub schema: Schema,
    /// PostgreSQL: the schema that contains the records.
    pub schema_name: String,
    label: Option<String>,
    scheme: Scheme,
    is_tls: bool,
    // The user and the password as written, with escapes.
    user: Option<String>,
    password: Option<String>,
    hosts: Vec<(String, u16)>,
    // The path without its first slash. For SQLite, the path is decoded and keeps the slash.
    path: String,
    // The parameters as written, without Polyflake's own parameters.
    query: Vec<String>,
}

impl Address {
    /// Parses an address.
    ///
    /// # Errors
    ///
    /// Returns an error that describes the problem and shows a valid form. The error contains no part of the
    /// address that may be a secret.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return Err("a store's address has no spaces and control characters: write them as %20".into());
        }
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err("a store's address is a URL such as redis://host:6379/0 or sqlite:///path".into());
        };
        let (scheme, is_tls) = Scheme::read(&scheme.to_ascii_lowercase())?;
        if rest.contains('#') {
            return Err(format!("a store's address has no #: {ESCAPES}"));
        }
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = place.split_once('/').unwrap_or((place, ""));
        if query.contains('@') || (path.contains('@') && scheme != Scheme::Sqlite) {
            // This may be the rest of a password that contains a slash. It must not be mistaken for a path.
            return Err(format!("an @ after the host: {ESCAPES}"));
        }
        let (parameters, query) = Parameters::read(query, scheme)?;
        let (userinfo, hosts) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (user, password) = read_userinfo(userinfo)?;
        let hosts = if scheme == Scheme::Sqlite {
            if !authority.is_empty() {
                return Err(
                    "an SQLite file is named by its whole path: sqlite:///var/lib/app/leases.db".into()
                );
            }
            Vec::new()
        } else {
            read_hosts(hosts, scheme)?
        };
        let path = read_path(path, scheme)?;
        let Parameters {
            namespace,
            ttl_ms,
            wait_ms,
            nodes,
            label,
            clock_difference_ms,
            replicas,
            is_durability_none,
            is_refused_after_loss,
            is_init,
            schema,
            schema_name,
        } = parameters;
        Ok(Self {
            namespace: namespace.unwrap_or_else(|| "default".into()),
            ttl_ms,
            wait_ms: wait_ms.unwrap_or(ttl_ms + 5_000),
            nodes,
            clock_difference_ms: clock_difference_ms.unwrap_or((ttl_ms / 4).min(1_000)),
            is_clock_difference_default: clock_difference_ms.is_none(),
            replicas,
            is_durability_none,
            is_refused_after_loss,
            is_init,
            schema,
            schema_name: schema_name.unwrap_or_else(|| "public".into()),
            label,
            scheme,
            is_tls,
            user: user.map(Into::into),
            password: password.map(Into::into),
            hosts,
            path,
            query,
        })
    }

    /// Returns the maximum time for one attempt to query the store: a sixth of the TTL, at most 5 s.
    pub fn attempt(&self) -> Duration {
        Duration::from_millis((self.ttl_ms / 6).min(5000))
    }

    /// Compares two addresses of the same store. Some parameters affect what is promised, so all users of a
    /// lease or a counter must set those to the same values. If the values differ, returns a message that
    /// shows both.
    pub(crate) fn other_promises(&self, other: &Self) -> Option<String> {
        let text = |it: &Self| {
            let duration = |ms| humantime::format_duration(Duration::from_millis(ms));
            let durability = if it.is_durability_none { ", durability=none" } else { "" };
            let (ttl, difference) = (duration(it.ttl_ms), duration(it.clock_difference_ms));
            let after_loss = if it.is_refused_after_loss { ", after_loss=refuse" } else { "" };
            format!(
                "ttl={ttl}, clock_difference={difference}, replicas={}{durability}{after_loss}",
                it.replicas
            )
        };
        let (this, other) = (text(self), text(other));
        (this != other).then(|| format!("with {this} already, not with {other}"))
    }

    /// Returns the kind of store.
    pub const fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// Returns true if the scheme requests TLS. (SQL addresses request TLS in the query.)
    pub const fn is_tls(&self) -> bool {
        self.is_tls
    }

    /// The maximum length of a label, in characters.
    pub(crate) const MAX_LABEL: usize = 128;

    /// Returns the holder's name in a lease's record: `label`, or by default the host name and the calling
    /// process's ID.
    pub fn label(&self) -> String {
        self.label.clone().unwrap_or_else(|| {
            let host = gethostname::gethostname();
            let host: String = host.to_string_lossy().chars().filter(|c| !c.is_control()).take(100).collect();
            format!("{host}:{}", std::process::id())
        })
    }

    /// Returns the hosts, in lower case, with their ports. A `postgres` address may name no host, or a
    /// directory of sockets. A custom store's address may name no host, and a host without a port has port 0.
    pub fn hosts(&self) -> &[(String, u16)] {
        &self.hosts
    }

    /// Returns the user name.
    pub fn user(&self) -> Option<String> {
        self.user.as_deref().and_then(decode)
    }

    /// Returns the password, which is a secret.
    pub fn password(&self) -> Option<String> {
        self.password.as_deref().and_then(decode)
    }

    /// Returns the database. For Sentinel, returns the master's name, `/` and the database. For `sqlite`,
    /// returns the path of the file.
    pub fn path(&self) -> String {
        if self.scheme == Scheme::Sqlite { self.path.clone() } else { decode(&self.path).unwrap_or_default() }
    }

    /// Returns a driver parameter, which may be a secret.
    pub fn parameter(&self, name: &str) -> Option<String> {
        form_urlencoded::parse(self.query.join("&").as_bytes())
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.into_owned())
    }

    /// Returns the names of the driver parameters, in the order the address lists them.
    pub fn parameter_names(&self) -> Vec<String> {
        form_urlencoded::parse(self.query.join("&").as_bytes()).map(|(key, _)| key.into_owned()).collect()
    }

    /// Returns the address without Polyflake's parameters, but with its secrets. Pass it only to a driver.
    pub fn driver_url(&self) -> String {
        let mut url = format!("{}://", self.scheme.name(self.is_tls));
        if self.user.is_some() || self.password.is_some() {
            url.push_str(self.user.as_deref().unwrap_or_default());
            if let Some(password) = &self.password {
                url.push(':');
                url.push_str(password);
            }
            url.push('@');
        }
        self.push_place(&mut url);
        for (i, parameter) in self.query.iter().enumerate() {
            url.push(if i == 0 { '?' } else { '&' });
            url.push_str(parameter);
        }
        url
    }

    /// Returns a key that is the same for two addresses if they can share a connection. Such addresses name
    /// the same store and the same user. Of Polyflake's parameters, the key includes only `schema_name`.
    pub fn key(&self) -> String {
        let mut hosts = self.hosts.clone();
        hosts.sort();
        hosts.dedup();
        let mut query = self.query.clone();
        query.sort();
        let mut key = String::new();
        for half in 0..2_u8 {
            let mut hasher = DefaultHasher::new();
            let path = (self.path(), &self.schema_name);
            (half, self.scheme, self.is_tls, self.user(), self.password(), &hosts, path, &query)
                .hash(&mut hasher);
            let _ = write!(key, "{:016x}", hasher.finish());
        }
        key
    }

    fn push_place(&self, to: &mut String) {
        for (i, (host, port)) in self.hosts.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            let _ = match port {
                0 => write!(to, "{comma}{host}"),
                _ => write!(to, "{comma}{host}:{port}"),
            };
        }
        if self.scheme != Scheme::Sqlite && !self.path.is_empty() {
            to.push('/');
        }
        to.push_str(&self.path);
    }
}

const ESCAPES: &str =
    "in a user's name or password write @ as %40, / as %2F, ? as %3F, # as %23, : as %3A and % as %25";

fn decode(text: &str) -> Option<String> {
    percent_decode_str(text).decode_utf8().ok().map(Into::into)
}

/// Reads the user and the password. Both stay escaped.
fn read_userinfo(userinfo: &str) -> Result<(Option<&str>, Option<&str>), String> {
    let (user, password) = userinfo.split_once(':').unwrap_or((userinfo, ""));
    let [user, password] = [user, password].map(|part| Some(part).filter(|it| !it.is_empty()));
    for part in [user, password].into_iter().flatten() {
        decode(part).ok_or_else(|| format!("user or password is not UTF-8: {ESCAPES}"))?;
    }
    Ok((user, password))
}

fn read_hosts(text: &str, scheme: Scheme) -> Result<Vec<(String, u16)>, String> {
    if text.is_empty() {
        // In this case, the driver uses the server on this machine or the one named by its `host` parameter.
        return if matches!(scheme, Scheme::Postgres | Scheme::Custom(_)) {
            Ok(Vec::new())
        } else {
            Err("no host in the store's address".into())
        };
    }
    let is_list = !matches!(scheme, Scheme::Redis | Scheme::Mysql);
    let parts: Vec<&str> = text.split(',').collect();
    if parts.len() > 1 && !is_list {
        return Err(format!(
            "{} takes one host{}",
            scheme.name(false),
            if scheme.is_redis() {
                "; for several there are redis-sentinel:// and redis-cluster://"
            } else {
                ""
            }
        ));
    }
    parts.into_iter().map(|part| read_host(part, scheme)).collect()
}

fn read_host(text: &str, scheme: Scheme) -> Result<(String, u16), String> {
    let bad = || "a host is written name:port, 192.0.2.1:port or [2001:db8::1]:port".to_owned();
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => {
            let is_number = port.bytes().all(|b| b.is_ascii_digit());
            let port = port.parse().ok().filter(|&port: &u16| is_number && port != 0);
            (host, port.ok_or_else(|| format!("a port is a number from 1 to 65535; {ESCAPES}"))?)
        }
        _ => (text, scheme.port()),
    };
    if host.is_empty() {
        return Err(bad());
    }
    let is_socket =
        scheme == Scheme::Postgres && host.get(..3).is_some_and(|it| it.eq_ignore_ascii_case("%2f"));
    if is_socket {
        Host::parse_opaque(host).map_err(|_| bad())?;
        return Ok((host.into(), port));
    }
    if host.contains('%') || !host.is_ascii() {
        return Err(bad());
    }
    let host = Host::parse(host).map_err(|_| bad())?;
    Ok((host.to_string(), port))
}

fn read_path(path: &str, scheme: Scheme) -> Result<String, String> {
    let decoded = decode(path).ok_or("the path in the store's address is not UTF-8")?;
    if decoded.chars().any(char::is_control) {
        return Err("the path in the store's address has control characters".into());
    }
    let is_database = |it: &str| it.parse::<u32>().is_ok_and(|n| n.to_string() == it);
    let is_znode = |it: &str| it.split('/').all(|it| !matches!(it, "" | "." | ".."));
    let path = path.trim_end_matches('/');
    match scheme {
        Scheme::Sqlite if path.is_empty() || decoded.ends_with('/') => {
            Err("an SQLite file is named by its whole path: sqlite:///var/lib/app/leases.db".into())
        }
        Scheme::Sqlite => Ok(format!("/{decoded}")),
        Scheme::Redis if path.is_empty() => Ok("0".into()),
        Scheme::Redis if is_database(path) => Ok(path.into()),
        Scheme::Redis => Err("a Redis database is a number: redis://host:6379/0".into()),
        Scheme::RedisCluster if matches!(path, "" | "0") => Ok(String::new()),
        Scheme::RedisCluster => Err("a Redis Cluster has no databases but 0".into()),
        Scheme::RedisSentinel => {
            let (master, database) = path.split_once('/').unwrap_or((path, "0"));
            if master.is_empty() || is_database(path) || !is_database(database) {
                return Err("Sentinel needs the master's name, then the database: \
                            redis-sentinel://host:26379,other:26379/mymaster/0"
                    .into());
            }
            Ok(format!("{master}/{database}"))
        }
        Scheme::Etcd | Scheme::Zookeeper if path.is_empty() => Ok(String::new()),
        Scheme::Etcd => Err("an etcd address has no path: namespace=... tells one fleet from another".into()),
        Scheme::Zookeeper if !decode(path).is_some_and(|it| is_znode(&it)) => {
            Err("the chroot of ZooKeeper is a path of znodes: zookeeper://h1:2181,h2:2181/apps/shop".into())
        }
        Scheme::Mysql if path.is_empty() => {
            Err("a MySQL address names a database: mysql://user@host:3306/database".into())
        }
        Scheme::Postgres | Scheme::Mysql if path.contains('/') => {
            Err("a database is one name; write / in it as %2F".into())
        }
        Scheme::Zookeeper | Scheme::Postgres | Scheme::Mysql | Scheme::Custom(_) => Ok(path.into()),
    }
}

#[derive(Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is a parameter")]
struct Parameters {
    namespace: Option<String>,
    ttl_ms: u64,
    wait_ms: Option<u64>,
    nodes: Option<RangeInclusive<u64>>,
    label: Option<String>,
    clock_difference_ms: Option<u64>,
    replicas: u32,
    is_durability_none: bool,
    is_refused_after_loss: bool,
    is_init: bool,
    schema: Schema,
    schema_name: Option<String>,
}

impl Parameters {
    /// Parses Polyflake's parameters, and returns the other parameters unchanged.
    fn read(query: &str, scheme: Scheme) -> Result<(Self, Vec<String>), String> {
        let mut it = Self { ttl_ms: 30_000, ..Self::default() };
        let mut rest = Vec::new();
        let mut seen = Vec::new();
        for part in query.split('&').filter(|part| !part.is_empty()) {
            if !part.contains('=') {
                return Err(format!("a parameter in the store's address has no value; {ESCAPES}"));
            }
            let Some((key, value)) = form_urlencoded::parse(part.as_bytes()).next() else { continue };
            // The decoder has replaced bytes that are not UTF-8.
            if value.contains(char::REPLACEMENT_CHARACTER) {
                return Err("a parameter in the store's address is not UTF-8".into());
            }
            if seen.contains(&key) {
                return Err(format!("a parameter is given twice; Polyflake's are {}", ours(scheme)));
            }
            if let Some(stores) = only_for(&key, scheme) {
                return Err(format!(
                    "{key} is for {stores}; Polyflake's parameters here are {}",
                    ours(scheme)
                ));
            }
            if !it.set(&key, &value)? {
                check_other(&key, scheme)?;
                rest.push(part.to_owned());
            }
            seen.push(key);
        }
        it.check_schema()?;
        it.check_clock_difference()?;
        Ok((it, rest))
    }

    /// Sets one of Polyflake's parameters. Returns false if the parameter is not Polyflake's.
    fn set(&mut self, name: &str, value: &str) -> Result<bool, String> {
        match name {
            "namespace" => self.namespace = Some(namespace(value)?),
            "ttl" => self.ttl_ms = duration(name, value, 3_000, 3_600_000)?,
            "wait" => self.wait_ms = Some(duration(name, value, 0, 86_400_000)?),
            "clock_difference" => self.clock_difference_ms = Some(duration(name, value, 10, 900_000)?),
            "nodes" => self.nodes = Some(nodes(value)?),
            "label" => self.label = Some(label(value)?),
            "replicas" => {
                self.replicas = number(value)
                    .and_then(|n| u32::try_from(n).ok())
                    .filter(|&n| n <= 16)
                    .ok_or("replicas is how many replicas must confirm a change: a number from 0 to 16")?;
            }
            "durability" if value == "none" => self.is_durability_none = true,
            "durability" => {
                return Err(
                    "durability takes only none, which accepts that the server may lose writes".into()
                );
            }
            "after_loss" if value == "refuse" => self.is_refused_after_loss = true,
            "after_loss" => {
                return Err(
                    "after_loss takes only refuse: a counter whose store lost writes waits until somebody raises it"
                        .into(),
                );
            }
            "init" if value == "always" => self.is_init = true,
            "init" => {
                return Err(
                    "init takes only always: nobody waits in a new store, which is for development and tests. \
                            Elsewhere, run `polyflake leases URL --init` once when a store is new"
                        .into(),
                );
            }
            "schema" => {
                self.schema = match value {
                    "polyflake" => Schema::Polyflake,
                    "leaf" => Schema::Leaf,
                    "tinyid" => Schema::Tinyid,
                    "cosid" => Schema::Cosid,
                    _ => return Err("schema is polyflake, leaf, tinyid or cosid".into()),
                };
            }
            "schema_name" => self.schema_name = Some(schema_name(value)?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// If two clocks may differ by the full duration of a lease, the lease guarantees nothing.
    fn check_clock_difference(&self) -> Result<(), String> {
        let most_ms = self.ttl_ms / 4;
        let Some(ms) = self.clock_difference_ms.filter(|&ms| ms > most_ms) else { return Ok(()) };
        let text = |ms| humantime::format_duration(Duration::from_millis(ms));
        Err(format!(
            "clock_difference is {}, and a ttl of {} takes a quarter of itself at most, {}: give less, or a ttl \
             of {} or more",
            text(ms),
            text(self.ttl_ms),
            text(most_ms),
            text(ms.saturating_mul(4))
        ))
    }

    /// Checks the two schema parameters. The statements on other systems' tables do not name a schema, so
    /// they could silently change a row in the wrong table.
    fn check_schema(&self) -> Result<(), String> {
        if self.schema_name.is_some() && self.schema != Schema::Polyflake {
            return Err("schema_name is for Polyflake's own table, and schema=leaf, tinyid or cosid names another: leave \
                        schema_name out. PostgreSQL finds that table by the role's path: ALTER ROLE ... SET search_path = ..."
                .into());
        }
        Ok(())
    }
}

fn label(value: &str) -> Result<String, String> {
    const MAX: usize = Address::MAX_LABEL;
    if value.is_empty() || value.chars().count() > MAX {
        return Err(format!("label is a string of 1 to {MAX} characters"));
    }
    if value.contains('`') {
        // Error messages put the label in backquotes, and services extract it from there.
        return Err("label cannot contain a backquote".into());
    }
    if value.chars().any(char::is_control) {
        return Err("label cannot contain control characters".into());
    }
    Ok(value.into())
}

fn ours(scheme: Scheme) -> String {
    let mut names = OURS.to_vec();
    names.retain(|name| only_for(name, scheme).is_none());
    names.join(", ")
}

/// Returns the stores that accept this Polyflake parameter, unless `scheme` is one of them.
fn only_for(name: &str, scheme: Scheme) -> Option<&'static str> {
    match name {
        "replicas" if !scheme.is_redis() => Some("Redis only"),
        "durability" if !may_forget(scheme) => Some("Redis, PostgreSQL and MySQL"),
        "schema" if !scheme.is_sql() => Some("SQL stores"),
        "schema_name" if scheme != Scheme::Postgres => Some("PostgreSQL"),
        _ => None,
    }
}

/// Returns true if this kind of server has settings under which it may lose acknowledged writes.
const fn may_forget(scheme: Scheme) -> bool {
    scheme.is_redis() || matches!(scheme, Scheme::Postgres | Scheme::Mysql)
}

/// Refuses an unknown parameter. The error does not name it, since it may be part of a password.
fn check_other(key: &str, scheme: Scheme) -> Result<(), String> {
    let ours = ours(scheme);
    match scheme.parameters() {
        _ if looks_like_ours(key) => Err(format!("no such parameter; Polyflake's are {ours}")),
        None => Ok(()),
        Some(theirs) if theirs.contains(&key) => Ok(()),
        Some([]) => Err(format!("no such parameter; the parameters are {ours}")),
        Some(theirs) => Err(format!("no such parameter; the parameters are {ours}, {}", theirs.join(", "))),
    }
}

fn looks_like_ours(key: &str) -> bool {
    let key = key.to_ascii_lowercase().replace('-', "_");
    !THEIRS.contains(&&*key)
        && OURS.iter().any(|ours| key.starts_with(ours) || (key.len() > 2 && ours.starts_with(&*key)))
}

fn namespace(value: &str) -> Result<String, String> {
    let is_fit = (1..=64).contains(&value.len())
        && value.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'));
    is_fit
        .then(|| value.to_owned())
        .ok_or_else(|| "namespace has 1 to 64 letters, digits, dots, underscores and hyphens".into())
}

pub(crate) fn schema_name(value: &str) -> Result<String, String> {
    let is_fit = (1..=63).contains(&value.len())
        && !value.as_bytes().first().is_some_and(u8::is_ascii_digit)
        && value.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    is_fit.then(|| value.to_owned()).ok_or_else(|| {
        "schema_name is an identifier of 1 to 63 letters, digits and underscores, and does not begin with a digit".into()
    })
}

fn duration(name: &str, value: &str, min: u64, max: u64) -> Result<u64, String> {
    humantime::parse_duration(value)
        .ok()
        .and_then(|it| u64::try_from(it.as_millis()).ok())
        .filter(|ms| (min..=max).contains(ms))
        .ok_or_else(|| {
            let text = |ms| humantime::format_duration(Duration::from_millis(ms));
            let fit = [(500, "500ms"), (30_000, "30s"), (120_000, "2m"), (3_600_000, "1h")];
            let fit = fit.iter().filter(|(ms, _)| (min..=max).contains(ms)).map(|(_, text)| *text);
            let fit = fit.collect::<Vec<_>>().join(", ");
            format!("{name} is a time from {} to {}, such as {fit}", text(min), text(max))
        })
}

fn number(value: &str) -> Option<u64> {
    value.bytes().all(|b| b.is_ascii_digit()).then(|| value.parse().ok()).flatten()
}

fn nodes(value: &str) -> Result<RangeInclusive<u64>, String> {
    let (first, last) = value.split_once('-').unwrap_or((value, value));
    number(first)
        .zip(number(last))
        .filter(|(first, last)| first <= last)
        .map(|(first, last)| first..=last)
        .ok_or_else(|| "nodes is an inclusive range such as 0-31, or one number".into())
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = format!("{}://", self.scheme.name(self.is_tls));
        self.push_place(&mut text);
        f.write_str(&text)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> Address {
        Address::parse(text).unwrap_or_else(|e| panic!("{text}: {e}"))
    }

    fn error(text: &str) -> String {
        Address::parse(text).expect_err(text)
    }

    #[test]
    fn counters_are_in_the_tables_of_the_schema() {
        assert_eq!(parse("mysql://h/d").schema, Schema::Polyflake);
        assert_eq!(parse("mysql://h/d?schema=leaf").schema, Schema::Leaf);
        assert_eq!(parse("postgres://h/d?schema=tinyid").schema, Schema::Tinyid);
        assert_eq!(parse("sqlite:///d?schema=cosid").schema, Schema::Cosid);
    }

    #[test]
    fn records_are_in_the_schema_that_is_named() {
        assert_eq!(parse("postgres://h/d").schema_name, "public");
        let named = parse("postgres://h/d?schema_name=app_2&durability=none");
        assert_eq!((&*named.schema_name, named.is_durability_none), ("app_2", true));
        assert_ne!(named.key(), parse("postgres://h/d").key());
        assert!(parse("mysql://h/d?durability=none").is_durability_none);
        assert!(parse("sqlite:///a?after_loss=refuse").is_refused_after_loss);
        assert!(error("sqlite:///a?after_loss=skip").contains("after_loss takes only refuse"));
        for wrong in ["", "2a", "a.b", "a\"b", "a%20b", "\u{e9}"] {
            assert!(error(&format!("postgres://h/d?schema_name={wrong}")).contains("identifier"), "{wrong}");
        }
        assert!(error("mysql://h/d?schema_name=a").contains("for PostgreSQL"));
        for both in ["schema=leaf&schema_name=app", "schema_name=public&schema=tinyid"] {
            let said = error(&format!("postgres://h/d?{both}"));
            assert!(said.contains("ALTER ROLE ... SET search_path"), "{said}");
        }
        assert_eq!(parse("postgres://h/d?schema=polyflake&schema_name=app").schema_name, "app");
        assert!(error("sqlite:///a?durability=none").contains("Redis, PostgreSQL and MySQL"));
    }

    #[test]
    fn an_address_of_one_host_has_our_defaults() {
        let address = parse("redis://Host");
        assert_eq!(address.to_string(), "redis://host:6379/0");
        assert_eq!(format!("{address:?}"), "Address(redis://host:6379/0)");
        assert_eq!(address.driver_url(), "redis://host:6379/0");
        assert_eq!(address.namespace, "default");
        assert_eq!((address.ttl_ms, address.wait_ms, address.clock_difference_ms), (30_000, 35_000, 1_000));
        assert_eq!((address.nodes.clone(), address.replicas), (None, 0));
        assert!(!address.is_init && !address.is_durability_none && !address.is_tls());
        assert!(address.label().ends_with(&format!(":{}", std::process::id())), "{}", address.label());
    }

    #[test]
    fn our_parameters_are_taken_out() {
        let address = parse(
            "redis://u:p%40@[2001:DB8::1]:7000/3?ssl_certfile=a.pem&namespace=shop.v-2_x&ttl=1m&wait=0s&nodes=4-31&label=a+b%40c\
             &clock_difference=250ms&replicas=2&durability=none&init=always&sentinel_username=%20",
        );
        assert_eq!(
            address.driver_url(),
            "redis://u:p%40@[2001:db8::1]:7000/3?ssl_certfile=a.pem&sentinel_username=%20"
        );
        assert_eq!(address.to_string(), "redis://[2001:db8::1]:7000/3");
        assert_eq!(address.namespace, "shop.v-2_x");
        assert_eq!((address.ttl_ms, address.wait_ms, address.clock_difference_ms), (60_000, 0, 250));
        assert_eq!((address.nodes.clone(), address.replicas), (Some(4..=31), 2));
        assert!(address.is_init && address.is_durability_none);
        assert_eq!(address.label(), "a b@c");
        assert_eq!((address.user(), address.password()), (Some("u".into()), Some("p@".into())));
        assert_eq!(address.parameter("sentinel_username").as_deref(), Some(" "));
        assert_eq!(address.parameter_names(), ["ssl_certfile", "sentinel_username"]);
        assert_eq!(parse("redis://h?nodes=7").nodes, Some(7..=7));
        assert_eq!(parse("redis://h?ttl=1h").wait_ms, 3_605_000);
        let difference = |text| parse(text).clock_difference_ms;
        assert_eq!(difference("redis://h?ttl=3s"), 750);
        assert_eq!(difference("redis://h?ttl=5s"), 1000);
        assert_eq!(difference("redis://h?clock_difference=2s&ttl=8s"), 2000);
    }

    #[test]
    fn each_scheme_has_its_form() {
        for (text, shown) in [
            ("rediss://:p@h:1/", "rediss://h:1/0"),
            ("redis-sentinel://a,b:7/mymaster", "redis-sentinel://a:26379,b:7/mymaster/0"),
            ("rediss-sentinel://u:p@a/m/4", "rediss-sentinel://a:26379/m/4"),
            ("redis-cluster://a,b,c:1/0", "redis-cluster://a:6379,b:6379,c:1"),
            ("postgresql://u:p@h/db?sslmode=require", "postgres://h:5432/db"),
            ("postgresql+psycopg://u:p@h/db", "postgres://h:5432/db"),
            ("postgresql+asyncpg://u:p@h/db", "postgres://h:5432/db"),
            ("postgres://u@a,b:6000/d%2Fb", "postgres://a:5432,b:6000/d%2Fb"),
            ("postgres:///db?host=/run/postgresql", "postgres:///db"),
            ("postgres://%2Frun%2Fpostgresql/db", "postgres://%2Frun%2Fpostgresql:5432/db"),
            ("mariadb://u:p@my_host/db", "mysql://my_host:3306/db"),
            ("ETCD://h1:2379,h2", "etcd://h1:2379,h2:2379"),
            ("etcds://u:p@127.0.0.1/", "etcds://127.0.0.1:2379"),
            ("zookeeper://u:p@h1,h2:7/apps/shop/?ttl=3s", "zookeeper://h1:2181,h2:7/apps/shop"),
            ("zookeeper://h/", "zookeeper://h:2181"),
            ("sqlite:///var/a%20b@c.db?ttl=3s", "sqlite:///var/a b@c.db"),
        ] {
            let address = parse(text);
            assert_eq!(address.to_string(), shown);
        }
        assert_eq!(parse("etcd://h1,h2:1").hosts(), [("h1".into(), 2379), ("h2".into(), 1)]);
        assert_eq!(parse("sqlite:///var/a%20b.db").path(), "/var/a b.db");
    }

    #[test]
    fn what_does_not_fit_is_named() {
        for (text, part) in [
            ("", "redis://host"),
            ("host:6379", "redis://host"),
            ("http://host", "no such kind"),
            ("zookeeper://", "no host"),
            ("zookeeper://h//a", "chroot"),
            ("zookeeper://h/a%2F", "chroot"),
            ("zookeeper://h/a/%2E%2e/b", "chroot"),
            ("zookeeper://h/a?replicas=1", "Redis only"),
            ("redis://", "no host"),
            ("redis://a,b", "redis-sentinel"),
            ("mysql://a,b/d", "one host"),
            ("redis://h:0", "65535"),
            ("redis://h:+1", "65535"),
            ("redis://h:x", "65535"),
            ("redis://h/x", "number"),
            ("redis://[::1", "written"),
            ("redis://h%00", "written"),
            ("redis://häuser", "written"),
            ("redis-cluster://h/1", "databases"),
            ("redis-sentinel://h/0", "master"),
            ("redis-sentinel://h", "master"),
            ("mysql://h", "database"),
            ("postgres://h/a/b", "%2F"),
            ("etcd://h/prefix", "namespace"),
            ("sqlite://leases.db", "whole path"),
            ("sqlite://", "whole path"),
            ("sqlite:///", "whole path"),
            ("sqlite:///a?replicas=1", "Redis only"),
            ("redis://h?ttl=2s", "3s to 1h"),
            ("redis://h?ttl=30", "3s to 1h"),
            ("redis://h?wait=2d", "0s to 1day"),
            ("redis://h?clock_difference=9ms", "10ms to 15m"),
            ("redis://h?clock_difference=2s&ttl=7s", "clock_difference is 2s, and a ttl of 7s"),
            ("redis://h?ttl=12s&clock_difference=12s", "at most, 3s: give less, or a ttl of 48s"),
            ("redis://h?nodes=5-4", "0-31"),
            ("redis://h?nodes=-4", "0-31"),
            ("redis://h?nodes=", "0-31"),
            ("redis://h?nodes=99999999999999999999", "0-31"),
            ("redis://h?replicas=17", "0 to 16"),
            ("redis://h?durability=all", "none"),
            ("redis://h?init=no", "always"),
            ("redis://h?init=yes", "polyflake leases URL --init"),
            ("redis://h?namespace=a/b", "namespace has"),
            ("redis://h?namespace=", "namespace has"),
            ("redis://h?label=", "label"),
            ("redis://h?label=%0a", "label"),
            ("redis://h?label=a%60b", "backquote"),
            (&format!("redis://h?label={}", "é".repeat(129)), "1 to 128"),
            ("redis://h?ttl=5s&ttl=5s", "twice"),
            ("redis://h?ttl_ms=5", "clock_difference"),
            ("redis://h?TTL=5s", "clock_difference"),
            ("redis://h?node=5", "clock_difference"),
            ("redis://h?schema=leaf", "schema is for SQL stores"),
            ("mysql://h/d?schema=uid", "leaf, tinyid or cosid"),
            ("redis://h?x", "no value"),
            ("redis://h?tll=5s", "no such parameter; the parameters are namespace, ttl, wait"),
            ("rediss://h?ca=x", "ssl_ca_certs"),
            ("sqlite:///a?tll=5s", "no such parameter; the parameters are namespace, ttl, wait"),
            ("zookeeper://h?tll=5s", "no such parameter; the parameters are namespace, ttl, wait"),
            ("etcds://h?ca=x", "cacert"),
            ("redis://h?wait=9d", "0s to 1day, such as 500ms, 30s, 2m, 1h"),
            ("redis://h?ttl=500ms", "such as 30s, 2m, 1h"),
            ("redis://h#x", "%23"),
            ("redis://u:p/w@h", "%2F"),
            ("redis://u:1/2@h", "%2F"),
            ("redis://u:1?a=2@h", "%2F"),
            ("redis://u:%ff@h", "UTF-8"),
            ("redis://h /0", "%20"),
        ] {
            let said = error(text);
            assert!(said.contains(part), "{text}: {said}");
        }
        assert_eq!(parse("mysql://h/d?wait_timeout=5").driver_url(), "mysql://h:3306/d?wait_timeout=5");
    }

    #[test]
    fn a_key_tells_stores_apart_and_nothing_else() {
        let key = |text| parse(text).key();
        assert_eq!(
            key("redis://u:p@h/0?ttl=5s&ssl_certfile=1&ssl_keyfile=2"),
            key("redis://u:%70@H:6379?namespace=x&ssl_keyfile=2&ssl_certfile=1")
        );
        assert_eq!(key("etcd://a,b"), key("etcd://b:2379,a"));
        assert_eq!(key("postgresql://h/d"), key("postgres://h/d"));
        for other in
            ["redis://h/0", "redis://v:p@h/0", "redis://u:q@h/0", "redis://u:p@h/1", "rediss://u:p@h/0"]
        {
            assert_ne!(key("redis://u:p@h/0"), key(other), "{other}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".*") {
            let _ = Address::parse(&text);
        }

        #[test]
        fn nothing_like_an_address_makes_it_panic(
            scheme in "(redis|rediss-cluster|redis-sentinel|postgres|mysql|etcd|zookeeper|sqlite)",
            rest in "[a-z0-9:/@?&=%,#.\\[\\]~ -]{0,40}",
        ) {
            let address = Address::parse(&format!("{scheme}://{rest}"));
            // No driver is given SQLite's URL, whose path is no longer escaped.
            if let Some(address) = address.ok().filter(|address| address.scheme() != Scheme::Sqlite) {
                let again = Address::parse(&address.driver_url());
                prop_assert!(again.is_ok(), "{} {:?}", address.driver_url(), again);
                prop_assert_eq!(again.map(|it| it.key()), Ok(address.key()));
            }
        }

        #[test]
        fn a_password_is_shown_nowhere(
            scheme in "(redis|rediss|redis-cluster|redis-sentinel|postgres|mysql|etcd|etcds|zookeeper)",
            // The password is unescaped, as people write it. Its runs of letters serve as markers that occur
            // nowhere else.
            password in "(Z{3}[0-9]{3}|[:/@?&=%,#.]|\\[|\\]){1,8}",
            rest in "(h|h:1|h,i|[:]1)?(/|/0|/m/0|/x)?([?](ttl=5s|ttl=x|sslmode=require|node=1))?",
        ) {
            let text = format!("{scheme}://user:{password}@{rest}");
            let shown = match Address::parse(&text) {
                Ok(address) => format!("{address} {address:?} {}", address.key()),
                Err(error) => error,
            };
            prop_assert!(!shown.to_ascii_uppercase().contains("ZZZ"), "{text}: {shown}");
        }
    }
}
