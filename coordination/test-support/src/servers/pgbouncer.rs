//! PgBouncer in transaction mode.

use super::{Server, folder, free_port, write};

pub struct PgBouncer {
    server: Server,
    _folder: tempfile::TempDir,
}

impl PgBouncer {
    /// Starts PgBouncer in front of a server's database `test`, with two connections to it.
    pub fn new(of: u16) -> Self {
        Self::with(of, 2)
    }

    /// Starts PgBouncer in front of a server's database `test`, with the given number of connections to it.
    pub fn with(of: u16, connections: usize) -> Self {
        let folder = folder();
        let port = free_port();
        let text = format!(
            "[databases]\n\
             test = host=127.0.0.1 port={of} dbname=test user=polyflake password=secret-of-polyflake\n\
             [pgbouncer]\n\
             listen_addr = 127.0.0.1\n\
             listen_port = {port}\n\
             unix_socket_dir =\n\
             auth_type = plain\n\
             auth_file = users\n\
             pool_mode = transaction\n\
             default_pool_size = {connections}\n\
             max_client_conn = 100\n"
        );
        write(&folder.path().join("users"), "\"polyflake\" \"secret-of-polyflake\"\n");
        write(&folder.path().join("bouncer.ini"), &text);
        let ready = format!("psql -X {} -c 'SELECT 1'", url(port));
        let command = ["pgbouncer", "bouncer.ini"];
        Self { server: Server::start(folder.path(), port, &command, &["sh", "-c", &ready]), _folder: folder }
    }

    pub fn url(&self) -> String {
        url(self.server.port())
    }

    /// Returns the number of connected clients.
    pub fn clients(&self) -> usize {
        let (port, established) = (format!(":{:04X}", self.server.port()), "01");
        let connections = std::fs::read_to_string("/proc/net/tcp").unwrap();
        let is_client = |line: &&str| {
            let words: Vec<_> = line.split_whitespace().collect();
            words[1].ends_with(&port) && words[3] == established
        };
        connections.lines().filter(is_client).count()
    }
}

fn url(port: u16) -> String {
    format!("postgres://polyflake:secret-of-polyflake@127.0.0.1:{port}/test")
}
