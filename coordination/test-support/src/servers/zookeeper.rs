//! ZooKeeper: a single server or an ensemble.

use std::fs::{self, File};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::{Server, folder, free_port, give, run, unprivileged, write};

const CLASSES: &str = "/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar";

/// Options for starting quickly and with little memory.
const JAVA: [&str; 6] = [
    "-Xmx128m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-cp",
    CLASSES,
];

pub struct Zookeeper {
    pub server: Server,
    folder: tempfile::TempDir,
}

impl Zookeeper {
    pub fn new() -> Self {
        Self::with(&[])
    }

    /// Starts a server with these additional lines in its configuration.
    pub fn with(lines: &[&str]) -> Self {
        let port = free_port();
        // The server reports its mode once it answers requests. If asked too early, it may say nothing and keep the
        // connection open.
        let ready = format!("exec 3<>/dev/tcp/127.0.0.1/{port}; echo srvr >&3; grep -q ^Mode <&3");
        Self::start(port, 1, lines, &ready)
    }

    /// Starts three servers. The first connects to the others through the ports that `path` returns, and does not lead,
    /// since the others have higher IDs.
    pub fn ensemble(path: impl Fn(u16) -> u16) -> Vec<Self> {
        let ports: Vec<_> = (1..=3).map(|id| (id, free_port(), free_port(), free_port())).collect();
        let start = |(id, port, _, _): &(u8, u16, u16, u16)| {
            let mut lines = vec!["initLimit=10".to_owned(), "syncLimit=5".to_owned()];
            for (other, _, peers, votes) in &ports {
                let peers = if *id == 1 && *other != 1 { path(*peers) } else { *peers };
                lines.push(format!("server.{other}=127.0.0.1:{peers}:{votes}"));
            }
            let lines: Vec<_> = lines.iter().map(String::as_str).collect();
            Self::start(*port, *id, &lines, &format!("exec 3<>/dev/tcp/127.0.0.1/{port}"))
        };
        let all: Vec<_> = ports.iter().map(start).collect();
        Self::wait_for_a_leader(&all.iter().collect::<Vec<_>>());
        all
    }

    /// Waits until all of these servers answer requests.
    pub fn wait_for_a_leader(all: &[&Self]) {
        let deadline = Instant::now() + Duration::from_secs(120);
        while all.iter().any(|it| it.mode().is_none()) {
            assert!(Instant::now() < deadline, "no leader");
            sleep(Duration::from_millis(50));
        }
    }

    fn start(port: u16, id: u8, lines: &[&str], ready: &str) -> Self {
        let folder = folder();
        let data = folder.path().join("data");
        fs::create_dir(&data).unwrap();
        give(&data);
        write(&data.join("myid"), &id.to_string());
        let configuration = folder.path().join("zoo.cfg");
        // There is no need to force data to disk: data in the kernel survives when the process is killed.
        write(
            &configuration,
            &format!(
                "tickTime=1000\ndataDir={}\nclientPort={port}\nclientPortAddress=127.0.0.1\n\
                 admin.enableServer=false\nmaxClientCnxns=0\nforceSync=no\nmaxSessionTimeout=60000\n{}\n",
                data.display(),
                lines.join("\n")
            ),
        );
        let configuration = configuration.display().to_string();
        let mut command = vec!["java"];
        command.extend(JAVA);
        command.extend(["org.apache.zookeeper.server.quorum.QuorumPeerMain", &configuration]);
        let server = Server::start(folder.path(), port, &command, &["timeout", "1", "bash", "-c", ready]);
        Self { server, folder }
    }

    pub const fn port(&self) -> u16 {
        self.server.port()
    }

    pub fn url(&self) -> String {
        format!("zookeeper://127.0.0.1:{}", self.port())
    }

    /// Runs `zkCli.sh` commands, and returns what they print to standard output.
    pub fn cli(&self, commands: &[&str]) -> String {
        let input = self.folder.path().join("commands");
        write(&input, &(commands.join("\n") + "\n"));
        let mut cli = unprivileged("java", self.folder.path());
        cli.args(JAVA).args(["org.apache.zookeeper.ZooKeeperMain", "-waitforconnection", "-server"]);
        cli.arg(format!("127.0.0.1:{}", self.port())).stdin(File::open(input).unwrap());
        let output = run(cli);
        // Another thread prints the connection's events, perhaps in the middle of the output.
        let is_output =
            |line: &&str| !line.is_empty() && *line != "WATCHER::" && !line.starts_with("WatchedEvent ");
        let lines = output.lines().skip_while(|it| *it != "JLine support is disabled").skip(1);
        lines.filter(is_output).collect::<Vec<_>>().join("\n")
    }

    /// Returns the number of sessions on the server. Its configuration must allow `mntr`.
    #[allow(dead_code, reason = "one of the tests that have this module uses it")]
    pub fn sessions(&self) -> usize {
        let script = format!(
            "exec 3<>/dev/tcp/127.0.0.1/{}; echo mntr >&3; grep ^zk_global_sessions <&3",
            self.port()
        );
        let mut command = unprivileged("timeout", self.folder.path());
        let output = run({
            command.args(["10", "bash", "-c", &script]);
            command
        });
        output.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    /// Returns true if the server leads an ensemble.
    pub fn is_leader(&self) -> bool {
        self.mode().is_some_and(|it| it.contains("leader"))
    }

    /// Returns the server's mode, such as `Mode: leader`, once it answers requests.
    fn mode(&self) -> Option<String> {
        let script = format!("exec 3<>/dev/tcp/127.0.0.1/{}; echo srvr >&3; grep ^Mode <&3", self.port());
        let mut command = unprivileged("timeout", self.folder.path());
        let output = command.args(["1", "bash", "-c", &script]).output().unwrap();
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
    }
}
