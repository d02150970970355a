//! Test processes that record everything they receive.
//!
//! Each of them is the test program itself, running one of its ignored tests and writing to its own file. Only complete
//! lines are read, since a killed process may have written part of a line.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::{Duration, Instant};

use polyflake::Error;
use polyflake_coordination::set_listener;
use rustix::process::{Pid, kill_process};

/// How long a test waits before it fails.
const PATIENCE: Duration = Duration::from_secs(120);

const JOURNAL: &str = "POLYFLAKE_TEST_JOURNAL";
const ADDRESS: &str = "POLYFLAKE_TEST_LEASE";

// In the process ------------------------------------------------------------------------------------------------------

/// The file in which a process records its actions.
#[derive(Clone)]
pub struct Journal(Arc<Mutex<File>>);

impl Journal {
    /// Returns this process's journal and the address it was given, or `None` if no test started this process.
    pub fn of_this_process() -> Option<(Self, String)> {
        let (path, address) = (std::env::var_os(JOURNAL)?, std::env::var(ADDRESS).ok()?);
        let file = OpenOptions::new().create(true).append(true).open(path).unwrap();
        let journal = Self(Arc::new(Mutex::new(file)));
        let (told, parent) = (journal.clone(), std::process::id());
        set_listener(Some(Box::new(move |event| {
            // In a forked child, the lock may be held forever by a thread that exists only in the parent.
            if std::process::id() != parent && told.0.try_lock().is_err() {
                return;
            }
            let node = event.node.and_then(|node| i64::try_from(node).ok()).unwrap_or(-1);
            told.write(&format!("event {} {node} {}", event.kind.name(), event.message));
        })));
        Some((journal, address))
    }

    /// Writes one line, in a single write.
    pub fn write(&self, line: &str) {
        self.0.lock().unwrap().write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    pub fn ids(&self, ids: &[u64]) {
        if !ids.is_empty() {
            let all: Vec<_> = ids.iter().map(ToString::to_string).collect();
            self.write(&format!("ids {}", all.join(" ")));
        }
    }

    pub fn numbers(&self, thread: u64, numbers: &[u64]) {
        if !numbers.is_empty() {
            let all: Vec<_> = numbers.iter().map(ToString::to_string).collect();
            self.write(&format!("numbers {thread} {}", all.join(" ")));
        }
    }

    pub fn error(&self, word: &str, error: &Error) {
        self.write(&format!("{word} {} {error} / {error:?}", error.code().name()));
    }
}

// In the test ---------------------------------------------------------------------------------------------------------

/// The journals of a test's processes.
pub struct Journals(tempfile::TempDir);

impl Journals {
    pub fn new() -> Self {
        Self(tempfile::Builder::new().prefix("polyflake-").tempdir().unwrap())
    }

    pub fn folder(&self) -> &Path {
        self.0.path()
    }

    /// Starts a process that opens a lease, by running the program's ignored test `holder::a_holder`.
    pub fn start(&self, address: &str) -> Holder {
        self.start_with(address, "holder::a_holder", &[])
    }

    /// Starts one of the ignored tests in its own process, with these environment variables.
    pub fn start_with(&self, address: &str, test: &str, environment: &[(&str, &str)]) -> Holder {
        let count = fs::read_dir(self.folder()).unwrap().count();
        let journal = self.folder().join(format!("{count:03}.journal"));
        File::create(&journal).unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([test, "--exact", "--ignored", "--nocapture", "--test-threads=1"]);
        command.env(JOURNAL, &journal).env(ADDRESS, address).envs(environment.iter().copied());
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        let mut child = command.spawn().unwrap();
        let stdin = child.stdin.take();
        Holder { child, stdin, journal, seen: Seen::default() }
    }

    /// Runs one of the ignored tests in its own process and waits for it to finish.
    pub fn run(&self, address: &str, test: &str) {
        let mut holder = self.start_with(address, test, &[]);
        let status = holder.wait();
        assert!(status.success(), "{test}: {status}\n{}", holder.text());
    }

    /// Returns all IDs that were issued, each with the number of times it was issued.
    pub fn issued(&self) -> HashMap<u64, u32> {
        let mut issued = HashMap::new();
        for file in fs::read_dir(self.folder()).unwrap().map(|entry| entry.unwrap().path()) {
            if file.extension().is_some_and(|extension| extension == "journal") {
                for id in lines(&file).iter().flat_map(|line| ids_of(line)) {
                    *issued.entry(id).or_default() += 1;
                }
            }
        }
        issued
    }

    pub fn repeated(&self) -> Vec<u64> {
        more_than_once(self.issued())
    }

    /// Checks that the processes issued at least `at_least` IDs, none of them twice.
    pub fn assert_unique(&self, at_least: usize) {
        let issued = self.issued();
        let (count, repeated) = (issued.len(), more_than_once(issued));
        assert!(repeated.is_empty(), "{} of {count} IDs are repeated: {:?}", repeated.len(), &repeated[..1]);
        assert!(count >= at_least, "only {count} IDs");
    }
}

fn more_than_once(issued: HashMap<u64, u32>) -> Vec<u64> {
    issued.into_iter().filter(|&(_, count)| count > 1).map(|(id, _)| id).collect()
}

/// Returns the complete lines of a journal.
fn lines(path: &Path) -> Vec<String> {
    let text = String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(Into::into).collect()
}

fn ids_of(line: &str) -> Vec<u64> {
    let ids = line.strip_prefix("ids ").map(|ids| ids.split(' ').map(|id| id.parse().unwrap()));
    ids.into_iter().flatten().collect()
}

pub fn node_of(id: u64) -> u64 {
    polyflake::Layout::default().decode(id).unwrap().node()
}

/// A position in a journal.
#[derive(Debug, Clone, Copy)]
pub struct Mark(usize);

impl Mark {
    pub const fn line(self) -> usize {
        self.0
    }
}

/// A process started by a test. It is killed when dropped.
pub struct Holder {
    child: Child,
    stdin: Option<ChildStdin>,
    journal: PathBuf,
    seen: Seen,
}

/// The complete lines read so far. A journal grows to megabytes and is polled every 20 ms, so each poll reads only what
/// was added.
#[derive(Default)]
struct Seen {
    lines: Vec<String>,
    bytes: u64,
}

impl Seen {
    fn read(&mut self, path: &Path) -> &[String] {
        let mut file = File::open(path).unwrap();
        file.seek(SeekFrom::Start(self.bytes)).unwrap();
        let mut more = Vec::new();
        file.read_to_end(&mut more).unwrap();
        let whole = more.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
        self.bytes += whole as u64;
        self.lines.extend(String::from_utf8_lossy(&more[..whole]).lines().map(Into::into));
        &self.lines
    }
}

impl Holder {
    pub fn text(&self) -> String {
        let lines = lines(&self.journal);
        let are_ids = |line: &str| line.starts_with("ids ") || line.starts_with("numbers ");
        let shown = lines.iter().map(|line| if are_ids(line) { "..." } else { line });
        let mut shown: Vec<_> = shown.collect();
        shown.dedup();
        shown.join("\n")
    }

    pub fn lines(&self) -> Vec<String> {
        lines(&self.journal)
    }

    pub fn mark(&self) -> Mark {
        Mark(fs::read(&self.journal).unwrap().split(|&byte| byte == b'\n').count() - 1)
    }

    pub const fn start() -> Mark {
        Mark(0)
    }

    /// Waits until `find` returns something for the lines after a mark.
    pub fn wait_until<T>(&mut self, from: Mark, what: &str, find: impl Fn(&[String]) -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let ended = self.child.try_wait().unwrap();
            if let Some(found) = find(&self.seen.read(&self.journal)[from.0..]) {
                return found;
            }
            assert!(ended.is_none(), "it ended ({ended:?}), without {what}:\n{}", self.text());
            assert!(Instant::now() < deadline, "no {what}:\n{}", self.text());
            sleep(Duration::from_millis(20));
        }
    }

    /// Waits for a line that starts with `beginning`. Returns the rest of that line, and a mark after it.
    pub fn wait_for(&mut self, from: Mark, beginning: &str) -> (String, Mark) {
        self.wait_until(from, &format!("`{beginning}`"), |lines| {
            let found =
                lines.iter().enumerate().find_map(|(at, line)| Some((at, line.strip_prefix(beginning)?)));
            found.map(|(at, rest)| (rest.trim().to_owned(), Mark(from.0 + at + 1)))
        })
    }

    /// Waits until the process's last report about its store is that the store is unreachable. On a busy machine, an
    /// attempt may already have failed before the outage, and the process reports that only once.
    pub fn wait_for_outage(&mut self) {
        self.wait_until(Self::start(), "`event store_unreachable` at the end", |lines| {
            let last = lines.iter().rev().find_map(|line| line.strip_prefix("event store_"))?;
            last.starts_with("unreachable").then_some(())
        });
    }

    /// Waits for at least `count` IDs, and returns them.
    pub fn wait_for_ids(&mut self, from: Mark, count: usize) -> Vec<u64> {
        self.wait_until(from, &format!("{count} IDs"), |lines| {
            let ids: Vec<_> = lines.iter().flat_map(|line| ids_of(line)).collect();
            (ids.len() >= count).then_some(ids)
        })
    }

    /// Waits for the process to open its lease. Returns the node and the bound, or the error.
    pub fn outcome(&mut self) -> Result<(u64, u64), String> {
        self.wait_until(Self::start(), "outcome", |lines| {
            lines.iter().find_map(|line| {
                if let Some(error) = line.strip_prefix("refused ") {
                    return Some(Err(error.to_owned()));
                }
                let (node, bound) = line.strip_prefix("open ")?.split_once(' ')?;
                Some(Ok((node.parse().unwrap(), bound.parse().unwrap())))
            })
        })
    }

    /// Returns the process's node.
    pub fn node(&mut self) -> u64 {
        let outcome = self.outcome();
        outcome.unwrap_or_else(|_| panic!("{}", self.text())).0
    }

    pub fn refused(&mut self) -> String {
        let outcome = self.outcome();
        outcome.expect_err("it got a node")
    }

    pub fn tell(&mut self, command: &str) {
        writeln!(self.stdin.as_mut().unwrap(), "{command}").unwrap();
    }

    /// Returns the state of the process's lease, and the number of times the lease was lost.
    pub fn state(&mut self) -> (String, u64) {
        let words = self.words();
        (words[1].clone(), words[2].parse().unwrap())
    }

    /// Waits until the process holds its lease, or holds it again once the store has answered. Returns the
    /// number of times the lease was lost.
    pub fn holds(&mut self) -> u64 {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let (state, losses) = self.state();
            if state == "held" {
                return losses;
            }
            assert!(Instant::now() < deadline, "its lease is {state}:\n{}", self.text());
            sleep(Duration::from_millis(50));
        }
    }

    pub fn bound(&mut self) -> u64 {
        self.words()[3].parse().unwrap()
    }

    fn words(&mut self) -> Vec<String> {
        let mark = self.mark();
        self.tell("state");
        let (line, _) = self.wait_for(mark, "state ");
        line.split(' ').map(Into::into).collect()
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    pub fn wait(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < deadline, "it does not end:\n{}", self.text());
            sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        self.kill();
    }
}
