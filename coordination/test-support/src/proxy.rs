//! A TCP proxy that behaves like an unreliable network.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

/// How the proxy treats the data it receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conduct {
    /// Everything is passed on.
    Good,
    /// Connections are cut, and data is delayed or lost, at random. This happens less often while a client connects:
    /// connecting to some databases takes ten round trips, and a busy machine would otherwise need minutes.
    Bad,
    /// Nothing gets through, and neither side is told.
    Silent,
    /// Requests get through, but answers do not.
    Mute,
    /// Everything is held back, and gets through once the conduct changes.
    Frozen,
    /// Everything is delayed by 300 ms, in each direction.
    Late,
    /// Like `Late`, but only while a client connects.
    SlowToConnect,
}

/// How many pieces of data, in each direction, a client may need to connect.
const CONNECTS: u32 = 8;

/// Forwards connections to a port on this host. Its threads exit when their connections close.
pub struct Proxy {
    port: u16,
    inner: Arc<Inner>,
}

struct Inner {
    conduct: Mutex<(Conduct, u16)>,
    /// The number of connections accepted so far. Those numbered below `silent_below` are silent.
    accepted: AtomicU64,
    silent_below: AtomicU64,
    /// The number of times data was cut off, delayed or lost.
    harms: AtomicU64,
    random: Mutex<u64>,
    open: Mutex<Vec<TcpStream>>,
}

impl Proxy {
    pub fn new(to: u16, seed: u64) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let inner = Arc::new(Inner {
            conduct: Mutex::new((Conduct::Good, to)),
            accepted: AtomicU64::new(0),
            silent_below: AtomicU64::new(0),
            harms: AtomicU64::new(0),
            random: Mutex::new(seed),
            open: Mutex::default(),
        });
        let weak = Arc::downgrade(&inner);
        spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Some(inner) = weak.upgrade() else { return };
                inner.serve(client);
            }
        });
        Self { port, inner }
    }

    pub const fn port(&self) -> u16 {
        self.port
    }

    pub fn behave(&self, conduct: Conduct) {
        self.inner.conduct.lock().unwrap().0 = conduct;
    }

    /// From now on, forwards connections to another port, and cuts the existing ones.
    pub fn lead_to(&self, port: u16) {
        self.inner.conduct.lock().unwrap().1 = port;
        self.cut();
    }

    /// Cuts all connections.
    pub fn cut(&self) {
        for stream in self.inner.open.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Lets nothing more through the current connections, without telling either side, as when a firewall has forgotten
    /// them.
    pub fn forget(&self) {
        self.inner.silent_below.store(self.inner.accepted.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Returns the number of connections accepted so far.
    pub fn connections(&self) -> u64 {
        self.inner.accepted.load(Ordering::Relaxed)
    }

    /// Waits up to a minute for a connection after the first `n`. Returns false if no client connects. A connection
    /// counts even if the client gives up before the proxy accepts it.
    pub fn wait_for_connection(&self, n: u64) -> bool {
        let deadline = Instant::now() + Duration::from_secs(60);
        while self.connections() <= n && Instant::now() < deadline {
            sleep(Duration::from_millis(10));
        }
        self.connections() > n
    }

    #[allow(dead_code)]
    pub fn harms(&self) -> u64 {
        self.inner.harms.load(Ordering::Relaxed)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.cut();
        // This connection wakes the thread, which then exits.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

impl Inner {
    fn serve(self: &Arc<Self>, client: TcpStream) {
        let number = self.accepted.fetch_add(1, Ordering::Relaxed);
        let (_, to) = *self.conduct.lock().unwrap();
        // If the server is down, the client's connection is closed.
        let Ok(server) = TcpStream::connect(("127.0.0.1", to)) else { return };
        for stream in [&client, &server] {
            stream.set_nodelay(true).unwrap();
            self.open.lock().unwrap().push(stream.try_clone().unwrap());
        }
        let ways = [(client.try_clone(), server.try_clone(), false), (Ok(server), Ok(client), true)];
        for (from, to, is_answer) in ways {
            let (inner, from, to) = (Arc::clone(self), from.unwrap(), to.unwrap());
            spawn(move || {
                let _ = inner.pass(number, is_answer, &from, &to);
                let _ = from.shutdown(Shutdown::Both);
                let _ = to.shutdown(Shutdown::Both);
            });
        }
    }

    fn pass(
        &self,
        number: u64,
        is_answer: bool,
        mut from: &TcpStream,
        mut to: &TcpStream,
    ) -> std::io::Result<()> {
        let mut buffer = [0; 4096];
        for piece in 0.. {
            let length = from.read(&mut buffer)?;
            if length == 0 {
                return Ok(());
            }
            let conduct = || self.conduct.lock().unwrap().0;
            while conduct() == Conduct::Frozen {
                sleep(Duration::from_millis(10));
            }
            let conduct = conduct();
            if number < self.silent_below.load(Ordering::Relaxed) {
                continue;
            }
            let fate = match conduct {
                Conduct::Bad if piece < CONNECTS => self.below(400),
                Conduct::Bad => self.below(100),
                _ => 100,
            };
            if fate < 20 {
                self.harms.fetch_add(1, Ordering::Relaxed);
            }
            match fate {
                // Earlier data that is still in transit is lost as well.
                0..2 => return Ok(()),
                2..5 => continue,
                5..20 => sleep(Duration::from_millis(10 * self.below(20))),
                _ if conduct == Conduct::Silent || (conduct == Conduct::Mute && is_answer) => continue,
                _ if conduct == Conduct::Late || (conduct == Conduct::SlowToConnect && piece < CONNECTS) => {
                    sleep(Duration::from_millis(300));
                }
                _ => {}
            }
            to.write_all(&buffer[..length])?;
        }
        Ok(())
    }

    /// Returns a random number below `n`, generated by SplitMix64.
    fn below(&self, n: u64) -> u64 {
        let mut state = self.random.lock().unwrap();
        *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % n
    }
}
