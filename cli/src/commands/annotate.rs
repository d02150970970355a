//! `polyflake annotate`: copies a log, adding the time and the node after each ID.

mod scan;

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

use anstream::{AutoStream, ColorChoice};
use clap::Args;
use polyflake::{Layout, Likelihood, Node};

use super::LayoutArg;
use crate::failure::Failure;
use crate::output::Lines;
use crate::when::{self, End, Times, Zone, ZoneArg};
use scan::{CONTEXT, LONGEST, Scanner};

/// Copy a log, and add the time and the node after each ID
#[derive(Debug, Args)]
#[command(after_help = "\
An ID is a decimal number that stands alone and has a plausible time in the layout: from a week after the epoch to a day \
from now, or in the window that --since and --until set. Nothing else changes, and each line is written once it is complete. \
As with cat, control characters in the log reach the terminal.

  tail -f app.log | polyflake annotate
  polyflake annotate --layout discord --tz local app.log
  polyflake annotate --since '30 days ago' app.log")]
pub(crate) struct Annotate {
    /// The logs, read one after the other; standard input if there are none, or for `-`
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    layout: LayoutArg,
    #[command(flatten)]
    zone: ZoneArg,
    /// The earliest time of an ID [default: a week after the layout's epoch]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    since: Option<String>,
    /// The latest time of an ID [default: a day from now]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    until: Option<String>,
}

/// How many bytes to read at once.
const READ: usize = 256 * 1024;
/// Changes only the text colour, and then changes it back: a line of the log may have a background or be bold.
const COLOUR: (&str, &str) = ("\u{1b}[36m", "\u{1b}[39m");

impl Annotate {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let layout = self.layout.layout()?;
        let zone = self.zone.zone()?;
        let mut filter = Filter {
            window: Window {
                since: time_of(&layout, "since", self.since.as_deref(), End::First, &zone)?,
                until: time_of(&layout, "until", self.until.as_deref(), End::Last, &zone)?,
                now: 0,
            },
            beside: Beside { times: Times::new(zone), number: itoa::Buffer::new(), colour: None },
            layout,
            lines: Lines::new(),
        };
        if AutoStream::choice(&io::stdout()) != ColorChoice::Never {
            filter.beside.colour = Some(COLOUR);
        }
        let stdin = [PathBuf::from("-")];
        for path in if self.files.is_empty() { &stdin[..] } else { &self.files } {
            if path.as_os_str() == "-" {
                filter.copy(io::stdin().lock(), "standard input")?;
            } else {
                let name = path.display().to_string();
                let file = File::open(path).map_err(|error| Failure::io(&name, &error))?;
                filter.copy(file, &name)?;
            }
        }
        Ok(())
    }
}

/// The instant given by an option, rounded down to a tick of the layout, in Unix ms.
fn time_of(
    layout: &Layout,
    option: &str,
    text: Option<&str>,
    end: End,
    zone: &Zone,
) -> Result<Option<u64>, Failure> {
    let Some(text) = text else { return Ok(None) };
    let id = layout.compose(when::parse(option, text, end, zone)?, Node::from(0_u64), 0)?;
    Ok(Some(layout.decode(id)?.timestamp_ms()))
}

/// The range of times that IDs may have, in Unix ms.
struct Window {
    since: Option<u64>,
    until: Option<u64>,
    now: u64,
}

impl Window {
    /// Whether the time is late enough, or cannot be decoded.
    fn is_since(&self, layout: &Layout, ticks: u64) -> bool {
        let Ok(decoded) = layout.decode(ticks << layout.timestamp_shift()) else { return true };
        match self.since {
            Some(since) => decoded.timestamp_ms() >= since,
            // Whether a time is too early does not depend on the current time.
            None => !matches!(decoded.likelihood(u64::MAX), Likelihood::Early | Likelihood::TooOld),
        }
    }

    fn is_past(&self, layout: &Layout, ticks: u64) -> bool {
        let Ok(decoded) = layout.decode(ticks << layout.timestamp_shift()) else { return true };
        match self.until {
            Some(until) => decoded.timestamp_ms() > until,
            None => decoded.likelihood(self.now) == Likelihood::Future,
        }
    }

    /// The range of ticks that IDs may have, excluding its end.
    fn ticks(&self, layout: &Layout) -> (u64, u64) {
        (
            first(layout, |ticks| self.is_since(layout, ticks)),
            first(layout, |ticks| self.is_past(layout, ticks)),
        )
    }
}

/// The first tick of a layout that passes the test, as all later ticks do; the tick after the last if none passes.
fn first(layout: &Layout, is_so: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (0, u64::MAX >> (64 - layout.timestamp_bits()));
    while low < high {
        let middle = low + (high - low) / 2;
        if is_so(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    if is_so(low) { low } else { low.saturating_add(1) }
}

/// Copies its input, adding the notes.
struct Filter {
    layout: Layout,
    window: Window,
    beside: Beside,
    lines: Lines,
}

impl Filter {
    fn copy(&mut self, mut from: impl Read, name: &str) -> Result<(), Failure> {
        let mut buffer = vec![0; CONTEXT + LONGEST + READ];
        // How much of the buffer is filled, and how much of that has been written.
        let (mut filled, mut written) = (0, 0);
        loop {
            let read = match from.read(buffer.get_mut(filled..).unwrap_or_default()) {
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(Failure::io(name, &error)),
            };
            filled += read;
            // A log may be followed for days.
            self.window.now = when::now_ms();
            let scanner = Scanner::new(&self.layout, self.window.ticks(&self.layout));
            let text = buffer.get(..filled).unwrap_or_default();
            let beside = &mut self.beside;
            let to = self.lines.line();
            written = scanner.copy(text, written, read == 0, to, |id, to| beside.push(&self.layout, id, to));
            self.lines.flush()?;
            if read == 0 {
                return Ok(());
            }
            let kept = written.saturating_sub(CONTEXT);
            buffer.copy_within(kept..filled, 0);
            (filled, written) = (filled - kept, written - kept);
        }
    }
}

/// The note after an ID: ` [2022-06-28T16:07:40.105Z node 378]`.
struct Beside {
    times: Times,
    number: itoa::Buffer,
    colour: Option<(&'static str, &'static str)>,
}

impl Beside {
    fn push(&mut self, layout: &Layout, id: u64, to: &mut Vec<u8>) {
        let (on, off) = self.colour.unwrap_or_default();
        to.extend([b" ", on.as_bytes(), b"["].concat());
        let ticks = scan::field(id, layout.timestamp_shift(), layout.timestamp_bits());
        let ms = layout.epoch_ms() + ticks * layout.tick_ms();
        if !self.times.push(ms, to) {
            to.extend_from_slice(self.number.format(ms).as_bytes());
        }
        if layout.node_bits() > 0 {
            let node = layout.node_fields().fold(0, |node, field| node << field.bits() | field.value(id));
            to.extend_from_slice(b" node ");
            to.extend_from_slice(self.number.format(node).as_bytes());
        }
        to.push(b']');
        to.extend_from_slice(off.as_bytes());
    }
}
