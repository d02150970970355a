//! SQLite, for processes on one host.

mod names;
pub(super) mod records;

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use async_trait::async_trait;
use rusqlite::ffi::SQLITE_IOERR_SHMSIZE;
use rusqlite::types::ToSqlOutput;
use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior};
use tokio::time::sleep;

use super::sql::counters::{self, Columns, Dialect, Value};
use super::sql::{ATTEMPT, other_format};
use crate::forks::{NoForks, Refused};
use crate::store::{CounterName, CounterRecord, Reserve, Reserved, Rows, Schema, StoreError};

/// How long the keeper's own thread waits for another connection's lock. Other stores have to wait during
/// this time.
const BUSY: Duration = Duration::from_millis(10);

/// The minimum pause before a retry, and the upper limit on the random time added to it.
const PAUSE: Duration = Duration::from_millis(2);
const JITTER_US: u32 = 10_000;

/// A file shared by the processes on one host. The store's time is the host's clock, and its incarnation is
/// the identity of the file.
#[derive(Debug)]
pub struct SqliteStore {
    path: PathBuf,
    attempt: Duration,
}

#[derive(Debug)]
struct Open {
    connection: Connection,
    file: Identity,
}

/// Identifies the file that a path refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    fn of(path: &Path) -> io::Result<Self> {
        let found = fs::metadata(path)?;
        Ok(Self { device: found.dev(), inode: found.ino() })
    }

    fn incarnation(self) -> String {
        format!("device {} inode {}", self.device, self.inode)
    }
}

/// The reason for ending a transaction early.
pub(super) enum Fault {
    Sqlite(rusqlite::Error),
    /// SQLite's log is not where other processes look for it.
    Elsewhere(&'static str),
    File(io::Error),
    Forks(Refused),
    Store(StoreError),
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::File(error)
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl SqliteStore {
    /// Creates the store. The first call creates and opens the file.
    #[must_use]
    pub const fn new(path: PathBuf) -> Self {
        Self { path, attempt: ATTEMPT }
    }

    /// Sets the time after which the caller drops an attempt.
    #[must_use]
    pub const fn within(mut self, attempt: Duration) -> Self {
        self.attempt = attempt;
        self
    }

    /// Runs a transaction. If another connection has locked the file, the call tries again until most of the
    /// attempt's time has passed. It waits for nothing else.
    async fn transact<T>(
        &mut self,
        behavior: TransactionBehavior,
        run: impl AsyncFn(&Transaction<'_>, &str) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        let deadline = Instant::now() + self.attempt / 4 * 3;
        loop {
            // Each transaction opens a new connection. This is cheap, and a child that is forked later inherits no
            // connection.
            let result = match NoForks::begin().await {
                Ok(_no_forks) => self.try_transact(behavior, &run).await,
                Err(refused) => Err(Fault::Forks(refused)),
            };
            match result {
                Err(fault) if is_busy(&fault) && Instant::now() < deadline => {
                    let random = getrandom::u32().unwrap_or(0) % JITTER_US;
                    sleep(PAUSE + Duration::from_micros(random.into())).await;
                }
                result => return result.map_err(|fault| explain(&self.path, fault)),
            }
        }
    }

    async fn try_transact<T>(
        &self,
        behavior: TransactionBehavior,
        run: &impl AsyncFn(&Transaction<'_>, &str) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let path = &self.path;
        let Open { mut connection, file } = Open::new(path)?;
        // Until the tables exist, the file is in a different journal mode, in which readers and writers block
        // each other.
        if matches!(behavior, TransactionBehavior::Immediate) {
            let mode: String =
                connection.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))?;
            if mode != "wal" {
                let text = format!("{}: the journal mode is {mode}, and cannot be WAL", path.display());
                return Err(StoreError::Refused(text).into());
            }
        }
        let transaction = connection.transaction_with_behavior(behavior)?;
        if Identity::of(path)? != file {
            return Err(StoreError::Unreachable(format!("{}: the file was replaced", path.display())).into());
        }
        let result = run(&transaction, &file.incarnation()).await?;
        transaction.commit()?;
        Ok(result)
    }
}

impl Open {
    fn new(path: &Path) -> Result<Self, Fault> {
        make(path)?;
        check_file_system(path)?;
        check_one_name(path)?;
        let file = Identity::of(path)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        // SQLite would still read the file. However, its shared memory would be given the file's mode, so
        // nobody could write to that memory even after the file's mode is restored.
        if connection.is_readonly("main")? {
            let text = format!(
                "{}: this process may not write to the file: see its owner and modes",
                path.display()
            );
            return Err(StoreError::Unreachable(text).into());
        }
        connection.busy_timeout(BUSY)?;
        connection.pragma_update(None, "synchronous", "full")?;
        Ok(Self { connection, file })
    }
}

/// Creates an empty file that only its owner can read. The file is given its name only once it is closed,
/// since closing a file drops all locks that the process has on it, including another connection's.
fn make(path: &Path) -> io::Result<()> {
    if fs::metadata(path).is_ok() {
        return Ok(());
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    check_file_system(folder)?;
    let random = rusqlite::Connection::open_in_memory()
        .and_then(|any| any.query_row("SELECT hex(randomblob(8))", [], |row| row.get::<_, String>(0)))
        .map_err(io::Error::other)?;
    let mut unnamed = path.as_os_str().to_owned();
    unnamed.push(format!(".{random}.new"));
    drop(OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unnamed)?);
    let linked = match fs::hard_link(&unnamed, path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        linked => linked,
    };
    // Until the other name is removed, the file cannot be used (see `check_one_name`).
    fs::remove_file(&unnamed)?;
    // After a power failure, a missing file would look like a new store.
    linked.and_then(|()| fs::File::open(folder)?.sync_all())
}

/// Checks that the file has only one name. SQLite derives its log's path from the path by which the file was
/// opened. Two processes that open it under different names do not see each other's writes.
fn check_one_name(path: &Path) -> Result<(), Fault> {
    let found = fs::metadata(path)?;
    if found.is_file() && found.nlink() > 1 {
        return Err(Fault::Elsewhere("the file has a second name, a hard link: remove it"));
    }
    if is_mounted_alone(path)? {
        return Err(Fault::Elsewhere("the file is mounted alone, as containers can do: mount its folder"));
    }
    Ok(())
}

#[cfg(target_os = "linux")]
fn is_mounted_alone(path: &Path) -> io::Result<bool> {
    use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
    let mount = |path: &Path| -> io::Result<_> {
        let found = statx(CWD, path, AtFlags::empty(), StatxFlags::MNT_ID)?;
        // Linux before 5.8 does not report the mount.
        Ok((found.stx_mask & StatxFlags::MNT_ID.bits() != 0).then_some(found.stx_mnt_id))
    };
    let path = fs::canonicalize(path)?;
    path.parent().map_or(Ok(false), |folder| Ok(mount(&path)? != mount(folder)?))
}

#[cfg(not(target_os = "linux"))]
fn is_mounted_alone(_: &Path) -> io::Result<bool> {
    Ok(false)
}

/// Checks the file system, as for state files. WAL needs all processes to see the same bytes in a mapped
/// file, which a network file system does not guarantee.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn check_file_system(path: &Path) -> io::Result<()> {
    /// The numbers come from <linux/magic.h>. For ZFS and bcachefs, they come from the source code of those
    /// file systems.
    const LOCAL: [u64; 13] = [
        0x0000_EF53, // ext2, ext3, ext4
        0x5846_5342, // XFS
        0x9123_683E, // Btrfs
        0x0102_1994, // tmpfs
        0x8584_58F6, // ramfs
        0x794C_7630, // overlayfs
        0x2FC1_2FC1, // ZFS
        0xF2F5_2010, // F2FS
        0xCA45_1A4E, // bcachefs
        0x3153_464A, // JFS
        0x5265_4973, // ReiserFS
        0x0000_3434, // NILFS
        0x2405_1905, // UBIFS
    ];
    // The type of `f_type` differs between C libraries, but the number has 32 bits everywhere.
    #[allow(clippy::cast_sign_loss, clippy::cast_possible_truncation, clippy::unnecessary_cast)]
    let kind = u64::from(rustix::fs::statfs(path)?.f_type as u32);
    if LOCAL.contains(&kind) {
        return Ok(());
    }
    let text = format!(
        "a file system of type {kind:#x} may be a network's, which SQLite cannot share: choose a local one"
    );
    Err(io::Error::new(io::ErrorKind::Unsupported, text))
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn check_file_system(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Returns true if another connection has locked the file, or is creating it.
fn is_busy(fault: &Fault) -> bool {
    match fault {
        Fault::Sqlite(error) => {
            matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
        }
        fault => matches!(fault, Fault::Elsewhere(_)),
    }
}

fn is_without_room(error: &rusqlite::Error) -> bool {
    error.sqlite_error().is_some_and(|error| error.extended_code == SQLITE_IOERR_SHMSIZE)
}

fn explain(path: &Path, fault: Fault) -> StoreError {
    let path = path.display();
    match fault {
        Fault::Store(error) => error,
        Fault::Elsewhere(why) => StoreError::Refused(format!("{path}: {why}")),
        Fault::Forks(Refused::ForNow) => {
            let text = format!("{path}: another thread of this process is using SQLite, or is forking");
            StoreError::Unreachable(text)
        }
        Fault::Forks(Refused::InThisProcess) => StoreError::Refused(format!(
            "{path}: this process was forked while another thread was using SQLite, which would no longer see other \
             processes' locks: open the first lease or counter before forking, or run a new program in the child"
        )),
        Fault::File(error) => {
            let text = format!("{path}: {error}");
            match error.kind() {
                io::ErrorKind::NotFound => {
                    StoreError::Refused(format!("{path}: {error}: its folder must exist"))
                }
                io::ErrorKind::StorageFull => StoreError::Unreachable(format!("{path}: the disk is full")),
                io::ErrorKind::Interrupted | io::ErrorKind::Other => StoreError::Unreachable(text),
                _ => StoreError::Refused(text),
            }
        }
        Fault::Sqlite(error) => match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                StoreError::Unreachable(format!("{path}: the database is locked"))
            }
            Some(ErrorCode::DiskFull) => StoreError::Unreachable(format!("{path}: the disk is full")),
            // This error does not say what is wrong with the shared-memory file.
            _ if is_without_room(&error) => {
                StoreError::Unreachable(format!("{path}: {error}: the disk is full, or takes no writes"))
            }
            Some(ErrorCode::SystemIoFailure | ErrorCode::OutOfMemory | ErrorCode::SchemaChanged) => {
                StoreError::Unreachable(format!("{path}: {error}"))
            }
            _ => {
                let text = error.to_string();
                if text.contains("no such column") || text.contains("has no column") {
                    return other_format(&format!("other columns ({text})"));
                }
                StoreError::Refused(format!("{path}: {text}"))
            }
        },
    }
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Returns the names of Polyflake's tables.
fn tables(transaction: &Transaction<'_>) -> rusqlite::Result<Vec<String>> {
    let mut statement = transaction
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name GLOB 'polyflake_*'")?;
    statement.query_map([], |row| row.get(0))?.collect()
}

impl counters::Client for &Transaction<'_> {
    type Fault = Fault;

    const DIALECT: Dialect =
        Dialect { writable: "true", returned: ["", ""], seconds: "CAST(strftime('%s', 'now') AS INTEGER)" };

    async fn rows(&mut self, statement: &str, values: &[Value<'_>]) -> Result<Vec<Columns>, Fault> {
        let mut statement = self.prepare(statement)?;
        let columns = statement.column_count();
        let mut rows = statement.query(parameters(values))?;
        let mut all = Vec::new();
        while let Some(row) = rows.next()? {
            all.push((0..columns).map(|at| row.get(at)).collect::<Result<_, _>>()?);
        }
        Ok(all)
    }

    async fn change(&mut self, statement: &str, values: &[Value<'_>]) -> Result<bool, Fault> {
        Ok(self.execute(statement, parameters(values))? > 0)
    }

    async fn number(
        &mut self,
        statement: &str,
        column: &str,
        values: &[Value<'_>],
    ) -> Result<Option<i64>, Fault> {
        let rows = self.rows(&format!("{statement} RETURNING {column}"), values).await?;
        Ok(rows.first().and_then(|row| row.first().copied().flatten()))
    }
}

fn parameters<'a>(values: &'a [Value<'a>]) -> impl rusqlite::Params + 'a {
    rusqlite::params_from_iter(values.iter().map(|value| match value {
        Value::Text(text) => ToSqlOutput::from(*text),
        Value::Number(number) => ToSqlOutput::from(*number),
    }))
}

#[async_trait(?Send)]
impl Rows for SqliteStore {
    async fn reserve(&mut self, counter: &CounterName, reserve: &Reserve) -> Result<Reserved, StoreError> {
        self.transact(TransactionBehavior::Immediate, async |mut transaction, _| {
            counters::reserve(&mut transaction, counter, reserve).await
        })
        .await
    }

    async fn counter(&mut self, counter: &CounterName) -> Result<Option<CounterRecord>, StoreError> {
        self.transact(TransactionBehavior::Deferred, async |mut transaction, _| {
            counters::counter(&mut transaction, counter).await
        })
        .await
    }

    async fn put_counter(
        &mut self,
        counter: &CounterName,
        expected: &CounterRecord,
        new: &CounterRecord,
    ) -> Result<bool, StoreError> {
        self.transact(TransactionBehavior::Immediate, async |mut transaction, _| {
            counters::put_counter(&mut transaction, counter, expected, new).await
        })
        .await
    }

    async fn counter_names(&mut self, namespace: &str, schema: Schema) -> Result<Vec<String>, StoreError> {
        let rows = self.texts(counters::names_of(schema)).await?;
        Ok(counters::in_namespace(schema, namespace, rows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// This setting is visible only on the connection itself.
    #[test]
    fn each_commit_is_on_the_disk() {
        let folder = tempfile::tempdir().unwrap();
        let Ok(Open { connection, .. }) = Open::new(&folder.path().join("leases.db")) else { panic!() };
        let full: i64 = connection.pragma_query_value(None, "synchronous", |row| row.get(0)).unwrap();
        assert_eq!(full, 2);
    }
}
