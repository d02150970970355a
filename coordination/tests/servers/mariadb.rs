//! MariaDB.

use super::{Server, certificates, folder, free_port, run, unprivileged};

pub(crate) struct MariaDb {
    pub(crate) server: Server,
    _folder: tempfile::TempDir,
}

impl MariaDb {
    /// A server with the database `test`, in which `polyflake` may do anything, and
    /// with the certificates of `certificates`.
    pub(crate) fn new() -> Self {
        Self::with(&[])
    }

    pub(crate) fn with(options: &[&str]) -> Self {
        let folder = folder();
        let (path, port) = (folder.path(), free_port());
        let given = |option: &str, name: &str| format!("--{option}={}", path.join(name).display());
        let (data, socket) = (given("datadir", "data"), given("socket", "socket"));
        let mut install = unprivileged("mariadb-install-db", path);
        install.args(["--no-defaults", &data, "--auth-root-authentication-method=normal", "--skip-test-db"]);
        run(install);
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
        let maria = Self { server, _folder: folder };
        maria.sql("CREATE DATABASE test; CREATE USER polyflake@'%' IDENTIFIED BY 'secret-of-polyflake'");
        maria.sql("GRANT ALL ON test.* TO polyflake@'%'");
        maria
    }

    pub(crate) fn url(&self) -> String {
        format!("mysql://polyflake:secret-of-polyflake@127.0.0.1:{}/test", self.server.port())
    }

    /// As root, through the socket in the folder.
    pub(crate) fn sql(&self, statement: &str) -> String {
        let mut mariadb = unprivileged("mariadb", self.server.folder());
        let socket = format!("--socket={}", self.server.folder().join("socket").display());
        run({
            mariadb.args(["--no-defaults", &socket, "--user=root", "-N", "-B", "-e", statement]);
            mariadb
        })
    }
}
