//! PostgreSQL 12 and later, even behind a pooler that uses a different connection for each transaction.
//!
//! Each statement is unnamed and complete in one message, and no statement changes the session's settings.
//! The one exception is the statement that adds to a counter. If there is no pooler in between, the server
//! keeps this statement prepared, because parsing and planning it takes several times as long as running it.

mod cancel;
mod names;
pub(super) mod records;

use core::fmt;
use core::time::Duration;
use std::collections::HashSet;
use std::error::Error as _;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

use async_trait::async_trait;
use futures_util::FutureExt as _;
use futures_util::future::join_all;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_postgres::config::{Host, LoadBalanceHosts, SslMode, TargetSessionAttrs};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Config, Row, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;

use self::records::DURABLE;
use super::sql::counters::{self, Columns, Dialect, Value};
use super::sql::{self, ATTEMPT, MOST_TRIES, Opening, longest_idle, none_of, other_format, read_only};
use super::tls::{self, Check, Files};
use crate::records::Facts;
use crate::store::{CounterName, CounterRecord, Reserve, Reserved, Rows, Schema, StoreError};
use crate::url::Address;

/// An expression that identifies the server and its instance. It is NULL on a standby.
/// `pg_control_checkpoint()` would name the old timeline until the first checkpoint after a promotion.
const INCARNATION: &str = "(SELECT CASE WHEN pg_is_in_recovery() THEN NULL ELSE 'system ' || system_identifier \
    || ' timeline ' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END FROM pg_control_system())";

const NOW: &str = "floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

/// Limits the time that a transaction waits for locks. The limit applies only to this transaction, since a
/// pooler lends the connection to other clients afterwards.
const BOUND: &str = "SET LOCAL lock_timeout = '1s'";

/// The lock that prevents several processes from creating the tables at once: `polyflak` in ASCII.
const LOCK: i64 = 0x706F_6C79_666C_616B;
/// A PostgreSQL database.
pub struct PostgresStore {
    /// The settings and the name of each host.
    hosts: Arc<[(Config, String)]>,
    /// The host to try first.
    next: usize,
    attempt: Duration,
    tls: MakeRustlsConnect,
    /// The database's location, for error messages.
    at: String,
    schema_name: String,
    is_durability_none: bool,
    facts: Facts,
    /// True if the caller uses records. Each new connection is then checked.
    has_records: bool,
    open: Option<Open>,
    opening: Opening<Open>,
    /// Limits how many requests to stop a statement may be under way at once.
    requests: Arc<Semaphore>,
    /// The tables used by earlier requests that the server did not answer in time.
    maybe_locked: HashSet<Schema>,
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore").field("at", &self.at).finish_non_exhaustive()
    }
}

type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

struct Open {
    client: Client,
    connection: Pin<Box<dyn Future<Output = Result<(), tokio_postgres::Error>> + Send>>,
    ready: Option<records::Ready>,
    /// True if the server process's number is the one that the client received when it connected. A pooler
    /// sends a made-up number.
    is_direct: bool,
    /// The SQL of the statement that the server keeps prepared, and the statement itself.
    kept: Option<(String, Statement)>,
    /// The host that the connection belongs to.
    host: usize,
    used: Instant,
    /// The table used by a request that the server has not answered yet.
    busy_with: Option<Schema>,
    /// These three fields are used to send a request to stop a statement.
    requests: Arc<Semaphore>,
    config: Config,
    tls: MakeRustlsConnect,
}

impl Drop for Open {
    /// Asks the server to stop the statement. This is a courtesy, since nothing depends on whether or when
    /// the request arrives. If the server stops a change that is waiting for a standby, everyone can see the
    /// change, but the standby may lack it. The change counts once it is written again. The later write comes
    /// after the change in the log, so a standby that has the later write also has the change.
    fn drop(&mut self) {
        let request = Arc::clone(&self.requests).try_acquire_owned();
        if let (Some(_), Ok(request), Ok(runtime)) = (self.busy_with, request, Handle::try_current()) {
            let (token, config, tls) = (self.client.cancel_token(), self.config.clone(), self.tls.clone());
            // A pooler remembers a statement only while the connection that sent it exists.
            let connection = core::mem::replace(&mut self.connection, Box::pin(core::future::ready(Ok(()))));
            runtime.spawn(async move {
                cancel::until_ended(connection, || cancel::cancel(&token, &config, tls.clone())).await;
                drop(request);
            });
        }
    }
}

type Fault = sql::Fault<tokio_postgres::Error>;

impl From<tokio_postgres::Error> for Fault {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Client(error)
    }
}

impl Open {
    async fn connect(
        config: &Config,
        host: usize,
        tls: &MakeRustlsConnect,
        requests: &Arc<Semaphore>,
    ) -> Result<Self, tokio_postgres::Error> {
        let (client, connection) = config.connect(tls.clone()).await?;
        let (connection, used) = (Box::pin(connection), Instant::now());
        let (config, tls) = (config.clone(), tls.clone());
        let (ready, is_direct, kept, busy_with, requests) = (None, false, None, None, Arc::clone(requests));
        Ok(Self { client, connection, ready, is_direct, kept, host, used, busy_with, requests, config, tls })
    }

    /// Drives the connection while waiting for an answer, so that no task is left behind if the caller drops
    /// the call.
    async fn drive<T>(
        connection: &mut Pin<Box<dyn Future<Output = Result<(), tokio_postgres::Error>> + Send>>,
        answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, tokio_postgres::Error> {
        let mut answer = pin!(answer);
        let mut ended = false;
        std::future::poll_fn(|context| {
            if let Poll::Ready(answer) = answer.as_mut().poll(context) {
                return Poll::Ready(answer);
            }
            if !ended {
                match connection.as_mut().poll(context) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                    Poll::Ready(Ok(())) => ended = true,
                }
            }
            answer.as_mut().poll(context)
        })
        .await
    }

    async fn query(
        &mut self,
        statement: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        Self::drive(&mut self.connection, self.client.query_typed(statement, parameters)).await
    }

    async fn run(&mut self, statements: &str) -> Result<(), tokio_postgres::Error> {
        Self::drive(&mut self.connection, self.client.batch_execute(statements)).await
    }

    /// Checks that a lock on the table would not block a change. A statement waits for that lock before it
    /// can set a limit. If the role has no limit either, each attempt would leave one more statement waiting
    /// on the server, since a pooler does not pass on requests to stop statements.
    async fn try_lock(&mut self, table: Schema) -> Result<(), tokio_postgres::Error> {
        let table = match table {
            Schema::Polyflake => sql::records::Client::dialect(self).table,
            others => counters::table_of(others).to_owned(),
        };
        // Statements that are sent together form one transaction.
        match self.run(&format!("{BOUND}; LOCK TABLE {table} IN ROW EXCLUSIVE MODE")).await {
            // Any other problem with the table will surface in the call itself.
            Err(error) if error.code().is_some_and(|code| *code != SqlState::LOCK_NOT_AVAILABLE) => Ok(()),
            done => done,
        }
    }
}

impl PostgresStore {
    /// Creates a store for an address in the form that PostgreSQL's own clients accept. The store connects on
    /// the first call.
    ///
    /// # Errors
    /// Fails if `driver_url` is not such an address, or if it names a certificate that cannot be read.
    pub fn new(driver_url: &str) -> Result<Self, StoreError> {
        let (address, query) = driver_url.split_once('?').unwrap_or((driver_url, ""));
        let refused = |text: String| StoreError::Refused(format!("the address of PostgreSQL: {text}"));
        if query.contains('@') {
            // The error messages below quote parts of the query.
            return Err(refused(
                "a `?` in a user or password is written %3F, and an @ in the query %40".into(),
            ));
        }
        let (mut check, mut mode, mut files) = (None, SslMode::Prefer, Files::default());
        let mut rest = form_urlencoded::Serializer::new(String::new());
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            match &*name {
                "sslmode" => {
                    (mode, check) = match &*value {
                        "disable" => (SslMode::Disable, None),
                        "allow" | "prefer" => (SslMode::Prefer, None),
                        "require" => (SslMode::Require, None),
                        "verify-ca" => (SslMode::Require, Some(Check::Authority)),
                        "verify-full" => (SslMode::Require, Some(Check::Host)),
                        _ => return Err(refused(format!("sslmode={value} is unknown"))),
                    }
                }
                "sslrootcert" if value == "system" => (mode, check) = (SslMode::Require, Some(Check::Host)),
                "sslrootcert" => files.authorities = Some(value.into_owned()),
                "sslcert" => files.certificate = Some(value.into_owned()),
                "sslkey" => files.key = Some(value.into_owned()),
                _ => drop(rest.append_pair(&name, &value)),
            }
        }
        // Like PostgreSQL's own clients, check the authority in `require` mode if there is a root
        // certificate.
        let otherwise = if files.authorities.is_some() { Check::Authority } else { Check::Nothing };
        let tls = tls::config(check.unwrap_or(otherwise), &files).map_err(refused)?;
        // The client decodes %20, but not a plus.
        let rest = rest.finish().replace('+', "%20");
        let url = if rest.is_empty() { address.to_owned() } else { format!("{address}?{rest}") };
        let config: Config = url.parse().map_err(|error: tokio_postgres::Error| {
            refused(error.source().map_or_else(|| error.to_string(), ToString::to_string))
        })?;
        let hosts = hosts(&config, mode).map_err(|text| refused(text.into()))?;
        let next = match config.get_load_balance_hosts() {
            LoadBalanceHosts::Random => random_below(hosts.len()),
            _ => 0,
        };
        let at = hosts.iter().map(|(_, at)| &**at).collect::<Vec<_>>().join(",");
        let tls = MakeRustlsConnect::new(tls);
        Ok(Self {
            hosts: hosts.into(),
            next,
            attempt: ATTEMPT,
            tls,
            at,
            schema_name: "public".into(),
            is_durability_none: false,
            facts: sql::records::WORST,
            has_records: false,
            open: None,
            opening: Opening::default(),
            requests: Arc::new(Semaphore::new(cancel::AT_ONCE)),
            maybe_locked: HashSet::new(),
        })
    }

    /// Creates the store for one of Polyflake's addresses.
    ///
    /// # Errors
    /// Returns the same errors as [`new`](Self::new).
    pub fn of(address: &Address) -> Result<Self, StoreError> {
        let Address { schema_name, is_durability_none, .. } = address;
        let store = Self::new(&address.driver_url())?.within(address.attempt());
        Ok(Self { schema_name: schema_name.clone(), is_durability_none: *is_durability_none, ..store })
    }

    /// Sets the time after which the caller drops an attempt.
    #[must_use]
    pub fn within(mut self, attempt: Duration) -> Self {
        self.attempt = attempt;
        self
    }

    /// Ensures that a working connection is open, as far as the client can tell. Tests the connection if it
    /// has not been used for a while.
    async fn make_ready(&mut self) -> Result<(), StoreError> {
        let is_unfit = |open: &Open| {
            open.busy_with.is_some() || open.client.is_closed() || (self.has_records && open.ready.is_none())
        };
        if self.open.as_ref().is_some_and(is_unfit) {
            self.give_up();
        }
        if self.open.as_ref().is_some_and(|open| open.used.elapsed() > longest_idle(self.attempt)) {
            if let Some(mut open) = self.open.take() {
                let answered = timeout(self.attempt / 4, open.run("")).await;
                self.open = Some(open).filter(|_| matches!(answered, Ok(Ok(()))));
            }
        }
        if self.open.is_none() {
            let (hosts, tls, attempt, first) =
                (Arc::clone(&self.hosts), self.tls.clone(), self.attempt, self.next);
            let requests = Arc::clone(&self.requests);
            let check = self.has_records.then(|| (self.schema_name.clone(), self.is_durability_none));
            let open = async move {
                let mut open = connect(&hosts, first, attempt, &tls, &requests).await?;
                if let Some((schema, is_durability_none)) = check {
                    let checked = records::check(&mut open, &schema, is_durability_none).await;
                    let at = hosts.get(open.host).map_or("", |(_, at)| at);
                    open.ready = Some(checked.map_err(|fault| fault.explain(at, explain))?);
                }
                Ok(open)
            };
            let opened = self.opening.opened(self.attempt, &self.at, open).await;
            // If this host fails, the next attempt begins with another host.
            let host = opened.as_ref().map_or(self.next, |open| open.host);
            self.next = (host + 1) % self.hosts.len();
            let open = opened?;
            self.facts = open.ready.as_ref().map_or(self.facts, |ready| ready.facts);
            self.open = Some(open);
        }
        Ok(())
    }

    /// Gives up the connection. The next call opens another one.
    fn give_up(&mut self) {
        if let Some(table) = self.open.take().and_then(|open| open.busy_with) {
            self.opening.gave_up_busy();
            self.maybe_locked.insert(table);
        }
    }

    /// Makes one attempt. If an attempt fails or is dropped, its connection is not used again. After a mere
    /// conflict with other clients' changes, the call is retried at once.
    async fn call<T>(
        &mut self,
        table: Schema,
        run: impl AsyncFn(&mut Open) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        self.make_ready().await?;
        let Some(open) = self.open.as_mut() else { return Err(StoreError::Unreachable(self.at.clone())) };
        open.busy_with = Some(table);
        let passes = if self.maybe_locked.contains(&table) { open.try_lock(table).await } else { Ok(()) };
        let mut result = match passes {
            Ok(()) => {
                self.maybe_locked.remove(&table);
                run(open).await
            }
            Err(error) => Err(error.into()),
        };
        for _ in 1..MOST_TRIES {
            if !matches!(&result, Err(Fault::Client(error)) if is_contention(error)) {
                break;
            }
            // A transaction is over only once the server has confirmed that it is.
            result = match open.run("ROLLBACK").await {
                Ok(()) => run(open).await,
                Err(error) => Err(error.into()),
            };
        }
        open.busy_with = None;
        match result {
            Ok(value) => {
                (self.next, open.used) = (open.host, Instant::now());
                Ok(value)
            }
            Err(fault) => {
                let at = self.hosts.get(open.host).map_or(&*self.at, |(_, at)| at);
                let error = fault.explain(at, explain);
                self.open = None;
                Err(error)
            }
        }
    }
}

/// Connects to a host that accepts changes. If there are several hosts, each may take at most half of an
/// attempt.
async fn connect(
    hosts: &[(Config, String)],
    first: usize,
    attempt: Duration,
    tls: &MakeRustlsConnect,
    requests: &Arc<Semaphore>,
) -> Result<Open, StoreError> {
    let mut failures = Vec::new();
    for (host, (config, at)) in hosts.iter().enumerate().cycle().skip(first).take(hosts.len()) {
        let mut config = config.clone();
        // The host's name may resolve to several addresses, one of which may not answer.
        let longest = attempt / 4;
        config.connect_timeout(config.get_connect_timeout().map_or(longest, |&given| given.min(longest)));
        let connected = Open::connect(&config, host, tls, requests);
        let connected =
            if hosts.len() == 1 { Ok(connected.await) } else { timeout(attempt / 2, connected).await };
        failures.push(match connected {
            Ok(Ok(open)) => return Ok(open),
            Ok(Err(error)) => explain(at, &error),
            Err(_) => {
                StoreError::Unreachable(format!("{at}: no answer within {} ms", (attempt / 2).as_millis()))
            }
        });
    }
    Err(none_of(failures))
}

/// Returns true if other clients changed the same rows, or if this connection was involved in a deadlock. In
/// either case, nothing is wrong with the server.
fn is_contention(error: &tokio_postgres::Error) -> bool {
    [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED]
        .iter()
        .any(|code| error.code() == Some(code))
}

fn random_below(count: usize) -> usize {
    let random = getrandom::u32().ok().and_then(|random| usize::try_from(random).ok());
    random.unwrap_or(0) % count.max(1)
}

/// Splits the settings for all hosts into the settings for each host. Also returns each host's name, for
/// error messages.
fn hosts(all: &Config, mode: SslMode) -> Result<Vec<(Config, String)>, &'static str> {
    let (names, addresses, ports) = (all.get_hosts(), all.get_hostaddrs(), all.get_ports());
    let count = names.len().max(addresses.len());
    if count == 0 {
        return Err("it names no host");
    }
    if [names.len(), addresses.len()].iter().any(|&given| given != 0 && given != count) {
        return Err("it names more or fewer hosts than addresses");
    }
    if ports.len() > 1 && ports.len() != count {
        return Err("it names more or fewer ports than hosts");
    }
    let one = |at| {
        let mut one = Config::new();
        let port = *ports.get(at).or(ports.first()).unwrap_or(&5432);
        one.port(port);
        let name = match names.get(at) {
            Some(Host::Tcp(name)) => {
                one.host(name);
                Some(name.clone())
            }
            #[cfg(unix)]
            Some(Host::Unix(path)) => {
                one.host_path(path);
                Some(path.display().to_string())
            }
            None => None,
        };
        let address = addresses.get(at).map(|&address| {
            one.hostaddr(address);
            address.to_string()
        });
        given_for_all(all, &mut one);
        one.ssl_mode(mode);
        if count > 1 && all.get_target_session_attrs() == TargetSessionAttrs::Any {
            // Skip standbys.
            one.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        (one, format!("{}:{port}", name.or(address).unwrap_or_default()))
    };
    Ok((0..count).map(one).collect())
}

fn given_for_all(all: &Config, one: &mut Config) {
    if let Some(user) = all.get_user() {
        one.user(user);
    }
    if let Some(password) = all.get_password() {
        one.password(password);
    }
    if let Some(database) = all.get_dbname() {
        one.dbname(database);
    }
    if let Some(options) = all.get_options() {
        one.options(options);
    }
    one.application_name(all.get_application_name().unwrap_or("polyflake"));
    if let Some(&longest) = all.get_connect_timeout() {
        one.connect_timeout(longest);
    }
    if let Some(&longest) = all.get_tcp_user_timeout() {
        one.tcp_user_timeout(longest);
    }
    one.keepalives(all.get_keepalives()).keepalives_idle(all.get_keepalives_idle());
    if let Some(interval) = all.get_keepalives_interval() {
        one.keepalives_interval(interval);
    }
    if let Some(retries) = all.get_keepalives_retries() {
        one.keepalives_retries(retries);
    }
    one.ssl_negotiation(all.get_ssl_negotiation()).channel_binding(all.get_channel_binding());
    one.target_session_attrs(all.get_target_session_attrs());
    one.load_balance_hosts(all.get_load_balance_hosts());
}

fn explain(at: &str, error: &tokio_postgres::Error) -> StoreError {
    if let Some(error) = error.as_db_error() {
        let (code, message) = (error.code(), error.message());
        let text = format!("{at}: {message}");
        return match code.code() {
            // These codes are UNDEFINED_COLUMN and DATATYPE_MISMATCH.
            "42703" | "42804" => other_format(&format!("other columns ({message})")),
            "25006" => StoreError::Unreachable(format!("{at}: {}", read_only())),
            "53100" => StoreError::Unreachable(format!("{at}: the disk is full: {message}")),
            // Poolers use this code for most of their messages.
            "08P01" if message.contains("no such") || message.contains("authentication failed") => {
                StoreError::Refused(text)
            }
            // Problems with the address, the privileges or the statement are permanent, but problems with the
            // server may be temporary.
            code if ["0A", "22", "28", "3D", "3F", "42"].iter().any(|class| code.starts_with(class)) => {
                StoreError::Refused(text)
            }
            _ => StoreError::Unreachable(text),
        };
    }
    let Some(source) = error.source() else { return StoreError::Unreachable(format!("{at}: {error}")) };
    let text = format!("{at}: {source}");
    match source.downcast_ref::<std::io::Error>() {
        Some(error) if !tls::is_fault(error) => StoreError::Unreachable(text),
        _ => StoreError::Refused(text),
    }
}

impl Open {
    /// Runs a statement whose placeholders are `?`, or `?1` and so on.
    async fn query_with(&mut self, statement: &str, values: &[Value<'_>]) -> Result<Vec<Row>, Fault> {
        Ok(self.query(&numbered(statement), &parameters(values)).await?)
    }

    /// Like [`query_with`](Self::query_with), but the server keeps the statement prepared.
    async fn query_kept(&mut self, statement: &str, values: &[Value<'_>]) -> Result<Vec<Row>, Fault> {
        if !self.is_direct {
            return self.query_with(statement, values).await;
        }
        let (text, parameters) = (numbered(statement), parameters(values));
        if self.kept.as_ref().is_none_or(|(kept, _)| *kept != text) {
            let types: Vec<_> = parameters.iter().map(|(_, of)| of.clone()).collect();
            let kept = Self::drive(&mut self.connection, self.client.prepare_typed(&text, &types)).await?;
            self.kept = Some((text, kept));
        }
        let Some((_, kept)) = &self.kept else { return Ok(Vec::new()) };
        let values: Vec<_> = parameters.iter().map(|(value, _)| *value).collect();
        match Self::drive(&mut self.connection, self.client.query(kept, &values)).await {
            // There is a pooler after all, and another server process answered the call.
            Err(error) if error.code() == Some(&SqlState::INVALID_SQL_STATEMENT_NAME) => {
                self.is_direct = false;
                Ok(self.query(&numbered(statement), &parameters).await?)
            }
            answer => Ok(answer?),
        }
    }

    /// Sends several statements before reading the first answer.
    async fn query_each<'a>(
        &mut self,
        statements: impl Iterator<Item = (&'a str, &'a [Value<'a>])>,
    ) -> Result<Vec<Result<Vec<Row>, tokio_postgres::Error>>, Fault> {
        let all: Vec<_> =
            statements.map(|(statement, values)| (numbered(statement), parameters(values))).collect();
        let client = &self.client;
        let answers = join_all(all.iter().map(|(statement, values)| client.query_typed(statement, values)));
        Ok(Self::drive(&mut self.connection, answers.map(Ok)).await?)
    }
}

fn numbered(statement: &str) -> String {
    let mut parts = statement.split('?');
    let mut numbered = parts.next().unwrap_or_default().to_owned();
    for (at, part) in (1_usize..).zip(parts) {
        let at = if part.starts_with(|c: char| c.is_ascii_digit()) { String::new() } else { at.to_string() };
        numbered.extend(["$", &at, part]);
    }
    numbered
}

fn parameters<'a>(values: &'a [Value<'a>]) -> Vec<Parameter<'a>> {
    let parameter = |value: &'a Value<'a>| match value {
        Value::Text(text) => (text as _, Type::TEXT),
        Value::Number(number) => (number as _, Type::INT8),
    };
    values.iter().map(parameter).collect()
}

impl counters::Client for Open {
    type Fault = Fault;

    const DIALECT: Dialect = Dialect {
        writable: "current_setting('transaction_read_only') = 'off' \
                   AND (SELECT set_config('lock_timeout', '1s', true)) IS NOT NULL",
        returned: ["", ""],
        seconds: "floor(extract(epoch FROM clock_timestamp()))::bigint",
    };

    async fn rows(&mut self, statement: &str, values: &[Value<'_>]) -> Result<Vec<Columns>, Fault> {
        let rows = self.query_with(statement, values).await?;
        rows.iter().map(|row| (0..row.len()).map(|at| number(row, at)).collect()).collect()
    }

    async fn change(&mut self, statement: &str, values: &[Value<'_>]) -> Result<bool, Fault> {
        let statement = format!("{statement} RETURNING 1, {DURABLE} IS NULL");
        Ok(!self.rows(&statement, values).await?.is_empty())
    }

    async fn number(
        &mut self,
        statement: &str,
        column: &str,
        values: &[Value<'_>],
    ) -> Result<Option<i64>, Fault> {
        let statement = format!("{statement} RETURNING {column}, {DURABLE} IS NULL");
        Ok(self.rows(&statement, values).await?.first().and_then(|row| row.first().copied().flatten()))
    }
}

/// Returns the value of a column that contains a whole number of any width, or a boolean.
fn number(row: &Row, at: usize) -> Result<Option<i64>, Fault> {
    Ok(match *row.columns()[at].type_() {
        Type::BOOL => row.try_get::<_, Option<bool>>(at)?.map(i64::from),
        Type::INT2 => row.try_get::<_, Option<i16>>(at)?.map(i64::from),
        Type::INT4 => row.try_get::<_, Option<i32>>(at)?.map(i64::from),
        _ => row.try_get(at)?,
    })
}

#[async_trait(?Send)]
impl Rows for PostgresStore {
    async fn reserve(&mut self, counter: &CounterName, reserve: &Reserve) -> Result<Reserved, StoreError> {
        self.call(counter.schema, async |open| counters::reserve(open, counter, reserve).await).await
    }

    async fn counter(&mut self, counter: &CounterName) -> Result<Option<CounterRecord>, StoreError> {
        self.call(counter.schema, async |open| counters::counter(open, counter).await).await
    }

    async fn put_counter(
        &mut self,
        counter: &CounterName,
        expected: &CounterRecord,
        new: &CounterRecord,
    ) -> Result<bool, StoreError> {
        self.call(counter.schema, async |open| counters::put_counter(open, counter, expected, new).await)
            .await
    }

    async fn counter_names(&mut self, namespace: &str, schema: Schema) -> Result<Vec<String>, StoreError> {
        let rows = self.texts(schema).await?;
        Ok(counters::in_namespace(schema, namespace, rows))
    }
}
