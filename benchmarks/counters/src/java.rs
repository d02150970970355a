//! CosId, with a separate JVM for each generator, which measures when it is told to.

use std::cell::RefCell;
use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::rc::Rc;
use std::time::Duration;

use crate::STEP;
use crate::measure::{Check, Measured};
use crate::suite::{BATCHES, ONE, REDIS, Suite, TWO};

/// For the compiler of the JVM.
const WARM_UP: Duration = Duration::from_secs(4);
/// Numbers in a round: as long as one of the others.
const IN_HAND: u32 = 5 << 20;
const ASKED: u32 = 500;

pub fn add(suite: &mut Suite, classes: &str, redis: u16) {
    let start = |suite: &mut Suite, kind, step| match Jvm::start(classes, kind, step, redis) {
        Ok(jvm) => Some(Rc::new(RefCell::new(jvm))),
        Err(why) => {
            suite.missing(&format!("CosId ({kind})"), &why);
            None
        }
    };
    for (kind, subject, step) in [
        ("chain", "CosId SegmentChainId", STEP),
        ("chain", "CosId SegmentChainId, step=10", 10),
        ("segment", "CosId SegmentId", STEP),
    ] {
        let Some(jvm) = start(suite, kind, step) else { continue };
        let version = jvm.borrow().version.clone();
        for (table, loops) in [(ONE, Loops::ONE), (TWO, Loops::TWO), (BATCHES, Loops::BATCHES)] {
            if table == ONE || step == STEP {
                let asks = Asks { jvm: Rc::clone(&jvm), loops, count: IN_HAND };
                suite.add(table, subject, &version, asks).warm_up(WARM_UP);
            }
        }
    }
    if let Some(jvm) = start(suite, "segment", 1) {
        let version = jvm.borrow().version.clone();
        let asks = Asks { jvm, loops: Loops::ONE, count: ASKED };
        suite.add(REDIS, "CosId SegmentId, step=1", &version, asks).warm_up(WARM_UP);
    }
    if let Some(jvm) = start(suite, "atomic", 1) {
        for (table, loops) in [(ONE, Loops::ONE), (TWO, Loops::TWO)] {
            let asks = Asks { jvm: Rc::clone(&jvm), loops, count: IN_HAND };
            suite.add(table, "AtomicLong.incrementAndGet in Java", "", asks).warm_up(WARM_UP);
        }
    }
}

/// A process of `benchmarks/java`.
struct Jvm {
    version: String,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
    child: Child,
}

impl Jvm {
    fn start(classes: &str, kind: &str, step: u64, redis: u16) -> Result<Self, String> {
        let mut command = Command::new("java");
        // Without a word about the log that nobody asked for.
        command.args([
            "-Dslf4j.internal.verbosity=ERROR",
            "-cp",
            classes,
            "Bench",
            kind,
            &step.to_string(),
            &redis.to_string(),
        ]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|why| format!("java does not start: {why}"))?;
        let input = child.stdin.take();
        let output = child.stdout.take().ok_or("java has no output")?;
        let mut jvm = Self { version: String::new(), input, output: BufReader::new(output).lines(), child };
        jvm.version = jvm.output.next().and_then(Result::ok).ok_or("java ended; see its output")?;
        Ok(jvm)
    }

    fn ask(&mut self, what: &str, count: u32) -> u64 {
        let input = self.input.as_mut().expect("it is open until the end");
        writeln!(input, "{what} {count}").expect("java reads");
        let answer = self.output.next().expect("java answers").expect("java writes a line");
        answer.parse().expect("java writes a number")
    }
}

impl Drop for Jvm {
    fn drop(&mut self) {
        // It ends with its input.
        self.input = None;
        let _ = self.child.wait();
    }
}

/// The names of a loop and of its check.
#[derive(Clone, Copy)]
struct Loops(&'static str, &'static str);

impl Loops {
    const ONE: Self = Self("one", "check-one");
    const TWO: Self = Self("two", "check-two");
    const BATCHES: Self = Self("batch", "check-one");
}

struct Asks {
    jvm: Rc<RefCell<Jvm>>,
    loops: Loops,
    count: u32,
}

impl Measured for Asks {
    fn round(&mut self) -> f64 {
        self.jvm.borrow_mut().ask(self.loops.0, self.count) as f64 / f64::from(self.count)
    }

    fn check(&mut self) -> Option<Check> {
        let numbers = if self.count == ASKED { 1_000 } else { 1_000_000 };
        let mut jvm = self.jvm.borrow_mut();
        if jvm.version.is_empty() {
            return None;
        }
        let repeated = jvm.ask(self.loops.1, numbers);
        Some(Check { numbers: numbers as usize, repeated: usize::try_from(repeated).expect("few") })
    }
}
