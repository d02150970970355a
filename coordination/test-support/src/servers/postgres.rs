//! PostgreSQL.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::process::Signal;
use tempfile::TempDir;

use super::{Server, certificates, copy_of, free_port, run, unprivileged, write};
use crate::backend::Shared;

pub struct Postgres {
    pub server: Server,
    _folders: Option<(TempDir, Arc<TempDir>)>,
}

impl Postgres {
    /// Starts a server that asks for passwords, with a database `test` owned by `polyflake`. Servers that run at the same
    /// time have the same system identifier.
    pub fn new() -> Self {
        Self::with(&[])
    }

    pub fn with(options: &[&str]) -> Self {
        static TEMPLATE: Shared<TempDir> = Shared::new();
        let (folder, template) = copy_of(&TEMPLATE, make_data);
        let server = serve(folder.path(), free_port(), options);
        Self { server, _folders: Some((folder, template)) }
    }

    /// Starts a standby of this server, in a subfolder of its folder.
    pub fn standby(&self) -> Self {
        let path = self.server.folder().join("standby");
        fs::create_dir(&path).unwrap();
        super::give(&path);
        let mut backup = unprivileged(&program("pg_basebackup"), &path);
        backup.args(["-h", "127.0.0.1", "-p", &self.server.port().to_string(), "-U", "postgres"]);
        run({
            backup.args(["-D", "data", "--write-recovery-conf", "--checkpoint=fast", "--no-sync"]);
            backup
        });
        Self { server: serve(&path, free_port(), &[]), _folders: None }
    }

    /// From now on, accepts only TLS connections, with the certificates from `certificates`. Clients authenticate with
    /// a certificate or with a password.
    pub fn only_tls(&self, of_client: bool) {
        let folder = self.server.folder();
        certificates::make(folder);
        let path = |name: &str| folder.join(name).display().to_string();
        for (setting, value) in [
            ("ssl_ca_file", &*path("authority.pem")),
            ("ssl_cert_file", &path("server.pem")),
            ("ssl_key_file", &path("server.key")),
            ("ssl", "on"),
        ] {
            self.sql("postgres", &format!("ALTER SYSTEM SET {setting} = '{value}'"));
        }
        let method = if of_client { "cert" } else { "scram-sha-256" };
        let rules = format!("local all all trust\nhostssl all all 127.0.0.1/32 {method}\n");
        write(&folder.join("data/pg_hba.conf"), &rules);
        self.sql("postgres", "SELECT pg_reload_conf()");
    }

    pub fn promote(&self) {
        self.sql("postgres", "SELECT pg_promote()");
    }

    pub fn url(&self) -> String {
        format!("postgres://polyflake:secret-of-polyflake@127.0.0.1:{}/test", self.server.port())
    }

    /// Runs a statement as the superuser, through the socket in the folder.
    pub fn sql(&self, database: &str, statement: &str) -> String {
        let mut psql = unprivileged(&program("psql"), self.server.folder());
        let port = self.server.port().to_string();
        psql.arg("-h").arg(self.server.folder()).args(["-p", &port, "-U", "postgres", "-d", database]);
        psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", statement]);
        run(psql)
    }
}

fn make_data(folder: &Path) {
    write(&folder.join("password"), "secret-of-postgres");
    let mut initdb = unprivileged(&program("initdb"), folder);
    let password = folder.join("password").display().to_string();
    initdb.args(["-D", "data", "-U", "postgres", "-E", "UTF8", "--no-locale", "--no-sync"]);
    initdb.args(["--auth-local=trust", "--auth-host=scram-sha-256", "--pwfile", &password]);
    run(initdb);
    let replication = "\nlocal replication all trust\nhost replication all 127.0.0.1/32 trust\n";
    let rules = folder.join("data/pg_hba.conf");
    let given = fs::read_to_string(&rules).unwrap();
    write(&rules, &format!("{replication}{given}"));
    let statements = folder.join("statements");
    write(
        &statements,
        "CREATE ROLE polyflake LOGIN PASSWORD 'secret-of-polyflake'\nCREATE DATABASE test OWNER polyflake\n",
    );
    let mut postgres = unprivileged(&program("postgres"), folder);
    postgres.args(["--single", "-D", "data", "postgres"]).stdin(File::open(statements).unwrap());
    run(postgres);
}

fn serve(path: &Path, port: u16, options: &[&str]) -> Server {
    let sockets = format!("unix_socket_directories={}", path.display());
    let (folder, number) = (path.display().to_string(), port.to_string());
    let (postgres, psql) = (program("postgres"), program("psql"));
    #[rustfmt::skip]
    let mut command = vec![
        &*postgres, "-D", "data", "-p", &number, "-c", "listen_addresses=127.0.0.1", "-c", &sockets, "-c",
        "max_connections=60", "-c", "log_connections=on", "-c", "log_min_duration_statement=200",
        // With POSIX shared memory, a killed server would leave files in /dev/shm.
        "-c", "dynamic_shared_memory_type=mmap",
    ];
    command.extend(options);
    #[rustfmt::skip]
    let ready = [&*psql, "-X", "-h", &folder, "-p", &number, "-U", "postgres", "-c", "SELECT 1", "postgres"];
    Server::start(path, port, &command, &ready).ends_on(Signal::INT)
}

/// Returns the path of one of PostgreSQL's programs. Debian keeps each version's programs in a separate folder, and has
/// only some of them in the `PATH`.
fn program(name: &str) -> String {
    let versions = fs::read_dir("/usr/lib/postgresql").expect("PostgreSQL is installed");
    let found = versions.map(|version| version.unwrap().path().join("bin").join(name));
    let newest: PathBuf = found.filter(|path| path.exists()).max().expect("PostgreSQL is installed");
    newest.display().to_string()
}
