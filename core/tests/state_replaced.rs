//! A state file is deleted and the clock is set back while a call is waiting for the disk. Another process
//! starts with a new file.
#![cfg(all(unix, target_has_atomic = "64", not(loom), not(miri)))]

use std::fs;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use polyflake::{ClockError, Error, Options, Polled, Snowflake, Wait, Waiting};

struct Shared {
    now_ms: AtomicI64,
    stage: AtomicU64,
    id: AtomicU64,
}

impl Shared {
    fn reach(&self, stage: u64) {
        let start = Instant::now();
        while self.stage.load(Ordering::SeqCst) < stage {
            assert!(start.elapsed() < Duration::from_secs(20));
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// The wait of a thread whose disk is slow. During the wait, the file is deleted.
struct Slow<F>(Option<F>);

impl<F: FnOnce()> Wait for Slow<F> {
    type Error = Error;

    fn elapsed(&mut self) -> Duration {
        Duration::ZERO
    }

    fn pause(&mut self, _: Duration) -> Result<(), Error> {
        Ok(())
    }

    fn block_on(&mut self, work: &mut (dyn FnMut() + Send)) {
        work();
        if let Some(meanwhile) = self.0.take() {
            meanwhile();
        }
    }
}

type HandClock = Box<dyn Fn() -> Result<i64, ClockError>>;

const NOW: i64 = 1_800_000_000_000;

/// This process issues an ID after `call` has run its argument, and another process issues one with a new
/// file. The two IDs must differ.
fn both_issue(node: u64, call: impl FnOnce(&Snowflake<HandClock>, &dyn Fn()) -> Result<u64, Error>) {
    let folder = std::env::temp_dir().join(format!("polyflake-gone-{node}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join("state");
    // SAFETY: a page of zeros that both processes share.
    let shared: &'static Shared = unsafe {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        &*libc::mmap(std::ptr::null_mut(), 4096, protection, libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1, 0)
            .cast()
    };
    shared.now_ms.store(NOW, Ordering::SeqCst);
    let options: Options = Snowflake::builder()
        .layout("timestamp:35|worker:10|sequence:8@0/1s")
        .node(node)
        .sequence_start(polyflake::SequenceStart::Zero)
        .max_backward_ms(60_000)
        .state(&path);
    let build = || {
        let clock: HandClock = Box::new(|| Ok(shared.now_ms.load(Ordering::SeqCst)));
        options.build_with_clock(clock).unwrap()
    };
    // SAFETY: no other thread of this test has left anything half-done that the child needs.
    let child = unsafe { libc::fork() };
    if child == 0 {
        shared.reach(1);
        let ids = build();
        shared.stage.store(2, Ordering::SeqCst);
        shared.reach(3);
        let id = ids.next_id();
        shared.id.store(id.unwrap_or(1), Ordering::SeqCst);
        // SAFETY: this does not return.
        unsafe { libc::_exit(0) };
    }
    let ids = build();
    shared.now_ms.store(NOW + 10_000, Ordering::SeqCst);
    ids.next_id().unwrap();
    shared.now_ms.store(NOW + 60_000, Ordering::SeqCst);
    let id = call(&ids, &|| {
        fs::remove_file(&path).unwrap();
        shared.now_ms.store(NOW + 20_000, Ordering::SeqCst);
        shared.stage.store(1, Ordering::SeqCst);
        shared.reach(2);
    });
    // The clock returns to where it was.
    shared.now_ms.store(NOW + 60_000, Ordering::SeqCst);
    shared.stage.store(3, Ordering::SeqCst);
    let mut status = 0;
    // SAFETY: the child belongs to this process.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(status, 0);
    fs::remove_dir_all(folder).unwrap();
    let theirs = shared.id.load(Ordering::SeqCst);
    assert!(theirs > 1, "the other process got an error");
    assert_ne!(id, Ok(theirs), "two processes issued one ID");
}

#[test]
fn a_polled_call_repeats_nothing_of_a_new_file() {
    both_issue(1, |ids, meanwhile| {
        let (mut waiting, mut id) = (Waiting::default(), [0]);
        let Polled::Disk(reservation) = ids.poll_waiting(&mut waiting, &mut id, None)? else { panic!() };
        reservation.run()?;
        meanwhile();
        loop {
            match ids.poll_waiting(&mut waiting, &mut id, Some(Duration::from_millis(10)))? {
                Polled::Filled(_) => return Ok(id[0]),
                Polled::Disk(reservation) => reservation.run()?,
                Polled::Pause(_) => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    });
}

#[test]
fn a_thread_that_waited_for_the_disk_repeats_nothing_of_a_new_file() {
    both_issue(2, |ids, meanwhile| ids.next_id_with(&mut Slow(Some(meanwhile))));
}
