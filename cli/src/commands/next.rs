//! `polyflake next`: prints new IDs, one per line.

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use polyflake::{Format, Number, Options, Snowflake};

use super::{LayoutArg, TextArg};
use crate::failure::{Failure, complain};
use crate::output::Lines;

/// Generate IDs: one, or a stream, one per line
#[derive(Debug, Args)]
#[command(after_help = "\
Two processes must not use one node at the same time. Give each its own with --node, let a store hand nodes out with \
--lease, or let the processes of a host share one with --node and --state. When the \
reader of a pipe ends (as in `polyflake next --forever | head`), the command ends too, without an error.")]
pub(crate) struct Next {
    /// How many IDs
    #[arg(short, long, value_name = "N", default_value = "1", allow_negative_numbers = true)]
    number: String,
    /// Continue until the reader closes the pipe
    #[arg(long, conflicts_with = "number")]
    forever: bool,
    #[command(flatten)]
    layout: LayoutArg,
    /// The node: a number, fields such as `datacenter=1,worker=7`, `ordinal` or `ip`
    #[arg(long, value_name = "NODE", allow_hyphen_values = true)]
    node: Option<String>,
    /// The address of a store that leases a node, such as `redis://host/0` or `sqlite:///var/lib/app/leases.db`. The node is
    /// given back at the end. If the address contains a password, put it into the environment, where other users do not see it
    #[arg(long, value_name = "URL", env = "POLYFLAKE_LEASE", hide_env_values = true)]
    lease: Option<String>,
    /// A file through which all processes on this host share the node
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    #[command(flatten)]
    text: TextArg,
    /// How far IDs may run ahead of the clock to serve a burst
    #[arg(long, value_name = "MS", allow_negative_numbers = true)]
    max_ahead_ms: Option<String>,
    /// How far the clock may step back while IDs are still issued [default: 1000]
    #[arg(long, value_name = "MS", allow_negative_numbers = true)]
    max_backward_ms: Option<String>,
    /// The longest wait for the clock between two IDs [default: a tick and a second]
    #[arg(long, value_name = "MS", allow_negative_numbers = true)]
    max_wait_ms: Option<String>,
    /// The first sequence number in a new tick: spread or zero [default: spread]
    #[arg(long, value_name = "START")]
    sequence_start: Option<String>,
    /// The clock: system or steady [default: system]
    #[arg(long, value_name = "CLOCK")]
    clock: Option<String>,
}

/// In larger blocks, the IDs would be older by the time they are read.
const MOST_AT_ONCE: u64 = 8192;

impl Next {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let format = self.text.format()?;
        let left = if self.forever {
            None
        } else {
            Some(Number::parse(&self.number).in_range("number", 0, u64::MAX)?)
        };
        let options = self.options()?;
        let (ids, is_interrupted) = if self.lease.is_some() {
            tell_of_leases();
            let ids = polyflake_coordination::open(&options)?;
            // Up to this point, Ctrl-C ends the program at once.
            (ids, interrupted()?)
        } else {
            (options.build()?, Arc::default())
        };
        let done = print(&ids, left, format, &is_interrupted);
        // This frees a leased node at once.
        ids.close();
        done
    }

    fn options(&self) -> Result<Options, Failure> {
        let mut options = Snowflake::builder().layout(self.layout.layout()?);
        for (name, value) in [
            ("node", &self.node),
            ("lease", &self.lease),
            ("max_ahead_ms", &self.max_ahead_ms),
            ("max_backward_ms", &self.max_backward_ms),
            ("max_wait_ms", &self.max_wait_ms),
            ("sequence_start", &self.sequence_start),
            ("clock", &self.clock),
        ] {
            if let Some(value) = value {
                options.set(name, value)?;
            }
        }
        if let Some(state) = &self.state {
            options.set_os("state", state.as_os_str())?;
        }
        Ok(options)
    }
}

/// Reports on standard error why the command is waiting.
fn tell_of_leases() {
    use polyflake_coordination::{Event, Kind, set_listener};

    let listener = |event: &Event| {
        if event.kind.is_warning() && event.kind != Kind::AsynchronousReplicas {
            complain(event.kind.name(), &event.message);
        }
    };
    set_listener(Some(Box::new(listener)));
}

fn print(
    ids: &Snowflake,
    mut left: Option<u64>,
    format: Format,
    is_interrupted: &AtomicBool,
) -> Result<(), Failure> {
    let mut lines = Lines::new();
    // No block waits longer than a tick before its first line is printed.
    let most = usize::try_from(ids.layout().ids_per_tick().min(MOST_AT_ONCE)).unwrap_or(1);
    let mut block = vec![0; most];
    loop {
        let count = left.map_or(most, |left| usize::try_from(left).map_or(most, |left| left.min(most)));
        let Some(block) = block.get_mut(..count).filter(|block| !block.is_empty()) else { break };
        if let Err(error) = ids.fill(block) {
            lines.flush()?;
            return Err(error.into());
        }
        write(block, format, &mut lines)?;
        if is_interrupted.load(Ordering::Relaxed) {
            lines.flush()?;
            return Err(Failure::Interrupted);
        }
        left = left.map(|left| left - count as u64);
    }
    lines.flush()
}

fn write(ids: &[u64], format: Format, lines: &mut Lines) -> Result<(), Failure> {
    let mut decimal = itoa::Buffer::new();
    let line = lines.line();
    for &id in ids {
        // Writes the same text as the core, in a third of the time.
        if format == Format::Decimal {
            line.extend_from_slice(decimal.format(id).as_bytes());
        } else {
            let _ = line.write_all(format.write(id).as_bytes());
        }
        line.push(b'\n');
    }
    lines.done()
}

/// Ctrl-C or a similar signal ends the program between two blocks, so that a leased node is given back. A
/// second one ends it at once.
#[cfg(unix)]
fn interrupted() -> Result<Arc<AtomicBool>, Failure> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    use signal_hook::flag;

    let is_interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_shutdown(signal, 130, Arc::clone(&is_interrupted))
            .and_then(|_| flag::register(signal, Arc::clone(&is_interrupted)))
            .map_err(|error| Failure::io("signals", &error))?;
    }
    Ok(is_interrupted)
}

#[cfg(not(unix))]
fn interrupted() -> Result<Arc<AtomicBool>, Failure> {
    Ok(Arc::default())
}
