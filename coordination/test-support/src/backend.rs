//! The operations that tests perform on a store.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use rusqlite::Connection;

use crate::servers::etcd::Etcd;
use crate::servers::mariadb::MariaDb;
use crate::servers::postgres::Postgres;
use crate::servers::redis::Redis;
use crate::servers::zookeeper::Zookeeper;
use crate::servers::{Server, folder};

pub trait Backend: Send + Sync + 'static {
    /// Starts a separate store.
    fn begin() -> Self;

    /// Returns the store's address, without parameters.
    fn url(&self) -> String;

    /// Returns the server's port, or 0 if the store has no server.
    fn port(&self) -> u16;

    /// Stops the store from answering, but leaves all connections open.
    fn pause(&mut self);

    fn resume(&mut self);

    /// Stops the store as a crash would. Returns false if there is nothing that can crash.
    fn kill(&mut self) -> bool;

    fn start_again(&mut self);

    /// Returns an address for a test's leases, which vouches that there were none before.
    fn address(&self, parameters: &str) -> String {
        format!("{}?init=always&{parameters}", self.url())
    }
}

/// A store, or anything else that takes long to make, shared by all tests that run at the same time. It is dropped when
/// the last of them finishes.
pub struct Shared<T>(Mutex<Weak<T>>);

impl<T> Shared<T> {
    pub const fn new() -> Self {
        Self(Mutex::new(Weak::new()))
    }

    pub fn get_or(&self, make: impl FnOnce() -> T) -> Arc<T> {
        let mut place = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        place.upgrade().unwrap_or_else(|| {
            let new = Arc::new(make());
            *place = Arc::downgrade(&new);
            new
        })
    }
}

impl<B: Backend> Shared<B> {
    pub fn get(&self) -> Arc<B> {
        self.get_or(B::begin)
    }
}

/// A store in a file.
pub struct Sqlite {
    folder: tempfile::TempDir,
    /// A connection on which another program starts a write but never finishes it.
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

/// Implements [`Backend`] for a server.
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
