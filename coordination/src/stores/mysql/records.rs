//! Records in MySQL and MariaDB. The columns for names are binary, because stores compare names byte by byte,
//! and the two databases share no collation that does so.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use async_trait::async_trait;
use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Error, Params, Row, ServerError, Value as Parameter};

use super::{ABSENT, DUPLICATE, Fault, MysqlStore, NOW, Open, WRITABLE, column};
use crate::records::{Add, Added, Answer, Facts, Group, Kind, Named, Outcome, Record, Store, Write};
use crate::store::{Rows, StoreError};
use crate::stores::sql::counters::Value;
use crate::stores::sql::records::{self, Class, Client, Dialect, FORMER, TABLE};
use crate::stores::sql::{bigint, read_only};

/// The statements that `polyflake schema mysql` prints.
pub(in crate::engine::stores) const DDL: &str = "\
CREATE TABLE IF NOT EXISTS polyflake_records (
    namespace VARBINARY(64) NOT NULL COMMENT 'From the store''s address',
    kind VARBINARY(16) NOT NULL COMMENT 'The kind of the group: space, counter or sequences',
    group_name VARBINARY(400) NOT NULL COMMENT 'The name of the space, counter or set of sequences',
    name VARBINARY(32) NOT NULL COMMENT 'The record in its group, such as head, or a node',
    version BIGINT NOT NULL COMMENT 'Random, and different after each change',
    number BIGINT NOT NULL
        COMMENT 'For a node: its holder issues below this tick. For a counter: no higher number was handed out',
    text VARBINARY(8192) NOT NULL COMMENT 'The rest, as JSON',
    updated_at DATETIME NOT NULL COMMENT 'UTC, for people',
    PRIMARY KEY (namespace, kind, group_name, name)
) ENGINE=InnoDB COMMENT 'Polyflake: leases of nodes, counters and sequences';
";

/// The privileges that the account needs. With PROCESS, the account can see the replicas.
pub(in crate::engine::stores) const GRANTS: &str = "\
GRANT SELECT, INSERT, UPDATE ON polyflake_records TO polyflake@'%';
GRANT PROCESS ON *.* TO polyflake@'%';
";

/// The facts about the server that the client collected when it connected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ready {
    pub(super) facts: Facts,
    /// An expression that yields the server's incarnation.
    incarnation: &'static str,
    /// The incarnation of the server that answered the last read. A change returns only a number, so each
    /// change has a condition that lets only this server carry it out.
    seen: String,
    /// The value of [`IN_SESSION`] on that server, if the session has set it. Only MariaDB needs it.
    in_session: Option<String>,
    /// The server's time in the answer to the last read.
    seen_ms: i64,
    is_cluster: bool,
}

const MYSQL: &str = "CONCAT('server ', @@GLOBAL.server_uuid)";

macro_rules! since {
    () => {
        "UNIX_TIMESTAMP() - CAST((SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS \
         WHERE VARIABLE_NAME = 'UPTIME') AS SIGNED)"
    };
}

macro_rules! mariadb {
    ($since:expr) => {
        concat!(
            "CONCAT('server ', @@GLOBAL.hostname, ' port ', @@GLOBAL.port, ' id ', @@GLOBAL.server_id, ' since ', ",
            $since, ")"
        )
    };
}

/// `Uptime` counts whole seconds from the server's start to the start of the statement, and
/// `UNIX_TIMESTAMP()` also refers to the start of the statement. Another server with the same port and
/// network address may have the same `server_uid`.
const MARIADB: &str = mariadb!(since!());

/// Looking up `Uptime` takes many times as long as a change, so a change compares the value that the session
/// found. A session and its variables do not outlive the server's process. If a proxy switches to another
/// session, that session has another value or none.
const FIND: &str = concat!("SET @polyflake_since = ", since!());
const IN_SESSION: &str = mariadb!("@polyflake_since");

macro_rules! cluster {
    ($schema:literal) => {
        concat!(
            "(SELECT CONCAT('cluster ', u.VARIABLE_VALUE) FROM ", $schema, ".GLOBAL_STATUS u JOIN ", $schema,
            ".GLOBAL_STATUS r WHERE u.VARIABLE_NAME = 'wsrep_cluster_state_uuid' AND r.VARIABLE_NAME = 'wsrep_ready' \
             AND r.VARIABLE_VALUE = 'ON')"
        )
    };
}

/// The incarnation of a Galera cluster. All nodes of the cluster have the same data. The value is NULL on a
/// node that is not ready.
const CLUSTER_OF_MARIADB: &str = cluster!("information_schema");
const CLUSTER_OF_MYSQL: &str = cluster!("performance_schema");

/// The values of server variables, keyed by their lower-case names.
type Settings = BTreeMap<String, String>;

fn get<'a>(settings: &'a Settings, name: &str) -> &'a str {
    settings.get(name).map_or("", String::as_str)
}

fn is_on(settings: &Settings, name: &str) -> bool {
    matches!(get(settings, name), "ON" | "1")
}

/// Refuses a server that logs changes as statements. Each change has a condition on the server itself, which
/// does not hold on a replica that replays the statement.
fn refuse_statements(settings: &Settings) -> Result<(), StoreError> {
    if is_on(settings, "log_bin") && get(settings, "binlog_format") == "STATEMENT" {
        let text =
            "binlog_format is STATEMENT, so replicas do not receive these writes: set it to ROW or MIXED";
        return Err(StoreError::Refused(text.into()));
    }
    Ok(())
}

/// Checks that a server with these variables is suitable for other systems' tables.
fn judge_for_rows(settings: &Settings, is_durability_none: bool) -> Result<(), StoreError> {
    if is_durability_none {
        return Ok(());
    }
    let name = "innodb_flush_log_at_trx_commit";
    if get(settings, name) == "0" {
        return Err(records::refused_setting(name, "0", "1"));
    }
    refuse_statements(settings)
}

/// Checks that a server with these variables and this state is suitable, and returns the facts that they
/// reveal.
fn judge(settings: &Settings, dumps: u64, is_durability_none: bool) -> Result<Ready, StoreError> {
    let get = |name| get(settings, name);
    let number = |name| get(name).parse().unwrap_or(0_u64);
    let is_on = |name| is_on(settings, name);
    let is_mysql = settings.contains_key("server_uuid");
    let is_cluster = is_on("wsrep_on") && !matches!(get("wsrep_provider"), "" | "none");
    let has_log = is_on("log_bin");
    // MariaDB reveals a restart, but MySQL does not.
    let syncs_log = !has_log || get("sync_binlog") == "1";
    if !is_durability_none {
        // MariaDB's 3 is as safe as 1.
        if !matches!(get("innodb_flush_log_at_trx_commit"), "1" | "3") {
            let name = "innodb_flush_log_at_trx_commit";
            return Err(records::refused_setting(name, get(name), "1"));
        }
        if is_mysql && !syncs_log {
            return Err(records::refused_setting("sync_binlog", get("sync_binlog"), "1"));
        }
    }
    refuse_statements(settings)?;
    let replicas = dumps.max(number("slaves_connected"));
    let synchronous = number("rpl_semi_sync_master_clients").max(number("rpl_semi_sync_source_clients"));
    let executed = get("gtid_executed");
    let was_replica = !get("gtid_slave_pos").is_empty()
        || executed.contains(',')
        || !(executed.is_empty() || executed.starts_with(get("server_uuid")));
    let incarnation = match (is_cluster, is_mysql) {
        (true, true) => CLUSTER_OF_MYSQL,
        (true, false) => CLUSTER_OF_MARIADB,
        (false, true) => MYSQL,
        (false, false) => MARIADB,
    };
    let facts = Facts {
        granularity_ms: 1,
        // A cluster that went down as a whole may restart from a node that lacks the most recent writes.
        can_forget: is_cluster
            || is_durability_none
            || !syncs_log
            || (has_log && replicas > 0)
            || was_replica,
        asynchronous_replicas: replicas.saturating_sub(synchronous),
    };
    Ok(Ready { facts, incarnation, seen: String::new(), in_session: None, seen_ms: 0, is_cluster })
}

/// Returns true if a server was restarted between two incarnations, or `None` if they belong to different
/// servers.
fn is_restarted(before: &str, now: &str) -> Option<bool> {
    let split = |text: &str| -> Option<(String, u64)> {
        let (server, since) = text.rsplit_once(" since ")?;
        Some((server.into(), since.parse().ok()?))
    };
    let ((one, before), (other, now)) = (split(before)?, split(now)?);
    // Both times are whole seconds, so their difference may be off by one.
    (one == other).then_some(before.abs_diff(now) > 1)
}

impl Ready {
    fn saw(&mut self, now_ms: i64, incarnation: &str) {
        self.seen_ms = now_ms;
        incarnation.clone_into(&mut self.seen);
        match &self.in_session {
            // The answer comes from a different server than the session's, or the server's clock was
            // adjusted.
            Some(found) if is_restarted(found, incarnation) != Some(false) => self.in_session = None,
            Some(_) => {}
            None => self.in_session = Some(incarnation.to_owned()),
        }
    }
}

impl MysqlStore {
    async fn ask<T>(&mut self, run: impl AsyncFn(&mut Open) -> Result<T, Fault>) -> Result<T, StoreError> {
        self.has_records = true;
        self.call(run).await
    }
}

const VARIABLES: &str = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('server_uuid', 'innodb_flush_log_at_trx_commit', \
    'log_bin', 'sync_binlog', 'binlog_format', 'gtid_executed', 'gtid_slave_pos', 'wsrep_on', 'wsrep_provider')";
const STATUS: &str = "SHOW GLOBAL STATUS WHERE Variable_name IN ('Slaves_connected', 'Rpl_semi_sync_master_clients', \
    'Rpl_semi_sync_source_clients')";

async fn settings(connection: &mut Conn, statements: &[&str]) -> Result<Settings, Fault> {
    let mut settings = Settings::new();
    for &statement in statements {
        let found: Vec<(String, String)> = connection.query(statement).await?;
        settings.extend(found.into_iter().map(|(name, value)| (name.to_ascii_lowercase(), value)));
    }
    Ok(settings)
}

/// Checks a server for other systems' tables.
pub(super) async fn check_for_rows(connection: &mut Conn, is_durability_none: bool) -> Result<(), Fault> {
    Ok(judge_for_rows(&settings(connection, &[VARIABLES]).await?, is_durability_none)?)
}

pub(super) async fn check(connection: &mut Conn, is_durability_none: bool) -> Result<Ready, Fault> {
    let settings = settings(connection, &[VARIABLES, STATUS]).await?;
    let statement = format!(
        // Without the PROCESS privilege, no replicas are visible.
        "SELECT (SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE COMMAND LIKE 'Binlog Dump%'), \
         (SELECT MIN(TABLE_NAME) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() \
         AND TABLE_NAME IN ('{}')), \
         (SELECT MIN(ENGINE) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() \
         AND TABLE_NAME = '{TABLE}' AND ENGINE <> 'InnoDB')",
        FORMER.join("', '")
    );
    let found: Option<(u64, Option<String>, Option<String>)> = connection.query_first(statement).await?;
    let (dumps, former, other) = found.unwrap_or_default();
    let mut ready = judge(&settings, dumps, is_durability_none)?;
    if let Some(former) = former {
        return Err(StoreError::Refused(records::former_table(&former)).into());
    }
    // Galera does not replicate the rows of other engines, and a crash silently loses them.
    if let Some(other) = other {
        return Err(StoreError::Refused(format!(
            "the engine of {TABLE} is {other}, which may lose rows and not replicate them: \
             ALTER TABLE {TABLE} ENGINE=InnoDB"
        ))
        .into());
    }
    if ready.is_cluster {
        // From here on, this connection sees every write that the cluster has acknowledged to other clients.
        connection.query_drop("SET SESSION wsrep_sync_wait = 7").await?;
    }
    if ready.incarnation == MARIADB {
        connection.query_drop(FIND).await?;
    }
    let seen: Option<(i64, Option<String>)> =
        connection.query_first(format!("SELECT {NOW}, IF({WRITABLE}, {}, NULL)", ready.incarnation)).await?;
    let (seen_ms, seen) = seen.unwrap_or_default();
    ready.saw(seen_ms, &seen.ok_or_else(read_only)?);
    Ok(ready)
}

/// Converts numbered placeholders to `?`. Returns the statement, and the values in the order of its
/// placeholders.
fn positional(statement: &str, values: &[Value<'_>]) -> (String, Params) {
    let mut parts = statement.split('?');
    let mut text = parts.next().unwrap_or_default().to_owned();
    let mut ordered = Vec::new();
    for part in parts {
        let digits = part.bytes().take_while(u8::is_ascii_digit).count();
        let (at, rest) = part.split_at(digits);
        let value = at.parse::<usize>().ok().and_then(|at| values.get(at.checked_sub(1)?));
        ordered.push(match value {
            Some(Value::Text(text)) => Parameter::from(text),
            Some(Value::Number(number)) => Parameter::from(number),
            None => Parameter::NULL,
        });
        text.extend(["?", rest]);
    }
    (text, if ordered.is_empty() { Params::Empty } else { Params::Positional(ordered) })
}

impl Client for Open {
    type Fault = Fault;

    fn dialect(&self) -> Dialect {
        let (incarnation, compared, seen) = match &self.ready {
            Some(Ready { incarnation: MARIADB, in_session, .. }) => {
                (MARIADB, IN_SESSION, in_session.as_deref().unwrap_or_default())
            }
            Some(Ready { incarnation, seen, .. }) => (*incarnation, *incarnation, &**seen),
            None => ("NULL", "NULL", ""),
        };
        let mut literal = String::new();
        for byte in seen.bytes() {
            let _ = write!(literal, "{byte:02x}");
        }
        Dialect {
            table: TABLE.into(),
            now: NOW.into(),
            incarnation: incarnation.into(),
            writable: WRITABLE.into(),
            unchanged: format!(" AND {compared} = X'{literal}'"),
            with: "",
            setup: "(SELECT 1 AS ready) setup",
            reads_first: true,
            share: " LOCK IN SHARE MODE",
            unless_there: "",
            // The condition never holds, since a time is never 0. Its only purpose is to return the time in
            // the answer.
            version: [format!("IF(LAST_INSERT_ID({NOW}) = 0, 0, "), ")".into()],
            sum: ["LAST_INSERT_ID(", ")"],
            returns: false,
            schema: "polyflake schema mysql".into(),
        }
    }

    fn class(fault: &Fault) -> Class {
        let Fault::Client(Error::Server(ServerError { code, message, .. })) = fault else {
            return Class::Other;
        };
        match *code {
            ABSENT => Class::Absent,
            1044 | 1142 => Class::Denied,
            // The server returns code 1290 for any option that forbids a statement.
            1290 if !message.contains("read-only") => Class::Other,
            1290 | 1792 | 1836 => Class::ReadOnly,
            _ => Class::Other,
        }
    }

    async fn rows(&mut self, statement: &str, values: &[Value<'_>]) -> Result<Vec<records::Row>, Fault> {
        if let Some(Ready { incarnation: MARIADB, in_session: None, .. }) = &self.ready {
            self.connection.query_drop(FIND).await?;
        }
        let (statement, values) = positional(statement, values);
        let rows: Vec<Row> = self.connection.exec(statement, values).await?;
        rows.iter().map(row).collect()
    }

    /// Changes a row. The server returns the time or the sum in the field meant for a new row's ID. If it
    /// returns a sum, the time is that of the last read.
    async fn change(
        &mut self,
        statement: &str,
        values: &[Value<'_>],
        is_sum: bool,
    ) -> Result<Option<records::Row>, Fault> {
        let (statement, values) = positional(statement, values);
        match self.connection.exec_drop(statement, values).await {
            Ok(()) if self.connection.affected_rows() > 0 => {}
            Ok(()) | Err(Error::Server(ServerError { code: DUPLICATE, .. })) => {
                // The session's value may be the reason. The next read will show that.
                self.ready.iter_mut().for_each(|ready| ready.in_session = None);
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        }
        let returned = match self.connection.last_insert_id() {
            // If the change fired a trigger, the answer lacks the number, but the session still has it.
            None => self.connection.query_first("SELECT LAST_INSERT_ID()").await?,
            returned => returned,
        };
        let returned =
            bigint(returned.ok_or_else(|| StoreError::Unreachable("a reply without a number".into()))?)?;
        let ready = self.ready.as_ref();
        Ok(Some(records::Row {
            now_ms: if is_sum { ready.map_or(0, |ready| ready.seen_ms) } else { returned },
            incarnation: ready.map(|ready| ready.seen.clone()),
            name: None,
            version: None,
            number: Some(returned),
            text: None,
        }))
    }

    async fn make(&mut self) -> Result<(), Fault> {
        Ok(self.connection.query_drop(DDL.trim_end_matches([';', '\n'])).await?)
    }

    fn saw(&mut self, now_ms: i64, incarnation: &str) {
        if let Some(ready) = &mut self.ready {
            ready.saw(now_ms, incarnation);
        }
    }
}

fn row(row: &Row) -> Result<records::Row, Fault> {
    let columns = row.len();
    Ok(records::Row {
        now_ms: column(row, 0)?,
        incarnation: column(row, 1)?,
        name: if columns > 2 { column(row, 2)? } else { None },
        version: if columns > 3 { column(row, 3)? } else { None },
        number: if columns > 4 { column(row, 4)? } else { None },
        text: if columns > 5 { column(row, 5)? } else { None },
    })
}

#[async_trait(?Send)]
impl Store for MysqlStore {
    async fn read(&mut self, group: &Group, names: Option<&[&str]>) -> Result<Answer<Named>, StoreError> {
        self.ask(async |open| records::read(open, group, names).await).await
    }

    async fn write(&mut self, write: &Write) -> Result<Answer<Outcome>, StoreError> {
        self.ask(async |open| records::write(open, write).await).await
    }

    async fn read_each(
        &mut self,
        groups: &[Group],
        name: &str,
    ) -> Result<Vec<Answer<Option<Record>>>, StoreError> {
        self.ask(async |open| records::read_each(open, groups, name).await).await
    }

    async fn add(&mut self, add: &Add) -> Result<Answer<Added>, StoreError> {
        self.ask(async |open| records::add(open, add).await).await
    }

    async fn groups(&mut self, namespace: &str, kind: Kind) -> Result<Vec<String>, StoreError> {
        self.ask(async |open| records::groups(open, namespace, kind).await).await
    }

    fn facts(&self) -> Facts {
        self.facts
    }

    /// A restart matters only if the store can forget acknowledged writes.
    fn has_kept_all(&self, before: &str, now: &str) -> bool {
        before == now || is_restarted(before, now).is_some_and(|is| !(is && self.facts.can_forget))
    }

    fn disconnect(&mut self) {
        if self.open.take().is_some_and(|open| open.is_busy) {
            self.opening.gave_up_busy();
        }
    }

    fn rows(&mut self) -> Result<&mut dyn Rows, StoreError> {
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(more: &[(&str, &str)]) -> Settings {
        let mut settings = Settings::from([("innodb_flush_log_at_trx_commit".to_owned(), "1".to_owned())]);
        settings.extend(more.iter().map(|&(name, value)| (name.into(), value.into())));
        settings
    }

    fn can_forget(more: &[(&str, &str)]) -> bool {
        judge(&settings(more), 0, false).unwrap().facts.can_forget
    }

    const OWN: &str = "3E11FA47-71CA-11E1-9E33-C80AA9429562";
    const OTHER: &str = "a3c1a3b4-71CA-11E1-9E33-C80AA9429562:1-7";

    #[test]
    fn a_cluster_is_one_server() {
        let on = ("wsrep_on", "ON");
        let provider = ("wsrep_provider", "/usr/lib/galera/libgalera_smm.so");
        for (settings, expected) in [
            (vec![], MARIADB),
            (vec![on], MARIADB),
            (vec![on, ("wsrep_provider", "none")], MARIADB),
            (vec![("wsrep_on", "OFF"), provider], MARIADB),
            (vec![on, provider], CLUSTER_OF_MARIADB),
            (vec![on, provider, ("server_uuid", OWN)], CLUSTER_OF_MYSQL),
            (vec![("server_uuid", OWN)], MYSQL),
        ] {
            let ready = judge(&self::settings(&settings), 0, false).unwrap();
            assert_eq!(ready.incarnation, expected, "{settings:?}");
            assert_eq!(ready.is_cluster, ready.facts.can_forget);
        }
    }

    #[test]
    fn what_can_forget() {
        let log = [("log_bin", "ON"), ("sync_binlog", "1")];
        let with = |more: &[(&'static str, &'static str)]| can_forget(&[&log, more].concat());
        assert!(!can_forget(&[]) && !with(&[]));
        assert!(can_forget(&[("log_bin", "ON"), ("sync_binlog", "0")]));
        assert!(with(&[("slaves_connected", "1")]) && with(&[("gtid_slave_pos", "0-2-17")]));
        let of_mysql = |executed| with(&[("server_uuid", OWN), ("gtid_executed", executed)]);
        let own = format!("{OWN}:1-5:7-9");
        assert!(!of_mysql("") && !of_mysql(own.leak()) && of_mysql(OTHER));
        assert!(of_mysql(format!("{OWN}:1-5,\n{OTHER}").leak()));
        let judged = judge(&settings(&log), 1, false).unwrap().facts;
        assert_eq!((judged.can_forget, judged.asynchronous_replicas), (true, 1));
        let judged = judge(&settings(&[log[0], log[1], ("rpl_semi_sync_source_clients", "1")]), 1, false);
        let judged = judged.unwrap().facts;
        assert_eq!((judged.can_forget, judged.asynchronous_replicas), (true, 0));
    }

    #[test]
    fn what_forgets_unseen_is_refused() {
        for (setting, says) in [
            (vec![("innodb_flush_log_at_trx_commit", "2")], "innodb_flush_log_at_trx_commit is 2"),
            (vec![("server_uuid", OWN), ("log_bin", "1"), ("sync_binlog", "0")], "sync_binlog is 0"),
        ] {
            let refused = judge(&settings(&setting), 0, false).unwrap_err();
            assert!(refused.text().contains(says) && refused.text().contains("set it to 1"), "{refused}");
            assert!(judge(&settings(&setting), 0, true).unwrap().facts.can_forget);
        }
        let statement = settings(&[("log_bin", "ON"), ("binlog_format", "STATEMENT")]);
        assert!(judge(&statement, 0, true).unwrap_err().text().contains("ROW or MIXED"));
    }

    #[test]
    fn a_log_of_statements_is_refused_for_the_tables_of_others() {
        for (log, format, is_durability_none, is_fit) in [
            ("ON", "STATEMENT", false, false),
            ("1", "STATEMENT", false, false),
            ("ON", "STATEMENT", true, true),
            ("OFF", "STATEMENT", false, true),
            ("ON", "MIXED", false, true),
            ("ON", "ROW", false, true),
        ] {
            let settings = settings(&[("log_bin", log), ("binlog_format", format)]);
            let judged = judge_for_rows(&settings, is_durability_none);
            assert_eq!(judged.is_ok(), is_fit, "{log} {format}");
            if !is_fit {
                assert_eq!(judged, judge(&settings, 0, false).map(drop));
            }
        }
    }

    #[test]
    fn a_start_is_told_from_a_flicker() {
        let at = |since: u32| format!("server h port 3306 id 1 since {since}");
        assert_eq!(is_restarted(&at(100), &at(100)), Some(false));
        assert_eq!(is_restarted(&at(100), &at(101)), Some(false));
        assert_eq!(is_restarted(&at(101), &at(100)), Some(false));
        assert_eq!(is_restarted(&at(100), &at(102)), Some(true));
        assert_eq!(is_restarted(&at(100), "server h port 3306 id 2 since 100"), None);
        assert_eq!(is_restarted("cluster a", "cluster a"), None);
    }
}
