//! The processor's counter of time, where the processor promises that it counts at one rate.

/// What counts time, at a rate that no change of frequency and no state of sleep alters.
pub(super) trait Counter {
    /// The counts so far. The processor may read it a little early: before a load that comes first in the program.
    fn now(&self) -> u64;

    /// At most as many counts as go by in `ns`, which is at most a million; 0 where nothing is promised, and the counter
    /// may not even be there to be read.
    fn least_in(&self, ns: u64) -> u64;
}

/// This processor's.
#[derive(Debug, Clone, Copy)]
pub(super) struct Processor;

impl Counter for Processor {
    #[inline(always)]
    fn now(&self) -> u64 {
        processor::count()
    }

    fn least_in(&self, ns: u64) -> u64 {
        processor::least_in(ns)
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
        // SAFETY: every x86-64 has CPUID. (Later compilers call it safe themselves.)
        #[allow(unsafe_code)]
        let cpuid = |leaf| unsafe { __cpuid(leaf) };
        cpuid(0x8000_0000).eax >= POWER && cpuid(POWER).edx & 1 << 8 != 0
    }

    #[inline(always)]
    pub(super) fn count() -> u64 {
        // SAFETY: every x86-64 has it. (A program that has the kernel refuse it, by PR_TSC_SIGSEGV, can't read the
        // system's clock either.)
        #[allow(unsafe_code)]
        unsafe {
            _rdtsc()
        }
    }

    /// By half a GHz, for not every processor tells its rate: the slowest that make the promise have 600 MHz. One of
    /// 6 GHz then reads the wall clock about a hundred times a ms, which is one call of a thousand.
    pub(super) fn least_in(ns: u64) -> u64 {
        const PROMISED: u8 = 1;
        const NOT_PROMISED: u8 = 2;
        // Kept, for a virtual machine may take tens of us to answer. Not a `OnceLock`: one that a fork copies while another
        // thread initializes it would block the child for ever. Threads that come here at once all ask.
        static ANSWER: AtomicU8 = AtomicU8::new(0);
        let mut answer = ANSWER.load(Ordering::Relaxed);
        if answer == 0 {
            answer = if promises() { PROMISED } else { NOT_PROMISED };
            ANSWER.store(answer, Ordering::Relaxed);
        }
        if answer == PROMISED { ns / 2 } else { 0 }
    }
}

/// On systems that are known to let programs read the counter.
#[cfg(all(
    target_arch = "aarch64",
    any(target_os = "linux", target_os = "android", target_vendor = "apple"),
    not(miri)
))]
mod processor {
    use core::arch::asm;

    /// The generic timer always counts at one rate: Arm Architecture Reference Manual, "The Generic Timer in AArch64
    /// state".
    #[inline(always)]
    pub(super) fn count() -> u64 {
        let counts;
        // SAFETY: reads a register that these systems let programs read.
        #[allow(unsafe_code)]
        unsafe {
            asm!("mrs {}, cntvct_el0", out(reg) counts, options(nomem, nostack, preserves_flags));
        }
        counts
    }

    /// By the rate that the firmware tells, less a 512th: crystals are off by 100 ppm, and clocks slewed by 500.
    pub(super) fn least_in(ns: u64) -> u64 {
        let hertz: u64;
        // SAFETY: as above.
        #[allow(unsafe_code)]
        unsafe {
            asm!("mrs {}, cntfrq_el0", out(reg) hertz, options(nomem, nostack, preserves_flags));
        }
        // The rate has 32 bits.
        let counts = ns * (hertz & u64::from(u32::MAX)) / 1_000_000_000;
        counts - counts.div_ceil(512)
    }
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

#[cfg(all(test, target_arch = "x86_64", target_os = "linux", not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn the_promise_is_the_processors() {
        let flags = std::fs::read_to_string("/proc/cpuinfo").unwrap();
        let promised = flags.split_whitespace().any(|flag| flag == "nonstop_tsc");
        assert_eq!(Processor.least_in(1_000_000), if promised { 500_000 } else { 0 });
    }
}
