//! PgBouncer in transaction mode.

use super::{Server, folder, free_port, write};

pub struct PgBouncer {
    server: Server,
    _folder: tempfile::TempDir,
}

impl PgBouncer {
    /// In front of a server's database `test`, with two connections to it.
    pub fn new(of: u16) -> Self {
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
             default_pool_size = 2\n\
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
}

fn url(port: u16) -> String {
    format!("postgres://polyflake:secret-of-polyflake@127.0.0.1:{port}/test")
}
