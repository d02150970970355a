//! MySQL 8, and MariaDB 10.5 and later.

mod names;
pub(super) mod records;

use core::fmt;
use core::task::{Context, Waker};
use core::time::Duration;
use std::path::PathBuf;
use std::time::Instant;

use async_trait::async_trait;
use mysql_async::prelude::{FromValue, Queryable};
use mysql_async::{
    ClientIdentity, Conn, DriverError, Error, IoError, Opts, OptsBuilder, Params, Row, ServerError, SslOpts,
    Value,
};
use tokio::time::timeout;

use super::sql::counters::{self, Columns, Dialect};
use super::sql::{self, ATTEMPT, MOST_TRIES, Opening, bigint, longest_idle, other_format, read_only};
use super::tls::{self, Check, Files};
use crate::records::Facts;
use crate::store::{CounterName, CounterRecord, Reserve, Reserved, Rows, Schema, StoreError};
use crate::url::Address;

/// The statements that set up each session. The client sends the last statement first. Turning `autocommit`
/// off and on again ends any transaction that `init_connect` began, which would otherwise never be committed.
/// The isolation level applies to the transactions that follow. At this level, the server can also log
/// changes as statements. Times are in UTC, since other time zones repeat an hour. If a value does not fit,
/// the server returns an error instead of truncating it. It also returns an error if it lacks a storage
/// engine. A `ROLLBACK` does not begin another transaction, which would never be committed. The server never
/// omits rows, and never refuses a statement because of how many rows it may examine. No session times out
/// between two renewals. A statement waits at most one second for a row or table lock.
const SETUP: [&str; 2] = [
    "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ WRITE",
    "SET SESSION time_zone = '+00:00', sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', autocommit = 0, \
     autocommit = 1, completion_type = 0, sql_select_limit = 18446744073709551615, sql_big_selects = 1, \
     wait_timeout = 28800, innodb_lock_wait_timeout = 1, lock_wait_timeout = 1",
];

const NOW: &str = "CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000) AS UNSIGNED)";

/// A condition that holds if the server accepts writes. Without this condition, users with enough privileges
/// could write to a read-only replica. Newer versions report a word instead of a number.
const WRITABLE: &str = "CAST(@@GLOBAL.read_only AS CHAR) IN ('0', 'OFF')";

/// The maximum length of a packet. No page of records is this long.
const MOST_OF_A_PACKET: usize = 1 << 26;

/// A MySQL or MariaDB database.
pub struct MysqlStore {
    opts: Opts,
    attempt: Duration,
    /// The database's location, for error messages.
    at: String,
    is_durability_none: bool,
    facts: Facts,
    /// True if the caller uses records. Each new connection is then checked.
    has_records: bool,
    open: Option<Open>,
    opening: Opening<Open>,
}

impl fmt::Debug for MysqlStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MysqlStore").field("at", &self.at).finish_non_exhaustive()
    }
}

struct Open {
    connection: Conn,
    ready: Option<records::Ready>,
    used: Instant,
    /// True while a request is unanswered.
    is_busy: bool,
}

impl Drop for Open {
    /// Makes the client close the connection, as it does when a connection is dropped in the middle of a
    /// request. Otherwise, it would keep the connection open and read the rest of the answer, which may never
    /// arrive.
    fn drop(&mut self) {
        if self.is_busy {
            let _ = self.connection.ping().as_mut().poll(&mut Context::from_waker(Waker::noop()));
        }
    }
}

type Fault = sql::Fault<Error>;

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Client(error)
    }
}

impl MysqlStore {
    /// Creates a store for an address in the form that MySQL's own tools accept, with `ssl-mode`, `ssl-ca`,
    /// `ssl-cert` and `ssl-key` in its query. The store connects on the first call.
    ///
    /// # Errors
    /// Fails if `driver_url` is not such an address, or if it names no database.
    pub fn new(driver_url: &str) -> Result<Self, StoreError> {
        let (address, query) = driver_url.split_once('?').unwrap_or((driver_url, ""));
        let refused = |text: String| StoreError::Refused(format!("the address of MySQL: {text}"));
        if query.contains('@') {
            // The error messages below quote parts of the query.
            return Err(refused(
                "a `?` in a user or password is written %3F, and an @ in the query %40".into(),
            ));
        }
        let (mut mode, mut files) = (None, Files::default());
        let mut rest = form_urlencoded::Serializer::new(String::new());
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let value = value.into_owned();
            match &*name {
                "ssl-mode" => mode = Some(value.to_ascii_uppercase()),
                "ssl-ca" => files.authorities = Some(value),
                "ssl-cert" => files.certificate = Some(value),
                "ssl-key" => files.key = Some(value),
                _ => drop(rest.append_pair(&name, &value)),
            }
        }
        let rest = rest.finish();
        let url = if rest.is_empty() { address.to_owned() } else { format!("{address}?{rest}") };
        let opts = Opts::from_url(&url).map_err(|error| refused(error.to_string()))?;
        if opts.db_name().is_none_or(str::is_empty) {
            return Err(refused("it names no database".into()));
        }
        let at = format!("{}:{}", opts.ip_or_hostname(), opts.tcp_port());
        let mut tls = opts.ssl_opts().cloned();
        let any_file = [&files.authorities, &files.certificate, &files.key].into_iter().any(Option::is_some);
        if mode.is_some() || any_file {
            // Read the files now, so that the error message can name the path. The client reads them again
            // for each connection.
            tls::config(Check::Host, &files).map_err(refused)?;
            let default = if files.authorities.is_some() { "VERIFY_CA" } else { "REQUIRED" };
            tls = options(tls.unwrap_or_default(), mode.as_deref().unwrap_or(default), files)
                .map_err(refused)?;
        }
        let packet = opts.max_allowed_packet().or(Some(MOST_OF_A_PACKET));
        let timeout = opts.wait_timeout().or(Some(28_800));
        let opts = OptsBuilder::from_opts(opts)
            .ssl_opts::<Option<SslOpts>>(tls)
            // Count matching rows even if the statement leaves them unchanged.
            .client_found_rows(true)
            // Otherwise the client would connect twice, as a user not named in the address.
            .prefer_socket(false)
            // Otherwise the client would ask the server for these values, which only its pool and longer
            // statements need.
            .max_allowed_packet(packet)
            .wait_timeout(timeout)
            .setup(SETUP.to_vec())
            .into();
        Ok(Self {
            opts,
            attempt: ATTEMPT,
            at,
            is_durability_none: false,
            facts: sql::records::WORST,
            has_records: false,
            open: None,
            opening: Opening::default(),
        })
    }

    /// Creates the store for one of Polyflake's addresses.
    ///
    /// # Errors
    /// Returns the same errors as [`new`](Self::new).
    pub fn of(address: &Address) -> Result<Self, StoreError> {
        let store = Self::new(&address.driver_url())?.within(address.attempt());
        Ok(Self { is_durability_none: address.is_durability_none, ..store })
    }

    /// Sets the time after which the caller drops an attempt.
    #[must_use]
    pub const fn within(mut self, attempt: Duration) -> Self {
        self.attempt = attempt;
        self
    }

    /// Ensures that a working connection is open, as far as the client can tell. Tests the connection if it
    /// has not been used for a while.
    async fn make_ready(&mut self) -> Result<(), StoreError> {
        let is_unfit = |open: &Open| open.is_busy || (self.has_records && open.ready.is_none());
        if self.open.as_ref().is_some_and(is_unfit) {
            crate::records::Store::disconnect(self);
        }
        if self.open.as_ref().is_some_and(|open| open.used.elapsed() > longest_idle(self.attempt)) {
            if let Some(mut open) = self.open.take() {
                let answered = timeout(self.attempt / 4, open.connection.ping()).await;
                self.open = Some(open).filter(|_| matches!(answered, Ok(Ok(()))));
            }
        }
        if self.open.is_none() {
            let (opts, at) = (self.opts.clone(), self.at.clone());
            let (is_durability_none, has_records) = (self.is_durability_none, self.has_records);
            let open = async move {
                let opened = connect(opts, is_durability_none, has_records).await;
                opened.map_err(|fault| fault.explain(&at, explain))
            };
            let open = self.opening.opened(self.attempt, &self.at, open).await?;
            self.facts = open.ready.as_ref().map_or(self.facts, |ready| ready.facts);
            self.open = Some(open);
        }
        Ok(())
    }

    /// Makes one attempt. If an attempt fails or is dropped, its connection is not used again. After a mere
    /// conflict with other clients' changes, the call is retried at once.
    async fn call<T>(&mut self, run: impl AsyncFn(&mut Open) -> Result<T, Fault>) -> Result<T, StoreError> {
        self.make_ready().await?;
        let Some(open) = self.open.as_mut() else { return Err(StoreError::Unreachable(self.at.clone())) };
        open.is_busy = true;
        let mut result = run(open).await;
        for _ in 1..MOST_TRIES {
            if !matches!(&result, Err(Fault::Client(error)) if is_contention(error)) {
                break;
            }
            // A deadlock has already rolled back the whole transaction. Other conflicts have rolled back only
            // the statement.
            result = match open.connection.query_drop("ROLLBACK").await {
                Ok(()) => run(open).await,
                Err(error) => Err(error.into()),
            };
        }
        open.is_busy = false;
        match result {
            Ok(value) => {
                open.used = Instant::now();
                Ok(value)
            }
            Err(fault) => {
                self.open = None;
                Err(fault.explain(&self.at, explain))
            }
        }
    }
}

async fn connect(opts: Opts, is_durability_none: bool, has_records: bool) -> Result<Open, Fault> {
    if opts.ssl_opts().is_some() && rustls::crypto::CryptoProvider::get_default().is_none() {
        // The client uses the process's default TLS provider. If this call fails, another thread has already
        // installed a provider.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
    let connection = Conn::new(opts).await?;
    let mut open = Open { connection, ready: None, used: Instant::now(), is_busy: true };
    if has_records {
        open.ready = Some(records::check(&mut open.connection, is_durability_none).await?);
    } else {
        records::check_for_rows(&mut open.connection, is_durability_none).await?;
    }
    (open.used, open.is_busy) = (Instant::now(), false);
    Ok(open)
}

/// Returns true if other clients changed the same rows, or if this connection was involved in a deadlock. In
/// either case, nothing is wrong with the server. (MariaDB reports 1020 if a snapshot is older than a row.
/// 1205 is not a conflict here, since it means that the call has already waited too long for a lock.)
fn is_contention(error: &Error) -> bool {
    matches!(error, Error::Server(ServerError { code, state, .. }) if matches!(code, 1020 | 1213) || state == "40001")
}

/// Converts a mode and files, named as in MySQL's tools, to the client's options.
fn options(given: SslOpts, mode: &str, files: Files) -> Result<Option<SslOpts>, String> {
    let mut given = given;
    if let Some(path) = files.authorities {
        let path = PathBuf::from(path);
        given = given.with_root_certs(vec![path.into()]).with_disable_built_in_roots(true);
    }
    if let (Some(certificate), Some(key)) = (files.certificate, files.key) {
        // mysql_async 0.36 accepts only RSA keys whose first line is BEGIN RSA PRIVATE KEY.
        let identity = ClientIdentity::new(PathBuf::from(certificate).into(), PathBuf::from(key).into());
        given = given.with_client_identity(Some(identity));
    }
    match mode {
        "DISABLED" => Ok(None),
        // Like MySQL's tools, verify only what the mode requires.
        "REQUIRED" => {
            Ok(Some(given.with_danger_accept_invalid_certs(true).with_danger_skip_domain_validation(true)))
        }
        // Without this option, mysql_async would check the name, since it looks for an error message that
        // rustls no longer produces.
        "VERIFY_CA" => Ok(Some(given.with_danger_skip_domain_validation(true))),
        "VERIFY_IDENTITY" => Ok(Some(given)),
        _ => {
            let known = "DISABLED, REQUIRED, VERIFY_CA and VERIFY_IDENTITY";
            Err(format!("ssl-mode={mode} is unknown; the modes are {known}"))
        }
    }
}

const ABSENT: u16 = 1146;
const DUPLICATE: u16 = 1062;

fn column<T: FromValue>(row: &Row, at: usize) -> Result<T, Fault> {
    match row.get_opt(at) {
        Some(Ok(value)) => Ok(value),
        _ => Err(other_format("columns of other types").into()),
    }
}

fn explain(at: &str, error: &Error) -> StoreError {
    let refused = |text: &dyn fmt::Display| StoreError::Refused(format!("{at}: {text}"));
    let unreachable = |text: &dyn fmt::Display| StoreError::Unreachable(format!("{at}: {text}"));
    match error {
        Error::Server(ServerError { code, message, state }) => match code {
            1054 => other_format(&format!("other columns ({message})")),
            1290 if !message.contains("read-only") => refused(message),
            1290 | 1792 | 1836 => unreachable(&read_only()),
            1021 | 1114 => unreachable(&format_args!("the disk is full: {message}")),
            // This user has too many connections, or the server has too many prepared statements.
            1203 | 1226 | 1461 => unreachable(message),
            // This host is not allowed to connect, or may connect only with TLS.
            1130 | 3159 => refused(message),
            // Problems with the address, the privileges or the statement are permanent, but problems with the
            // server may be temporary.
            _ if ["22", "28", "42"].iter().any(|class| state.starts_with(class)) => refused(message),
            _ => unreachable(message),
        },
        Error::Io(IoError::Io(error)) if tls::is_fault(error) => refused(error),
        Error::Io(IoError::Io(error)) => unreachable(error),
        Error::Io(error @ IoError::Tls(_)) => refused(error),
        Error::Driver(
            error @ (DriverError::NoClientSslFlagFromServer
            | DriverError::UnknownAuthPlugin { .. }
            | DriverError::CleartextPluginDisabled
            | DriverError::MysqlOldPasswordDisabled
            | DriverError::NoKeyFound),
        ) => refused(error),
        Error::Driver(error) => unreachable(error),
        Error::Url(error) => refused(error),
        Error::Other(error) => unreachable(error),
    }
}

impl counters::Client for Open {
    type Fault = Fault;

    const DIALECT: Dialect =
        Dialect { writable: WRITABLE, returned: ["LAST_INSERT_ID(", ")"], seconds: "UNIX_TIMESTAMP()" };

    async fn rows(&mut self, statement: &str, values: &[counters::Value<'_>]) -> Result<Vec<Columns>, Fault> {
        let rows: Vec<Row> = self.connection.exec(statement, params(values)).await?;
        rows.iter().map(|row| (0..row.len()).map(|at| column(row, at)).collect()).collect()
    }

    async fn change(&mut self, statement: &str, values: &[counters::Value<'_>]) -> Result<bool, Fault> {
        match self.connection.exec_drop(statement, params(values)).await {
            Ok(()) => Ok(self.connection.affected_rows() > 0),
            Err(Error::Server(ServerError { code: DUPLICATE, .. })) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Changes a row. The server returns the number in the field meant for a new row's ID.
    async fn number(
        &mut self,
        statement: &str,
        _: &str,
        values: &[counters::Value<'_>],
    ) -> Result<Option<i64>, Fault> {
        if !self.change(statement, values).await? {
            return Ok(None);
        }
        let number = match self.connection.last_insert_id() {
            // If the change fired a trigger, the answer lacks the number, but the session still has it.
            None => self.connection.query_first("SELECT LAST_INSERT_ID()").await?,
            number => number,
        };
        let number = number.ok_or_else(|| StoreError::Unreachable("a reply without a number".into()))?;
        Ok(Some(bigint(number)?))
    }
}

fn params(values: &[counters::Value<'_>]) -> Params {
    let values = values.iter().map(|value| match value {
        counters::Value::Text(text) => Value::from(text),
        counters::Value::Number(number) => Value::from(number),
    });
    Params::Positional(values.collect())
}

#[async_trait(?Send)]
impl Rows for MysqlStore {
    async fn reserve(&mut self, counter: &CounterName, reserve: &Reserve) -> Result<Reserved, StoreError> {
        self.call(async |open| counters::reserve(open, counter, reserve).await).await
    }

    async fn counter(&mut self, counter: &CounterName) -> Result<Option<CounterRecord>, StoreError> {
        self.call(async |open| counters::counter(open, counter).await).await
    }

    async fn put_counter(
        &mut self,
        counter: &CounterName,
        expected: &CounterRecord,
        new: &CounterRecord,
    ) -> Result<bool, StoreError> {
        self.call(async |open| counters::put_counter(open, counter, expected, new).await).await
    }

    async fn counter_names(&mut self, namespace: &str, schema: Schema) -> Result<Vec<String>, StoreError> {
        let rows = self.texts(counters::names_of(schema)).await?;
        Ok(counters::in_namespace(schema, namespace, rows))
    }
}
