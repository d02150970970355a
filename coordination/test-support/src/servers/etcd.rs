//! etcd, with a single member.

use super::{Server, folder, free_port, run, unprivileged};

pub struct Etcd {
    pub server: Server,
    folder: tempfile::TempDir,
}

impl Etcd {
    pub fn new() -> Self {
        Self::with("http", &[])
    }

    pub fn with(scheme: &str, options: &[&str]) -> Self {
        let folder = folder();
        let (port, peers) = (free_port(), free_port());
        let client = format!("{scheme}://127.0.0.1:{port}");
        let peer = format!("http://127.0.0.1:{peers}");
        let data = folder.path().join("data").display().to_string();
        let cluster = format!("t={peer}");
        let token = format!("polyflake-{port}");
        #[rustfmt::skip]
        let mut command = vec![
            "etcd", "--name", "t", "--data-dir", &data, "--listen-client-urls", &client, "--advertise-client-urls", &client,
            "--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer, "--initial-cluster", &cluster,
            "--initial-cluster-token", &token,
            // At the default of 10, checking a password takes 60 ms of processor time. On a busy machine, a login would
            // take longer than a short TTL allows.
            "--bcrypt-cost", "4",
        ];
        command.extend(options);
        // The server is healthy once it has a leader, and reports that to any client.
        let url = format!("{client}/health");
        let mut ready = vec!["curl", "-sSfk", &url];
        for pair in options.chunks(2) {
            match pair {
                ["--cert-file", file] => ready.extend(["--cert", file]),
                ["--key-file", file] => ready.extend(["--key", file]),
                _ => {}
            }
        }
        let server = Server::start(folder.path(), port, &command, &ready);
        Self { server, folder }
    }

    pub const fn port(&self) -> u16 {
        self.server.port()
    }

    pub fn url(&self) -> String {
        format!("etcd://127.0.0.1:{}", self.port())
    }

    pub fn ctl(&self, arguments: &[&str]) -> String {
        let mut ctl = unprivileged("etcdctl", self.folder.path());
        ctl.env("ETCDCTL_API", "3").args(["--endpoints", &format!("127.0.0.1:{}", self.port())]);
        ctl.args(arguments);
        run(ctl)
    }
}
