//! A relay to a server, which holds or loses what comes back, and keeps what was sent.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

/// What is kept of an answer that stalls.
const END: usize = 20;

#[derive(Default)]
struct State {
    /// What is sent is passed on, and its answer is lost with the connection, once it has this in it.
    mark: Option<Vec<u8>>,
    is_held: bool,
    /// Answers of more bytes come without their end, and nothing comes after them.
    longest: Option<usize>,
    /// How many connections there are.
    open: usize,
    /// What each connection began with.
    begun: Vec<Vec<u8>>,
}

/// It passes connections on to a port of this host. Its threads end with their connections.
#[derive(Clone)]
pub(crate) struct Relay {
    port: u16,
    state: Arc<(Mutex<State>, Condvar)>,
}

impl Relay {
    pub(crate) fn new(to: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let relay = Self { port, state: Arc::default() };
        let theirs = relay.clone();
        thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                let Ok(far) = TcpStream::connect(("127.0.0.1", to)) else { continue };
                let lost = Arc::new(Mutex::new(false));
                let (near_too, far_too) = (near.try_clone().unwrap(), far.try_clone().unwrap());
                let (relay, its_lost) = (theirs.clone(), Arc::clone(&lost));
                thread::spawn(move || relay.there(near, far, &its_lost));
                let relay = theirs.clone();
                thread::spawn(move || relay.back(far_too, near_too, &lost));
            }
        });
        relay
    }

    pub(crate) const fn port(&self) -> u16 {
        self.port
    }

    /// The answer to the next that is sent with this in it is lost.
    pub(crate) fn lose_the_answer_to(&self, mark: &str) {
        self.state.0.lock().unwrap().mark = Some(mark.into());
    }

    /// Whether one was lost, or none was to be.
    pub(crate) fn has_lost(&self) -> bool {
        self.state.0.lock().unwrap().mark.is_none()
    }

    /// Holds what comes back, or lets it go.
    pub(crate) fn hold(&self, is_held: bool) {
        self.state.0.lock().unwrap().is_held = is_held;
        self.state.1.notify_all();
    }

    /// Longer answers come without their end from now on, as where large packets are lost.
    pub(crate) fn stall(&self, longest: Option<usize>) {
        self.state.0.lock().unwrap().longest = longest;
    }

    /// How many connections clients have open.
    pub(crate) fn open(&self) -> usize {
        self.state.0.lock().unwrap().open
    }

    /// The first bytes of each connection.
    pub(crate) fn begun(&self) -> Vec<Vec<u8>> {
        self.state.0.lock().unwrap().begun.clone()
    }

    fn there(&self, mut near: TcpStream, mut far: TcpStream, lost: &Mutex<bool>) {
        let (mut bytes, mut is_first) = ([0; 16_384], true);
        self.state.0.lock().unwrap().open += 1;
        while let Ok(count @ 1..) = near.read(&mut bytes) {
            let sent = &bytes[..count];
            {
                let mut state = self.state.0.lock().unwrap();
                if is_first {
                    state.begun.push(sent.into());
                }
                is_first = false;
                if state.mark.as_ref().is_some_and(|mark| sent.windows(mark.len()).any(|it| it == mark)) {
                    state.mark = None;
                    *lost.lock().unwrap() = true;
                }
            }
            if far.write_all(sent).is_err() {
                break;
            }
        }
        self.state.0.lock().unwrap().open -= 1;
        let _ = far.shutdown(Shutdown::Both);
    }

    fn back(&self, mut far: TcpStream, mut near: TcpStream, lost: &Mutex<bool>) {
        let (mut bytes, mut is_stalled) = ([0; 16_384], false);
        while let Ok(count @ 1..) = far.read(&mut bytes) {
            if *lost.lock().unwrap() {
                break;
            }
            let state = self.state.0.lock().unwrap();
            let longest = self.state.1.wait_while(state, |state| state.is_held).unwrap().longest;
            if is_stalled {
                continue;
            }
            is_stalled = longest.is_some_and(|longest| count > longest);
            let passed = if is_stalled { count - END } else { count };
            if near.write_all(&bytes[..passed]).is_err() {
                break;
            }
        }
        let _ = near.shutdown(Shutdown::Both);
        let _ = far.shutdown(Shutdown::Both);
    }
}
