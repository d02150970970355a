//! What the tests need of a store.

use std::sync::{Arc, Mutex, Weak};

use rusqlite::Connection;

use crate::servers::etcd::Etcd;
use crate::servers::mariadb::MariaDb;
use crate::servers::postgres::Postgres;
use crate::servers::redis::Redis;
use crate::servers::zookeeper::Zookeeper;
use crate::servers::{Server, folder};

pub trait Backend: Send + Sync + 'static {
    /// Its own store.
    fn begin() -> Self;

    /// Its address, without parameters.
    fn url(&self) -> String;

    /// The port of a server.
    fn port(&self) -> u16;

    /// Makes it answer nothing, with all connections open.
    fn pause(&mut self);

    fn resume(&mut self);

    /// Ends it as a crash would. `false`: there is nothing that can crash.
    fn kill(&mut self) -> bool;

    fn start_again(&mut self);

    /// The address of leases of a test, which vouches that there were none before.
    fn address(&self, parameters: &str) -> String {
        format!("{}?init=always&{parameters}", self.url())
    }
}

/// A store for all tests that run at a time. It ends with the last.
pub struct Shared<B>(Mutex<Weak<B>>);

impl<B: Backend> Shared<B> {
    pub const fn new() -> Self {
        Self(Mutex::new(Weak::new()))
    }

    pub fn get(&self) -> Arc<B> {
        let mut place = self.0.lock().unwrap();
        place.upgrade().unwrap_or_else(|| {
            let new = Arc::new(B::begin());
            *place = Arc::downgrade(&new);
            new
        })
    }
}

/// A file.
pub struct Sqlite {
    folder: tempfile::TempDir,
    /// Another program that writes, and does not end.
    writer: Mutex<Option<Connection>>,
}

impl Sqlite {
    pub fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("leases.db")
    }
}

impl Backend for Sqlite {
    fn begin() -> Self {
        Self { folder: folder(), writer: Mutex::default() }
    }

    fn url(&self) -> String {
        format!("sqlite://{}", self.path().display())
    }

    fn port(&self) -> u16 {
        0
    }

    fn pause(&mut self) {
        let connection = Connection::open(self.path()).unwrap();
        connection.busy_timeout(std::time::Duration::from_secs(30)).unwrap();
        connection.execute_batch("BEGIN IMMEDIATE").unwrap();
        *self.writer.get_mut().unwrap() = Some(connection);
    }

    fn resume(&mut self) {
        *self.writer.get_mut().unwrap() = None;
    }

    fn kill(&mut self) -> bool {
        false
    }

    fn start_again(&mut self) {}
}

/// A store that is a server.
macro_rules! server {
    ($backend:ty) => {
        impl Backend for $backend {
            fn begin() -> Self {
                Self::new()
            }

            fn url(&self) -> String {
                Self::url(self)
            }

            fn port(&self) -> u16 {
                self.server.port()
            }

            fn pause(&mut self) {
                Server::pause(&self.server);
            }

            fn resume(&mut self) {
                Server::resume(&self.server);
            }

            fn kill(&mut self) -> bool {
                self.server.kill();
                true
            }

            fn start_again(&mut self) {
                self.server.start_again();
            }
        }
    };
}

server!(Redis);
server!(Postgres);
server!(MariaDb);
server!(Etcd);
server!(Zookeeper);
