//! The processor's time counter, if the processor promises that it counts at a constant rate.

use core::sync::atomic::{AtomicI64, AtomicU8, AtomicU64, Ordering};

use super::monotonic::monotonic_ns;

/// A time counter whose rate does not change with the processor's frequency or sleep states.
pub(super) trait Counter {
    /// Returns the current count. The processor may read it slightly early, before a load that comes earlier
    /// in the program.
    fn now(&self) -> u64;

    /// Returns a lower bound on the counts that pass in `ns`, or 0 if nothing is promised, in which case the
    /// counter may not even be readable.
    fn least_in(&self, ns: u64) -> u64;
}

/// This processor's counter.
#[derive(Debug, Clone, Copy)]
pub(super) struct Processor;

/// The rate of this processor's counter.
static RATE: Rate = Rate::new();

impl Counter for Processor {
    #[inline(always)]
    fn now(&self) -> u64 {
        processor::count()
    }

    fn least_in(&self, ns: u64) -> u64 {
        // If nothing is promised, there may be no counter to measure.
        let least = processor::least_in(ns);
        if least > 0 && RATE.is_as_told(processor::count, processor::least_in, monotonic_ns) {
            least
        } else {
            0
        }
    }
}

/// Called in a newly forked child.
pub(super) fn after_fork() {
    RATE.after_fork();
}

/// Determines whether the counter is as fast as the processor claims. The counter is compared once with the
/// system's monotonic clock, because an emulator may pass on a promise that its counter does not keep.
#[derive(Debug)]
struct Rate {
    state: AtomicU8,
    /// The number of times the counter seemed too slow. It also seems slow if the thread is preempted between
    /// two readings.
    tries: AtomicU8,
    /// The readings to compare the next ones with, once `state` is `STARTED`.
    start_ns: AtomicI64,
    start: AtomicU64,
}

const UNSEEN: u8 = 0;
const STARTING: u8 = 1;
const STARTED: u8 = 2;
const AS_TOLD: u8 = 3;
const SLOWER: u8 = 4;

impl Rate {
    /// The minimum duration of a measurement, which must be long compared with the duration of a reading.
    const MEASURED_NS: u64 = 1_000_000;
    const TRIES: u8 = 16;

    const fn new() -> Self {
        let [state, tries] = [const { AtomicU8::new(UNSEEN) }; 2];
        Self { state, tries, start_ns: AtomicI64::new(0), start: AtomicU64::new(0) }
    }

    /// Returns true once the counter has been seen to count at least as fast as `least_in` claims, and
    /// `false` before that.
    fn is_as_told(
        &self,
        count: impl Fn() -> u64,
        least_in: impl Fn(u64) -> u64,
        monotonic_ns: impl Fn() -> i64,
    ) -> bool {
        let is_next =
            |from, to| self.state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok();
        match self.state.load(Ordering::Acquire) {
            AS_TOLD => return true,
            STARTED => {
                // The counter is read between the two readings of the clock. The start count is loaded after
                // the start time, because another thread may start over. The measured count is therefore
                // never too large.
                let start_ns = self.start_ns.load(Ordering::Acquire);
                let start = self.start.load(Ordering::Acquire);
                let counted = count().checked_sub(start);
                let ns = monotonic_ns().abs_diff(start_ns);
                if ns < Self::MEASURED_NS {
                    return false;
                }
                if counted.is_some_and(|counted| counted >= least_in(ns)) {
                    return is_next(STARTED, AS_TOLD);
                }
                let tries = self.tries.fetch_add(1, Ordering::AcqRel);
                is_next(STARTED, if tries < Self::TRIES { UNSEEN } else { SLOWER });
            }
            UNSEEN if is_next(UNSEEN, STARTING) => {
                let start_ns = monotonic_ns();
                self.start.store(count(), Ordering::Release);
                self.start_ns.store(start_ns, Ordering::Release);
                self.state.store(STARTED, Ordering::Release);
            }
            _ => {}
        }
        false
    }

    /// The thread that was measuring does not exist in the child.
    fn after_fork(&self) {
        let _ = self.state.compare_exchange(STARTING, UNSEEN, Ordering::AcqRel, Ordering::Acquire);
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod processor {
    use core::arch::x86_64::{__cpuid, _rdtsc};
    use core::sync::atomic::{AtomicU8, Ordering};

    /// Bit 8 of EDX says that the time-stamp counter is invariant: AMD64 Architecture Programmer's Manual, volume 3,
    /// function `8000_0007h`; Intel 64 Software Developer's Manual, volume 3, "Invariant TSC".
    #[allow(unused_unsafe)]
    fn promises() -> bool {
        const POWER: u32 = 0x8000_0007;
        // SAFETY: every x86-64 processor has CPUID. (Later compilers consider it safe.)
        #[allow(unsafe_code)]
        let cpuid = |leaf| unsafe { __cpuid(leaf) };
        cpuid(0x8000_0000).eax >= POWER && cpuid(POWER).edx & 1 << 8 != 0
    }

    #[inline(always)]
    pub(super) fn count() -> u64 {
        // SAFETY: every x86-64 processor has this instruction. (A program that makes the kernel refuse it
        // with PR_TSC_SIGSEGV cannot read the system's clock either.)
        #[allow(unsafe_code)]
        unsafe {
            _rdtsc()
        }
    }

    /// Assumes 500 MHz, because not every processor reports its rate, and the slowest processors that promise
    /// a constant rate run at 600 MHz. At 6 GHz, the wall clock is then read about a hundred times per ms,
    /// which is one call in a thousand.
    pub(super) fn least_in(ns: u64) -> u64 {
        const PROMISED: u8 = 1;
        const NOT_PROMISED: u8 = 2;
        // Cached, because a virtual machine may need tens of us to answer. Not a `OnceLock`: if a fork copies
        // one while another thread is initializing it, the child blocks forever. If several threads get here
        // at the same time, they all execute CPUID.
        static ANSWER: AtomicU8 = AtomicU8::new(0);
        let mut answer = ANSWER.load(Ordering::Relaxed);
        if answer == 0 {
            answer = if promises() { PROMISED } else { NOT_PROMISED };
            ANSWER.store(answer, Ordering::Relaxed);
        }
        if answer == PROMISED { ns / 2 } else { 0 }
    }
}

/// For systems that are known to let programs read the counter.
#[cfg(all(
    target_arch = "aarch64",
    any(target_os = "linux", target_os = "android", target_vendor = "apple"),
    not(miri)
))]
mod processor {
    use core::arch::asm;

    /// The generic timer always counts at a constant rate: Arm Architecture Reference Manual, "The Generic
    /// Timer in AArch64 state".
    #[inline(always)]
    pub(super) fn count() -> u64 {
        let counts;
        // SAFETY: this reads a register that these systems let programs read.
        #[allow(unsafe_code)]
        unsafe {
            asm!("mrs {}, cntvct_el0", out(reg) counts, options(nomem, nostack, preserves_flags));
        }
        counts
    }

    /// Uses the rate that the firmware reports.
    pub(super) fn least_in(ns: u64) -> u64 {
        let hertz: u64;
        // SAFETY: as above.
        #[allow(unsafe_code)]
        unsafe {
            asm!("mrs {}, cntfrq_el0", out(reg) hertz, options(nomem, nostack, preserves_flags));
        }
        // The rate has 32 bits.
        super::least_at(hertz & u64::from(u32::MAX), ns)
    }
}

/// Returns a lower bound on the counts that pass in `ns` nanoseconds of the wall clock. The wall clock may be
/// slewed to run faster than the counter indicates: chrony slews by up to 8.3 % by default (`maxslewrate` in
/// chrony.conf), and Linux by up to 10 % (`tick` of adjtimex(2)). In addition, a crystal may be off by 100
/// ppm. An eighth covers all of this.
#[cfg_attr(
    not(any(all(test, not(loom)), target_arch = "aarch64")),
    expect(dead_code, reason = "others do not tell their rate")
)]
fn least_at(hertz: u64, ns: u64) -> u64 {
    let counts = u128::from(ns) * u128::from(hertz) / 1_000_000_000;
    u64::try_from(counts - counts.div_ceil(8)).unwrap_or(u64::MAX)
}

#[cfg(any(
    miri,
    not(any(
        target_arch = "x86_64",
        all(
            target_arch = "aarch64",
            any(target_os = "linux", target_os = "android", target_vendor = "apple")
        )
    ))
))]
mod processor {
    pub(super) const fn count() -> u64 {
        0
    }

    pub(super) const fn least_in(_: u64) -> u64 {
        0
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use core::cell::Cell;

    #[test]
    fn a_clock_that_is_slewed_as_fast_as_any_does_not_outrun_its_counter() {
        // A Graviton's 62.5 MHz counter, the 1 GHz counters of newer Arm cores, and Apple's 24 MHz.
        for hertz in [24_000_000, 62_500_000, 1_000_000_000] {
            for ns in [1, 999, 1_000_000, 500_000_000] {
                // While the wall clock advances by `ns`, running 10 % and 600 ppm too fast.
                let counted = u128::from(ns) * u128::from(hertz) / 1_100_600_000;
                assert!(u128::from(least_at(hertz, ns)) <= counted, "{ns} ns at {hertz} Hz");
            }
        }
        assert_eq!(least_at(1_000_000_000, 1_000_000), 875_000);
    }

    /// A counter and a clock, moved by hand.
    #[derive(Default)]
    struct Machine {
        counts: Cell<u64>,
        ns: Cell<i64>,
        /// How far the clock advances when it is read, as if its thread had been preempted.
        pause_ns: Cell<i64>,
    }

    impl Machine {
        fn advance(&self, ns: i64, mhz: u64) {
            self.ns.set(self.ns.get() + ns);
            self.counts.set(self.counts.get() + ns.unsigned_abs() * mhz / 1000);
        }

        fn look(&self, rate: &Rate) -> bool {
            let monotonic_ns = || {
                self.ns.set(self.ns.get() + self.pause_ns.take());
                self.ns.get()
            };
            rate.is_as_told(|| self.counts.get(), |ns| ns / 2, monotonic_ns)
        }
    }

    #[test]
    fn a_counter_is_used_once_it_was_seen_to_be_as_fast_as_told() {
        let (machine, rate) = (Machine { ns: Cell::new(-5), ..Machine::default() }, Rate::new());
        assert!(!machine.look(&rate));
        machine.advance(999_999, 3000);
        assert!(!machine.look(&rate));
        // A pause in the thread makes the counter look slow once.
        machine.advance(1, 3000);
        machine.pause_ns.set(100_000_000);
        assert!(!machine.look(&rate) && !machine.look(&rate));
        machine.advance(1_000_000, 600);
        assert!(machine.look(&rate));
        // The result is permanent.
        machine.advance(1_000_000_000, 1);
        assert!(machine.look(&rate));
    }

    #[test]
    fn a_counter_that_is_slower_than_told_or_jumps_back_is_never_used() {
        for mhz in [0, 1, 25, 499] {
            let (machine, rate) = (Machine::default(), Rate::new());
            for _ in 0..1000 {
                assert!(!machine.look(&rate), "{mhz} MHz");
                machine.advance(300_000, mhz);
            }
            assert_eq!(rate.state.load(Ordering::Relaxed), SLOWER);
        }
        let (machine, rate) =
            (Machine { counts: Cell::new(u64::MAX / 2), ..Machine::default() }, Rate::new());
        for _ in 0..1000 {
            assert!(!machine.look(&rate));
            machine.ns.set(machine.ns.get() + 2_000_000);
            machine.counts.set(machine.counts.get() - 1);
        }
    }

    #[test]
    fn a_child_forked_amid_the_first_reading_begins_again() {
        let (machine, rate) = (Machine::default(), Rate::new());
        rate.state.store(STARTING, Ordering::Relaxed);
        assert!(!machine.look(&rate) && !machine.look(&rate));
        rate.after_fork();
        assert!(!machine.look(&rate));
        machine.advance(1_000_000, 1000);
        assert!(machine.look(&rate));
    }

    #[test]
    #[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri)))]
    fn the_promise_is_the_processors() {
        let flags = std::fs::read_to_string("/proc/cpuinfo").unwrap();
        let promised = flags.split_whitespace().any(|flag| flag == "nonstop_tsc");
        assert_eq!(processor::least_in(1_000_000), if promised { 500_000 } else { 0 });
    }
}
