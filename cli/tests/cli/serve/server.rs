//! A server on free ports, and clients for it.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// A running server, which stops at the end of the test.
pub(crate) struct Server {
    child: Child,
    pub(crate) http: Option<SocketAddr>,
    pub(crate) resp: Option<SocketAddr>,
    pub(crate) admin: Option<SocketAddr>,
    log: Option<JoinHandle<String>>,
}

impl Server {
    /// Starts a server with HTTP and RESP.
    pub(crate) fn new(arguments: &[&str]) -> Self {
        let both = ["--http", "127.0.0.1:0", "--resp", "127.0.0.1:0"];
        Self::start(command().args(both).args(arguments))
    }

    /// Starts a server with a store in this folder.
    pub(super) fn in_folder(folder: &Path, arguments: &[&str]) -> Self {
        // The store has never been used before, so no one has to wait.
        let lease = format!("sqlite://{}/leases.db?init=always", folder.display());
        Self::new(&[&["--lease", &*lease], arguments].concat())
    }

    pub(super) fn start(command: &mut Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let mut server = Self { child, http: None, resp: None, admin: None, log: None };
        let mut log = String::new();
        loop {
            let mut line = String::new();
            assert!(lines.read_line(&mut line).unwrap() > 0, "it does not begin: {log}");
            log.push_str(&line);
            let Ok(said) = serde_json::from_str::<serde_json::Value>(&line) else { continue };
            let address = || said["address"].as_str().unwrap().parse().ok();
            match (said["message"].as_str(), said["protocol"].as_str()) {
                (Some("listening"), Some("http")) => server.http = address(),
                (Some("listening"), Some("resp")) => server.resp = address(),
                (Some("listening"), Some("admin")) => server.admin = address(),
                (Some("ready"), _) => break,
                _ => {}
            }
        }
        server.log = Some(std::thread::spawn(move || {
            let _ = lines.read_to_string(&mut log);
            log
        }));
        server
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.http.unwrap())
    }

    /// Returns the status and the body.
    pub(crate) fn get(&self, path: &str) -> (u16, String) {
        let mut response = http().get(self.url(path)).call().unwrap();
        (response.status().as_u16(), response.body_mut().read_to_string().unwrap())
    }

    /// Returns the body of a successful answer.
    pub(super) fn ok(&self, path: &str) -> String {
        let (status, body) = self.get(path);
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    /// Returns the status and the body of a page for operators.
    pub(super) fn of_admin(&self, path: &str) -> (u16, String) {
        let mut response = http().get(format!("http://{}{path}", self.admin.unwrap())).call().unwrap();
        (response.status().as_u16(), response.body_mut().read_to_string().unwrap())
    }

    /// Returns IDs as numbers.
    pub(super) fn ids(&self, path: &str) -> Vec<u64> {
        self.ok(path).lines().map(|line| line.parse().unwrap()).collect()
    }

    /// Returns the server's answer to these bytes, once it closes the connection.
    pub(crate) fn raw(address: SocketAddr, bytes: &[u8]) -> Vec<u8> {
        let mut stream = TcpStream::connect(address).unwrap();
        // The server may close the connection before it has read everything.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        answer
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for the server to exit, and returns its status and log.
    pub(super) fn ended(mut self) -> (ExitStatus, String) {
        let status = self.child.wait().unwrap();
        (status, self.log.take().unwrap().join().unwrap())
    }

    pub(crate) fn terminate(self) -> (ExitStatus, String) {
        self.signal(Signal::INT);
        self.ended()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The command, unaffected by the tests' environment.
pub(super) fn command() -> Command {
    of(assert_cmd::cargo::cargo_bin!("polyflake"))
}

pub(super) fn of(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for name in ["POLYFLAKE_LAYOUT", "POLYFLAKE_LEASE", "POLYFLAKE_TOKEN", "STATE_DIRECTORY"] {
        command.env_remove(name);
    }
    command.args(["serve", "--log", "json", "--admin", "127.0.0.1:0"]);
    command
}

/// Waits until a condition is true.
pub(super) fn eventually(mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(120), "it does not become so");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A client that treats errors as answers.
pub(crate) fn http() -> ureq::Agent {
    ureq::Agent::config_builder().http_status_as_error(false).build().new_agent()
}

/// A Redis client.
pub(super) fn redis(server: &Server, rest: &str) -> redis::Connection {
    let client = redis::Client::open(format!("redis://{}/{rest}", server.resp.unwrap())).unwrap();
    client.get_connection().unwrap()
}
