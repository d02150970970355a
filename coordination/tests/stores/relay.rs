//! A relay to a server. It can hold back requests, hold back or lose answers, and records the first bytes that clients
//! send.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

/// The number of bytes withheld from the end of an answer that stalls.
const END: usize = 20;

#[derive(Default)]
struct State {
    /// A request that contains these bytes is passed on, but its answer is lost along with the connection.
    mark: Option<Vec<u8>>,
    /// Requests that contain these bytes are held back.
    held: Option<Vec<u8>>,
    is_holding: bool,
    is_held: bool,
    /// Answers with more bytes than this arrive truncated, and nothing arrives after them.
    longest: Option<usize>,
    /// The number of open connections.
    open: usize,
    /// The first bytes sent on each connection.
    begun: Vec<Vec<u8>>,
}

/// Forwards connections to a port on this host. Its threads exit when their connections close.
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

    /// Loses the answer to the next request that contains `mark`.
    pub(crate) fn lose_the_answer_to(&self, mark: &str) {
        self.state.0.lock().unwrap().mark = Some(mark.into());
    }

    /// Returns true if no answer is left to lose.
    pub(crate) fn has_lost(&self) -> bool {
        self.state.0.lock().unwrap().mark.is_none()
    }

    /// Holds back answers, or lets them through.
    pub(crate) fn hold(&self, is_held: bool) {
        self.state.0.lock().unwrap().is_held = is_held;
        self.state.1.notify_all();
    }

    /// Holds back requests that contain `mark`, or lets them through.
    pub(crate) fn hold_requests(&self, mark: Option<&str>) {
        self.state.0.lock().unwrap().held = mark.map(Into::into);
        self.state.1.notify_all();
    }

    /// Returns true if a request has been held back.
    pub(crate) fn is_holding(&self) -> bool {
        self.state.0.lock().unwrap().is_holding
    }

    /// From now on, longer answers arrive truncated, as when large packets are lost.
    pub(crate) fn stall(&self, longest: Option<usize>) {
        self.state.0.lock().unwrap().longest = longest;
    }

    /// Returns the number of connections that clients have open.
    pub(crate) fn open(&self) -> usize {
        self.state.0.lock().unwrap().open
    }

    /// Returns the first bytes sent on each connection.
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
                if contains(sent, state.mark.as_ref()) {
                    state.mark = None;
                    *lost.lock().unwrap() = true;
                }
                let is_held = |state: &mut State| contains(sent, state.held.as_ref());
                state.is_holding |= is_held(&mut state);
                drop(self.state.1.wait_while(state, is_held).unwrap());
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

fn contains(sent: &[u8], mark: Option<&Vec<u8>>) -> bool {
    mark.is_some_and(|mark| sent.windows(mark.len()).any(|it| it == mark))
}
