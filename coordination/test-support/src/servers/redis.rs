//! Redis: a single server, a replica, a Cluster, or a Sentinel.

use std::time::{Duration, Instant};

use super::{Server, folder, free_port, run, unprivileged, write};

pub struct Redis {
    pub server: Server,
    folder: tempfile::TempDir,
}

impl Redis {
    /// Starts a server that keeps every write it acknowledges.
    pub fn new() -> Self {
        Self::with(&["--appendonly", "yes"])
    }

    pub fn with(options: &[&str]) -> Self {
        let folder = folder();
        let port = free_port();
        let number = port.to_string();
        let mut command =
            vec!["redis-server", "--port", &*number, "--bind", "127.0.0.1", "--save", "", "--dir"];
        let path = folder.path().display().to_string();
        command.push(&path);
        // Without this, an acknowledged write may be lost when the server is killed.
        command.extend(["--appendfsync", "always"]);
        command.extend(["--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1"]);
        command.extend(options);
        let ready = ["redis-cli", "-p", &*number, "--no-auth-warning", "PING"];
        let server = Server::start(folder.path(), port, &command, &ready);
        Self { server, folder }
    }

    /// Starts a replica, and waits until it has all of the master's data and the master lists it as online.
    pub fn replica_of(master: &Self) -> Self {
        let port = master.port().to_string();
        let replica = Self::with(&["--appendonly", "yes", "--replicaof", "127.0.0.1", &port]);
        replica.wait_for("master_link_status:up");
        master.wait_for("state=online");
        replica
    }

    /// Starts a Cluster of `count` servers, each with its share of the slots.
    pub fn cluster(count: u16) -> Vec<Self> {
        // The ports for the cluster bus. By default, a bus port is 10000 above the server's port, and the system may
        // have given that port to a connection.
        let buses: Vec<_> = (0..count).map(|_| free_port().to_string()).collect();
        let one = |bus: &String| {
            let cluster =
                ["--cluster-enabled", "yes", "--cluster-port", bus, "--cluster-node-timeout", "2000"];
            Self::with(&[&["--appendonly", "yes"], &cluster[..]].concat())
        };
        let all: Vec<_> = buses.iter().map(one).collect();
        let part = 16_384 / count;
        for (at, redis) in (0..).zip(&all) {
            let (first, last) = (at * part, if at + 1 == count { 16_383 } else { (at + 1) * part - 1 });
            redis.cli(&["CLUSTER", "ADDSLOTSRANGE", &first.to_string(), &last.to_string()]);
            redis.cli(&["CLUSTER", "MEET", "127.0.0.1", &all[0].port().to_string(), &buses[0]]);
        }
        let deadline = Instant::now() + Duration::from_secs(60);
        let known = format!("cluster_known_nodes:{count}");
        let is_up = |redis: &Self| {
            let info = redis.cli(&["CLUSTER", "INFO"]);
            info.contains("cluster_state:ok") && info.contains(&known)
        };
        while !all.iter().all(is_up) {
            assert!(Instant::now() < deadline, "the cluster does not start");
            std::thread::sleep(Duration::from_millis(50));
        }
        // A short timeout lets the cluster start sooner, but then a server that stands still counts as failed.
        for redis in &all {
            redis.cli(&["CONFIG", "SET", "cluster-node-timeout", "600000"]);
        }
        all
    }

    pub const fn port(&self) -> u16 {
        self.server.port()
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.port())
    }

    pub fn cli(&self, arguments: &[&str]) -> String {
        let mut cli = unprivileged("redis-cli", self.folder.path());
        cli.args(["-e", "-p", &self.port().to_string(), "--no-auth-warning"]).args(arguments);
        run(cli)
    }

    /// Waits until the output of `INFO replication` contains `text`.
    pub fn wait_for(&self, text: &str) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while !self.cli(&["INFO", "replication"]).contains(text) {
            assert!(Instant::now() < deadline, "{}", self.cli(&["INFO", "replication"]));
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// A Sentinel that watches a master under the name `mymaster`.
pub struct Sentinel {
    pub server: Server,
    _folder: tempfile::TempDir,
}

impl Sentinel {
    pub fn new(master: u16) -> Self {
        let folder = folder();
        let port = free_port();
        let path = folder.path().join("sentinel.conf");
        let text = format!(
            "port {port}\nbind 127.0.0.1\nsentinel monitor mymaster 127.0.0.1 {master} 1\n\
             sentinel down-after-milliseconds mymaster 1000\nsentinel failover-timeout mymaster 5000\n"
        );
        write(&path, &text);
        let command = ["redis-server", &path.display().to_string(), "--sentinel"];
        let ready = ["redis-cli", "-p", &port.to_string(), "PING"];
        let server = Server::start(folder.path(), port, &command, &ready);
        Self { server, _folder: folder }
    }
}
