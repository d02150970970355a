//! SQLite.

mod records;

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use std::{fs, thread};

use polyflake_coordination::records::{Outcome, Store};
use polyflake_coordination::stores::SqliteStore;
use polyflake_coordination::{Schema, StoreError};
use rusqlite::Connection;

use super::leaf_tinyid_cosid::{self, Database, Run, TABLES};
use super::records::{SPACE, head, look, record, space, write};
use super::servers::folder;
use super::support::block;

struct Fresh {
    folder: tempfile::TempDir,
}

impl Fresh {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("leases.db")
    }
}

fn open(path: &Path) -> Box<dyn Store> {
    Box::new(SqliteStore::new(path.into()))
}

/// Another program's client.
fn theirs(path: &Path) -> Run {
    let client = Connection::open(path).unwrap();
    client.busy_timeout(std::time::Duration::from_secs(60)).unwrap();
    client.pragma_update(None, "synchronous", "off").unwrap();
    Box::new(move |statement| {
        let mut statement = client.prepare(statement).unwrap();
        let columns = statement.column_count();
        if columns == 0 {
            return (Vec::new(), u64::try_from(statement.execute([]).unwrap()).unwrap());
        }
        let rows = statement.query_map([], |row| (0..columns).map(|at| row.get(at)).collect());
        (rows.unwrap().collect::<Result<_, _>>().unwrap(), 0)
    })
}

#[test]
fn counters_in_tables_of_others() {
    let fresh = Fresh::new();
    let path = fresh.path();
    look(SqliteStore::new(path.clone())).unwrap();
    let connect = || theirs(&path);
    let (now, seconds) = ("CURRENT_TIMESTAMP", "unixepoch()");
    let database = Database { connect: &connect, begin: "BEGIN IMMEDIATE", now, seconds };
    leaf_tinyid_cosid::all(&|| open(&path), &database, &TABLES);
}

#[test]
fn rows_that_cannot_be_used_are_refused() {
    let fresh = Fresh::new();
    let (path, orders) = (fresh.path(), leaf_tinyid_cosid::counter(Schema::Leaf, "orders"));
    look(SqliteStore::new(path.clone())).unwrap();
    block(async {
        let nowhere = &mut open(&fresh.folder.path().join("no/such/folder.db"));
        leaf_tinyid_cosid::refused(nowhere, &orders, "No such file").await;
        let mut store = open(&path);
        let other = Connection::open(&path).unwrap();
        other.execute_batch(TABLES[0]).unwrap();
        other
            .execute_batch("INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('orders', 1, 1)")
            .unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let text = format!("{}: the database is locked", path.display());
        let locked = leaf_tinyid_cosid::rows(&mut store).reserve(&orders, &leaf_tinyid_cosid::only(1)).await;
        assert_eq!(locked, Err(StoreError::Unreachable(text)));
        // Readers are not locked out.
        assert_eq!(leaf_tinyid_cosid::rows(&mut store).counter(&orders).await.unwrap().unwrap().last, 0);
        other.execute_batch("ROLLBACK").unwrap();
        assert_eq!(leaf_tinyid_cosid::take(&mut store, &orders, &leaf_tinyid_cosid::only(1)).await.first, 1);
    });
}

#[test]
fn the_file_is_private_and_reads_well() {
    let fresh = Fresh::new();
    let path = fresh.path();
    let new = record(11, 500, "{\"label\":\"host-1\"}");
    block(write(&mut SqliteStore::new(path.clone()), &head(None, &new)));
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    // Each call closes its connection, so no log file is left behind.
    let left: Vec<_> = fs::read_dir(fresh.folder.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
    let shown: (String, String, i64, String) = Connection::open(&path)
        .unwrap()
        .query_row("SELECT * FROM polyflake_records", [], |row| {
            Ok((row.get("group_name")?, row.get("name")?, row.get("number")?, row.get("text")?))
        })
        .unwrap();
    assert_eq!(shown, (SPACE.into(), "head".into(), 500, new.text));
}

#[test]
fn files_that_cannot_be_used_are_refused() {
    let fresh = Fresh::new();
    let text = fresh.folder.path().join("text.db");
    fs::write(&text, "This is no database, whatever its name says. ".repeat(50)).unwrap();
    for (path, says) in [
        (text, "not a database"),
        (fresh.folder.path().join("no/such/folder.db"), "No such file"),
        (fresh.folder.path().to_owned(), "unable to open database file"),
        (PathBuf::from("/proc/leases.db"), "a file system of type 0x9fa0"),
    ] {
        let answer = look(SqliteStore::new(path.clone()));
        let Err(StoreError::Refused(text)) = answer else { panic!("{answer:?}") };
        assert!(text.contains(says) && text.starts_with(&path.display().to_string()), "{text}");
    }
}

/// File modes do not bind root, but they do bind one of root's threads that accesses files as another user.
#[test]
fn a_file_that_was_read_only_for_a_while() {
    let folder = folder();
    let path = folder.path().join("leases.db");
    let give = |mode| fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    let ours = || {
        #[cfg(target_os = "linux")]
        if rustix::process::geteuid().is_root() {
            // SAFETY: this affects only the current thread, which exits.
            #[allow(unsafe_code)]
            let _ = unsafe { libc::setfsuid(super::servers::NOBODY) };
        }
        let mut store = SqliteStore::new(path.clone());
        block(async {
            let (first, second) = (record(11, 1, "{}"), record(12, 2, "{}"));
            write(&mut store, &head(None, &first)).await;
            give(0o400);
            for answer in [
                store.read(&space("default"), None).await.map(drop),
                store.write(&head(Some(11), &second)).await.map(drop),
            ] {
                let Err(StoreError::Unreachable(text)) = answer else { panic!("{answer:?}") };
                assert!(text.starts_with(&path.display().to_string()), "{text}");
                assert!(text.contains("may not write"), "{text}");
            }
            give(0o600);
            assert_eq!(store.write(&head(Some(11), &second)).await.unwrap().value, Outcome::Written);
        });
    };
    thread::scope(|scope| scope.spawn(ours).join().unwrap());
}

fn run(command: &str, arguments: &[&Path]) -> bool {
    Command::new(command).args(arguments).status().is_ok_and(|it| it.success())
}

/// If there is no room for SQLite's shared memory next to the file, SQLite reports an I/O error.
#[test]
fn a_full_disk_is_named() {
    let fresh = Fresh::new();
    let disk = fresh.folder.path();
    if !run(
        "mount",
        &["-t", "tmpfs", "-o", "size=128k", "tmpfs"]
            .map(Path::new)
            .into_iter()
            .chain([disk])
            .collect::<Vec<_>>(),
    ) {
        println!("skipped: mounting a disk needs root");
        return;
    }
    let mut store = SqliteStore::new(fresh.path());
    let full = || {
        let mut filler = fs::File::create(disk.join("filler")).unwrap();
        while filler.write(&[0; 4096]).is_ok_and(|count| count > 0) {}
    };
    let (first, second) = (record(11, 1, "{}"), record(12, 2, "{}"));
    let answers = block(async {
        write(&mut store, &head(None, &first)).await;
        full();
        [
            store.read(&space("default"), None).await.map(drop),
            store.write(&head(Some(11), &second)).await.map(drop),
        ]
    });
    assert!(run("umount", &[disk]));
    for answer in answers {
        let Err(StoreError::Unreachable(text)) = answer else { panic!("{answer:?}") };
        assert!(text.starts_with(&fresh.path().display().to_string()), "{text}");
        assert!(text.contains("the disk is full"), "{text}");
    }
}

/// With two names for one file, a counter once issued 232 of 1,200 numbers under both names.
#[test]
fn a_file_of_two_names_is_refused() {
    let fresh = Fresh::new();
    let other = fresh.folder.path().join("other");
    fs::create_dir(&other).unwrap();
    look(SqliteStore::new(fresh.path())).unwrap();
    let refused = |path: &Path, says: &str| {
        let answer = look(SqliteStore::new(path.into()).within(Duration::from_millis(200)));
        let Err(StoreError::Refused(text)) = answer else { panic!("{answer:?}") };
        assert!(text.contains(says) && text.starts_with(&path.display().to_string()), "{text}");
    };
    let linked = other.join("linked.db");
    fs::hard_link(fresh.path(), &linked).unwrap();
    for path in [&linked, &fresh.path()] {
        refused(path, "hard link");
    }
    fs::remove_file(&linked).unwrap();
    // SQLite follows such a link to its target.
    std::os::unix::fs::symlink(fresh.path(), &linked).unwrap();
    look(SqliteStore::new(linked)).unwrap();
    let mounted = other.join("mounted.db");
    fs::write(&mounted, "").unwrap();
    if !run("mount", &[Path::new("--bind"), &fresh.path(), &mounted]) {
        println!("skipped: mounting a file needs root");
        return;
    }
    let answer = look(SqliteStore::new(mounted.clone()).within(Duration::from_millis(200)));
    assert!(run("umount", &[&mounted]));
    let Err(StoreError::Refused(text)) = answer else { panic!("{answer:?}") };
    assert!(text.contains("mount its folder"), "{text}");
}

#[test]
fn many_open_a_new_file_at_once() {
    for _ in 0..20 {
        let fresh = Fresh::new();
        let path = fresh.path();
        let incarnations: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> =
                (0..8).map(|_| scope.spawn(|| look(SqliteStore::new(path.clone())).unwrap())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap().incarnation).collect()
        });
        assert!(incarnations.iter().all(|incarnation| *incarnation == incarnations[0]));
    }
}
