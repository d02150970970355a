//! Real servers. Each uses a free port on the loopback interface and its own folder, and is stopped when dropped.

pub mod certificates;
pub mod etcd;
pub mod mariadb;
pub mod pgbouncer;
pub mod postgres;
pub mod redis;
pub mod zookeeper;

use std::fs::{self, File};
use std::net::TcpListener;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{panicking, sleep};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock, statvfs};
use rustix::process::{Pid, Signal, geteuid, kill_process};
use tempfile::TempDir;

use crate::backend::Shared;

/// The user ID of `nobody`. Databases refuse to run as root, so if the tests run as root, databases run as this user.
pub const NOBODY: u32 = 65534;

/// A server's process, which can be stopped and restarted on the same port and folder.
pub struct Server {
    folder: PathBuf,
    port: u16,
    command: Vec<String>,
    ready: Vec<String>,
    end: Signal,
    child: Option<Child>,
}

impl Server {
    /// Starts `command` and waits until the command `ready` succeeds.
    pub fn start(folder: &Path, port: u16, command: &[&str], ready: &[&str]) -> Self {
        let owned = |words: &[&str]| words.iter().map(ToString::to_string).collect();
        let mut server = Self {
            folder: folder.into(),
            port,
            command: owned(command),
            ready: owned(ready),
            end: Signal::TERM,
            child: None,
        };
        server.start_again();
        server
    }

    /// Sets the signal that makes the server exit immediately (default: TERM).
    pub fn ends_on(mut self, signal: Signal) -> Self {
        self.end = signal;
        self
    }

    pub const fn port(&self) -> u16 {
        self.port
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn start_again(&mut self) {
        assert!(self.child.is_none(), "it runs");
        let log = self.folder.join("log");
        let output = File::options().create(true).append(true).open(&log).unwrap();
        let mut command = unprivileged(&self.command[0], &self.folder);
        command.args(&self.command[1..]).stdout(output.try_clone().unwrap()).stderr(output);
        let mut start = || command.spawn().unwrap();
        let child = self.child.insert(start());
        let deadline = Instant::now() + Duration::from_secs(120);
        loop {
            let mut ready = unprivileged(&self.ready[0], &self.folder);
            ready.args(&self.ready[1..]).stdout(Stdio::null()).stderr(Stdio::null());
            if ready.status().unwrap().success() {
                return;
            }
            let ended = child.try_wait().unwrap();
            if Instant::now() > deadline {
                let log = fs::read_to_string(&log).unwrap_or_default();
                panic!("{:?} does not start ({ended:?}):\n{log}", self.command);
            }
            sleep(Duration::from_millis(50));
            if ended.is_some() {
                // PostgreSQL does not start while a process left over from a killed server still holds its shared
                // memory.
                *child = start();
            }
        }
    }

    /// Stops the server as an administrator would.
    pub fn stop(&mut self) {
        self.signal(self.end);
        self.child.take().unwrap().wait().unwrap();
    }

    /// Stops the server as a crash would.
    pub fn kill(&mut self) {
        if self.child.is_none() {
            return;
        }
        // PostgreSQL's connection processes would otherwise keep answering for a moment.
        self.signal(Signal::STOP);
        self.signal_children(Signal::KILL);
        let mut child = self.child.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    pub fn signal(&self, signal: Signal) {
        let child = self.child.as_ref().expect("it does not run");
        kill_process(Pid::from_child(child), signal).unwrap();
    }

    /// Stops the server from answering, but leaves its connections open.
    pub fn pause(&self) {
        // Stop the parent first, so that it starts no more children.
        self.signal(Signal::STOP);
        self.signal_children(Signal::STOP);
        // The threads of a process may keep running for a while.
        let deadline = Instant::now() + Duration::from_secs(60);
        let mut all = self.children();
        all.push(self.pid());
        while !all.iter().all(|&pid| is_stopped(pid)) {
            assert!(Instant::now() < deadline, "it does not stop");
            sleep(Duration::from_millis(1));
        }
    }

    pub fn resume(&self) {
        self.signal_children(Signal::CONT);
        self.signal(Signal::CONT);
    }

    fn signal_children(&self, signal: Signal) {
        for child in self.children() {
            // The child may already have exited.
            let _ = kill_process(Pid::from_raw(child).unwrap(), signal);
        }
    }

    fn pid(&self) -> i32 {
        self.child.as_ref().expect("it does not run").id().try_into().unwrap()
    }

    /// Returns the server's child processes. PostgreSQL has one for each connection.
    fn children(&self) -> Vec<i32> {
        let pid = self.pid();
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        children.split_whitespace().map(|child| child.parse().unwrap()).collect()
    }
}

/// Returns true if no thread of the process is running.
fn is_stopped(pid: i32) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return true };
    threads.flatten().all(|thread| {
        let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        // The state follows the name, which may contain spaces.
        stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with(['T', 'Z', 'X']))
    })
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.child.is_some() {
            // Let the server run again, so that it can stop its own child processes.
            self.resume();
        }
        if panicking() {
            let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
            println!("{:?} on port {} last logged:", self.command[0], self.port);
            log.lines().skip(log.lines().count().saturating_sub(100)).for_each(|line| println!("{line}"));
        }
        let Some(mut child) = self.child.take() else { return };
        let pid = Pid::from_child(&child);
        let _ = kill_process(pid, self.end);
        let deadline = Instant::now() + Duration::from_secs(10);
        while child.try_wait().is_ok_and(|ended| ended.is_none()) && Instant::now() < deadline {
            sleep(Duration::from_millis(10));
        }
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// Creates a folder that the servers can write to, in memory if plenty is free. On a busy disk, a commit may take
/// longer than a short TTL allows.
pub fn folder() -> TempDir {
    const PLENTY: u64 = 8 << 30;
    let memory = Path::new("/dev/shm");
    let free = statvfs(memory).map_or(0, |found| found.f_bavail * found.f_frsize);
    let above = if free >= PLENTY { memory.into() } else { std::env::temp_dir() };
    let folder = tempfile::Builder::new().prefix("polyflake-").tempdir_in(above).unwrap();
    give(folder.path());
    folder
}

/// Returns a folder with a copy of the template's `data`, and the template, which its last user deletes by dropping it.
/// Creating a database takes several times longer than copying one.
fn copy_of(template: &Shared<TempDir>, make: impl FnOnce(&Path)) -> (TempDir, Arc<TempDir>) {
    let template = template.get_or(|| {
        let new = folder();
        make(new.path());
        new
    });
    let copy = folder();
    let mut cp = Command::new("cp");
    cp.args(["-a", "--sparse=always"]).arg(template.path().join("data")).arg(copy.path());
    run(cp);
    (copy, template)
}

/// Makes the servers' user the owner of a path.
pub fn give(path: &Path) {
    if geteuid().is_root() {
        chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
}

/// Writes a file for a server.
pub fn write(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    give(path);
}

/// Creates a command that runs in a folder, as an unprivileged user.
pub fn unprivileged(program: &str, folder: &Path) -> Command {
    let mut command = Command::new(program);
    // MariaDB clears its folder for temporary files when it starts.
    command.current_dir(folder).stdin(Stdio::null()).env("HOME", folder).env("TMPDIR", folder);
    if geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

/// Runs a command, waits for it to finish, and returns its output.
pub fn run(mut command: Command) -> String {
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    String::from_utf8(output.stdout).unwrap().trim().into()
}

/// Returns an unused port, outside the range that the system uses for outgoing connections. No other test process gets
/// the same port, so a server that restarts still finds it free.
pub fn free_port() -> u16 {
    const FIRST: u16 = 20_000;
    const BLOCK: u16 = 64;
    const BLOCKS: u16 = 150;
    // The next port, the number of ports left in its block, and the locks on this process's blocks.
    static PRESENT: Mutex<(u16, u16, Vec<File>)> = Mutex::new((0, 0, Vec::new()));

    let folder = std::env::temp_dir().join(format!("polyflake-ports-{}", geteuid().as_raw()));
    fs::create_dir_all(&folder).unwrap();
    let mut present = PRESENT.lock().unwrap();
    let (next, left, locks) = &mut *present;
    loop {
        if *left == 0 {
            let lock = (0..BLOCKS).find_map(|block| {
                let lock = File::create(folder.join(block.to_string())).ok()?;
                flock(&lock, FlockOperation::NonBlockingLockExclusive).ok()?;
                Some((FIRST + block * BLOCK, lock))
            });
            let (first, lock) = lock.expect("all ports of the tests are taken");
            (*next, *left) = (first, BLOCK);
            locks.push(lock);
        }
        let port = *next;
        (*next, *left) = (port + 1, *left - 1);
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}
