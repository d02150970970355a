//! A process that holds a lease and records its actions.

use std::io::BufRead;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use polyflake::{Options, SequenceStart, Snowflake};
use polyflake_coordination::open;

use crate::journals::Journal;

/// The environment variable that sets the maximum time a call waits. If it is absent, the default applies.
pub(crate) const MAX_WAIT_MS: &str = "POLYFLAKE_TEST_MAX_WAIT_MS";

/// Ticks begin with sequence number 0, so that two holders of the same node would be likely to issue equal IDs.
pub(crate) fn options(address: &str) -> Options {
    Snowflake::builder().lease(address).sequence_start(SequenceStart::Zero)
}

static IS_TERMINATED: AtomicBool = AtomicBool::new(false);

extern "C" fn terminate(_: i32) {
    IS_TERMINATED.store(true, Ordering::Relaxed);
}

/// Opens a lease, and obeys the commands on its standard input:
/// - `issue N`: issues N IDs, waiting for them.
/// - `stream`: issues IDs from now on, without waiting.
/// - `state`: reports the state of the lease.
/// - `close`: closes the Snowflake.
/// - `exit`: exits without closing.
///
/// When that input ends, the process exits. On SIGTERM, it closes the Snowflake and exits, as a pod does.
#[test]
#[ignore = "the other tests start it"]
fn a_holder() {
    let Some((journal, address)) = Journal::of_this_process() else { return };
    let action = SigAction::new(SigHandler::Handler(terminate), SaFlags::SA_RESTART, SigSet::empty());
    // SAFETY: the handler only writes to an atomic.
    #[allow(unsafe_code)]
    unsafe {
        sigaction(Signal::SIGTERM, &action).unwrap();
    }
    let mut options = options(&address);
    if let Ok(ms) = std::env::var(MAX_WAIT_MS) {
        options = options.max_wait_ms(ms.parse::<u64>().unwrap());
    }
    let ids = match open(&options) {
        Ok(ids) => ids,
        Err(error) => return journal.error("refused", &error),
    };
    let lease = ids.lease().unwrap().unwrap();
    journal.write(&format!("open {} {}", lease.node, lease.bound_ms));
    let (sender, commands) = channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            let _ = sender.send(line);
        }
    });
    let (mut is_streaming, mut last_error) = (false, String::new());
    loop {
        // Streams are dense, so that two holders of a node would soon issue equal IDs.
        let pause = Duration::from_millis(if is_streaming { 3 } else { 30 });
        let command = commands.recv_timeout(pause);
        if IS_TERMINATED.load(Ordering::Relaxed) {
            ids.close();
            journal.write("closed");
            return;
        }
        match command {
            Ok(command) => match command.split_once(' ').unwrap_or((&command, "")) {
                ("issue", count) => match ids.next_ids(count.parse::<u64>().unwrap()) {
                    Ok(issued) => journal.ids(&issued),
                    Err(error) => journal.error("error", &error),
                },
                ("stream", _) => is_streaming = true,
                ("state", _) => {
                    let (lease, losses) = (ids.lease().unwrap().unwrap(), ids.stats().unwrap().lease_losses);
                    let (state, bound) = (lease.state.name(), lease.bound_ms);
                    journal.write(&format!("state {} {state} {losses} {bound}", lease.node));
                }
                ("close", _) => {
                    ids.close();
                    journal.write("closed");
                    is_streaming = false;
                }
                ("exit", _) => return,
                _ => panic!("{command}"),
            },
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        if is_streaming {
            let mut issued = Vec::new();
            for _ in 0..3 {
                match ids.try_next_id() {
                    Ok(id) => {
                        issued.push(id);
                        last_error.clear();
                    }
                    Err(error) => {
                        journal.ids(&std::mem::take(&mut issued));
                        let code = error.code().name();
                        if last_error != code {
                            code.clone_into(&mut last_error);
                            journal.error("error", &error);
                        }
                    }
                }
            }
            journal.ids(&issued);
        }
    }
}
