//! MariaDB.

use std::path::Path;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::{Server, certificates, copy_of, free_port, run, unprivileged};
use crate::backend::Shared;

pub struct MariaDb {
    pub server: Server,
    _folders: (TempDir, Arc<TempDir>),
}

impl MariaDb {
    /// Starts a server with a database `test`, in which `polyflake` may do anything, and with the certificates from
    /// `certificates`.
    pub fn new() -> Self {
        Self::with(&[])
    }

    pub fn with(options: &[&str]) -> Self {
        static TEMPLATE: Shared<TempDir> = Shared::new();
        let (folder, template) = copy_of(&TEMPLATE, make_data);
        let (path, port) = (folder.path(), free_port());
        let given = |option: &str, name: &str| format!("--{option}={}", path.join(name).display());
        let (data, socket) = (given("datadir", "data"), given("socket", "socket"));
        let (number, pid) = (format!("--port={port}"), given("pid-file", "pid"));
        certificates::make(path);
        let authority = given("ssl-ca", "authority.pem");
        let (certificate, key) = (given("ssl-cert", "server.pem"), given("ssl-key", "server.key"));
        #[rustfmt::skip]
        let mut command = vec![
            "mariadbd", "--no-defaults", &data, "--bind-address=127.0.0.1", &number, &socket, &pid,
            "--skip-name-resolve", "--log-bin", "--server-id=1", "--innodb-buffer-pool-size=32M", &authority, &certificate, &key,
        ];
        command.extend(options);
        let ready = ["mariadb-admin", "--no-defaults", &socket, "--user=root", "status"];
        let server = Server::start(path, port, &command, &ready);
        let maria = Self { server, _folders: (folder, template) };
        // A cluster node may already have received these from another node.
        maria.sql(
            "SET wsrep_on = OFF; CREATE DATABASE IF NOT EXISTS test; CREATE USER IF NOT EXISTS polyflake@'%' IDENTIFIED BY 'secret-of-polyflake'; \
             GRANT ALL ON test.* TO polyflake@'%'",
        );
        maria
    }

    /// Starts two nodes of a Galera cluster.
    // Each test program that includes this module uses only part of it.
    #[allow(dead_code)]
    pub fn cluster() -> [Self; 2] {
        let group = format!("127.0.0.1:{}", free_port());
        let node = |listens: &str, joins: &str| {
            Self::with(&[
                "--wsrep-on=ON",
                "--wsrep-provider=/usr/lib/galera/libgalera_smm.so",
                "--wsrep-sst-method=rsync",
                "--binlog-format=ROW",
                "--innodb-autoinc-lock-mode=2",
                &format!("--wsrep-cluster-address=gcomm://{joins}"),
                &format!("--wsrep-node-address={listens}"),
                &format!("--wsrep-sst-receive-address=127.0.0.1:{}", free_port()),
                &format!(
                    "--wsrep-provider-options=gmcast.listen_addr=tcp://{listens};ist.recv_addr=127.0.0.1:{}",
                    free_port()
                ),
            ])
        };
        let nodes = [node(&group, ""), node(&format!("127.0.0.1:{}", free_port()), &group)];
        let status = |node: &Self, names: &str| {
            let statement = format!(
                "SELECT GROUP_CONCAT(VARIABLE_VALUE ORDER BY VARIABLE_NAME SEPARATOR ':') \
                 FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME IN ({names})"
            );
            node.sql(&format!("SET wsrep_on = OFF; {statement}")).trim().to_owned()
        };
        let until = Instant::now() + Duration::from_secs(60);
        for node in &nodes {
            while status(node, "'wsrep_cluster_size', 'wsrep_ready'") != "2:ON" {
                assert!(Instant::now() < until, "the cluster has not formed");
                sleep(Duration::from_millis(50));
            }
        }
        nodes
    }

    pub fn url(&self) -> String {
        format!("mysql://polyflake:secret-of-polyflake@127.0.0.1:{}/test", self.server.port())
    }

    /// Runs a statement as root, through the socket in the folder.
    pub fn sql(&self, statement: &str) -> String {
        let mut mariadb = unprivileged("mariadb", self.server.folder());
        let socket = format!("--socket={}", self.server.folder().join("socket").display());
        run({
            mariadb.args(["--no-defaults", &socket, "--user=root", "-N", "-B", "-e", statement]);
            mariadb
        })
    }
}

fn make_data(folder: &Path) {
    let mut install = unprivileged("mariadb-install-db", folder);
    install.arg("--no-defaults").arg(format!("--datadir={}", folder.join("data").display()));
    install.args(["--auth-root-authentication-method=normal", "--skip-test-db"]);
    run(install);
}
