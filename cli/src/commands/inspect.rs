//! `polyflake inspect`: lists possible explanations for an ID of unknown origin.

mod others;

use std::fmt::Write as _;

use clap::Args;
use polyflake::{Decoded, Format, Layout, Likelihood, PRESETS};
use serde::Serialize;

use crate::failure::{Failure, message_of};
use crate::output;
use crate::picture::{BOLD, DIM};
use crate::reading::{bare, read_id, shortened, shown};
use crate::when::{self, Zone, ZoneArg};
use crate::words;
use others::{Other, as_object};

/// Explain an ID of unknown origin: every layout that it fits, the likeliest first, and why
#[derive(Debug, Args)]
#[command(after_help = "\
An ID does not say which layout it has, but its time often does. UUIDs of each version, ULIDs, MongoDB's ObjectIds and \
KSUIDs are recognised too. The exit code is 3 if no layout is likely.")]
pub(crate) struct Inspect {
    /// The ID, in any format
    #[arg(value_name = "ID", required = true, allow_negative_numbers = true)]
    ids: Vec<String>,
    /// Your own layout, in addition to the presets
    #[arg(long, short, value_name = "LAYOUT")]
    layout: Option<String>,
    /// Print JSON, one line per ID
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    zone: ZoneArg,
}

/// A format that can read the text, and the layouts that fit the resulting ID.
#[derive(Serialize)]
struct Reading {
    format: &'static str,
    id: String,
    fits: Vec<Fit>,
}

#[derive(Serialize)]
struct Fit {
    layout: String,
    likelihood: &'static str,
    why: String,
    time: Option<String>,
    timestamp_ms: u64,
    node: u64,
    #[serde(serialize_with = "as_object")]
    fields: Vec<(String, u64)>,
    sequence: u64,
    #[serde(skip)]
    rank: (Likelihood, bool),
}

#[derive(Serialize)]
struct Found<'a> {
    text: &'a str,
    others: Vec<Other>,
    readings: Vec<Reading>,
}

impl Inspect {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let zone = self.zone.zone()?;
        let seen = Seen { now_ms: when::now_ms(), zone: &zone, layouts: self.layouts()? };
        let mut unlikely = None;
        for (n, text) in self.ids.iter().enumerate() {
            let text = bare(text);
            let found = Found { text, others: others::of(text, &zone), readings: seen.readings(text) };
            if !found.is_likely() {
                // If there are several IDs, show the others first.
                unlikely.get_or_insert_with(|| found.complaint());
            }
            if found.is_nothing() {
                continue;
            }
            if self.json {
                output::json(&found)?;
            } else {
                let space = if n == 0 { "" } else { "\n" };
                output::print(&format!("{space}{}", seen.show(&found)))?;
            }
        }
        unlikely.map_or(Ok(()), |why| Err(Failure::No(why)))
    }

    fn layouts(&self) -> Result<Vec<(String, Layout)>, Failure> {
        let mut layouts: Vec<_> =
            PRESETS.iter().map(|preset| (preset.name.to_owned(), preset.layout)).collect();
        if let Some(text) = &self.layout {
            let own = super::layout_of(text)?;
            if !layouts.iter().any(|(_, known)| *known == own) {
                layouts.insert(0, (own.to_string(), own));
            }
        }
        Ok(layouts)
    }
}

impl Found<'_> {
    fn is_nothing(&self) -> bool {
        self.others.is_empty() && self.readings.is_empty()
    }

    fn is_likely(&self) -> bool {
        let is_plausible = |fit: &Fit| fit.rank.0 == Likelihood::Plausible;
        !self.others.is_empty() || self.readings.iter().any(|reading| reading.fits.iter().any(is_plausible))
    }

    fn complaint(&self) -> String {
        let text = shortened(self.text);
        if !self.is_nothing() {
            return format!("`{text}` is probably not an ID: its time would be unlikely in every layout");
        }
        let why: Vec<_> = Format::ALL
            .iter()
            .filter_map(|format| format.read(self.text).err().map(|error| message_of(&error)))
            .map(|message| message.split("; the digits are").next().unwrap_or_default().to_owned())
            .collect();
        format!("`{text}` is not a known kind of ID: {}", why.join("; "))
    }
}

/// The context in which the IDs are examined.
struct Seen<'a> {
    now_ms: u64,
    zone: &'a Zone,
    layouts: Vec<(String, Layout)>,
}

impl Seen<'_> {
    /// The formats that can read the text, the likeliest first.
    fn readings(&self, text: &str) -> Vec<Reading> {
        let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
        let mut found = Vec::new();
        for format in Format::ALL {
            let digits = if format == Format::Hex { hex.unwrap_or(text) } else { text };
            let Ok(id) = read_id(digits, format) else { continue };
            let fits = self.fits(id, format);
            let best = fits.first().map_or(Likelihood::TooOld, |fit| fit.rank.0);
            let is_as_written = format.write(id).eq_ignore_ascii_case(digits);
            let rank = match format {
                Format::Hex if hex.is_some() => 0,
                Format::Decimal => 1,
                _ => 2,
            };
            found.push((
                (rank, fits.is_empty(), best, !is_as_written),
                Reading { format: format.name(), id: id.to_string(), fits },
            ));
        }
        found.sort_by_key(|(rank, _)| *rank);
        found.into_iter().map(|(_, reading)| reading).collect()
    }

    fn fits(&self, id: u64, format: Format) -> Vec<Fit> {
        let fits = |(name, layout): &(String, Layout)| {
            layout.decode(id).ok().map(|decoded| self.fit(name, &decoded, format))
        };
        let mut fits: Vec<_> = self.layouts.iter().filter_map(fits).collect();
        fits.sort_by_key(|fit| fit.rank);
        fits
    }

    fn fit(&self, name: &str, decoded: &Decoded, format: Format) -> Fit {
        let now_ms = self.now_ms;
        let timestamp_ms = decoded.timestamp_ms();
        let likelihood = decoded.likelihood(now_ms);
        let from_now = words::from_now(timestamp_ms, now_ms);
        let after_epoch = words::duration(timestamp_ms.saturating_sub(decoded.layout().epoch_ms()));
        let mut why = match likelihood {
            Likelihood::Plausible => format!("{from_now}, {after_epoch} after its epoch"),
            Likelihood::Early => format!("{after_epoch} after its epoch"),
            Likelihood::TooOld => "before the first Snowflakes, of November 2010".into(),
            _ => from_now,
        };
        if name == "clickhouse" {
            why.push_str("; PyPI's snowflake-id has these bits too");
        }
        let is_usual = name == "tsid" && format == Format::Base32;
        if is_usual {
            why.push_str("; base32 is how TSIDs are written");
        }
        Fit {
            layout: name.to_owned(),
            likelihood: likelihood.name(),
            why,
            time: self.zone.text(timestamp_ms),
            timestamp_ms,
            node: decoded.node(),
            fields: decoded.fields().map(|(name, value)| (name.to_owned(), value)).collect(),
            sequence: decoded.sequence(),
            rank: (likelihood, !is_usual),
        }
    }

    fn show(&self, found: &Found<'_>) -> String {
        let layouts = self.layouts.len();
        let mut text = format!("{BOLD}{}{BOLD:#}\n", shown(found.text));
        for other in &found.others {
            let _ = writeln!(text, "\n{BOLD}{}{BOLD:#}", other.kind);
            if let Some(time) = &other.time {
                let from_now =
                    other.timestamp_ms.map_or(String::new(), |ms| words::from_now(ms, self.now_ms));
                let _ = writeln!(text, "  {DIM}time{DIM:#}  {BOLD}{time}{BOLD:#}  {DIM}{from_now}{DIM:#}");
            }
            for (name, value) in &other.holds {
                let _ = writeln!(text, "  {DIM}{name}{DIM:#}  {value}");
            }
            let _ = writeln!(text, "  {DIM}{}{DIM:#}", other.why);
        }
        for reading in &found.readings {
            let id = if reading.id == found.text {
                String::new()
            } else {
                format!(" {BOLD}{}{BOLD:#}", reading.id)
            };
            let fits = reading.fits.len();
            let _ =
                writeln!(text, "\nas {}{id} {DIM}it fits {fits} of {layouts} layouts{DIM:#}", reading.format);
            for fit in reading.fits.iter().filter(|fit| fit.rank.0 == Likelihood::Plausible) {
                let fields: Vec<_> = fit
                    .fields
                    .iter()
                    .map(|(name, value)| format!("{name} {value}"))
                    .chain([format!("sequence {}", fit.sequence)])
                    .collect();
                let time = fit.time.as_deref().unwrap_or_default();
                let _ = writeln!(
                    text,
                    "  {BOLD}{:14}{BOLD:#}  {time}  {}  {DIM}{}{DIM:#}",
                    fit.layout,
                    fields.join(", "),
                    fit.why
                );
            }
            text.push_str(&unlikely(reading));
        }
        text
    }
}

/// The layouts that the time rules out or makes unlikely, one line per reason.
fn unlikely(reading: &Reading) -> String {
    let mut text = String::new();
    for (likelihood, why) in [
        (Likelihood::Early, "soon after the epoch, as any small number is"),
        (Likelihood::Future, "in the future"),
        (Likelihood::TooOld, "before there were Snowflakes"),
    ] {
        let names: Vec<_> =
            reading.fits.iter().filter(|fit| fit.rank.0 == likelihood).map(|fit| &*fit.layout).collect();
        if !names.is_empty() {
            let _ = writeln!(text, "  {DIM}unlikely, {why}: {}{DIM:#}", names.join(", "));
        }
    }
    text
}
