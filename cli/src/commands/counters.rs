//! `polyflake counters`: shows how far counters have counted.

use std::fmt::Write as _;

use clap::Args;
use polyflake::Number;
use polyflake_coordination::{Admin, CounterRecord, LAST_NUMBER, Place};
use serde::Serialize;

use super::StoreArg;
use crate::failure::Failure;
use crate::output;
use crate::picture::{BOLD, DIM};
use crate::question::Yes;
use crate::reading::shown;
use crate::words;

/// Show how far a store's counters have counted, or change that by hand
#[derive(Debug, Args)]
#[command(after_help = "\
The namespace comes from the address (`?namespace=shop`); otherwise it is `default`. With `?schema=leaf`, `tinyid` or `cosid` it shows \
their tables. The command asks before each change.")]
pub(crate) struct Counters {
    #[command(flatten)]
    store: StoreArg,
    #[command(flatten)]
    change: Change,
    #[command(flatten)]
    yes: Yes,
    /// Print JSON, one line per counter
    #[arg(long, conflicts_with_all = ["raise", "remove"])]
    json: bool,
}

#[derive(Debug, Args)]
#[group(multiple = false)]
struct Change {
    /// Move a counter above N; if the store has lost the counter, create it again
    #[arg(long, num_args = 2, value_names = ["NAME", "N"], allow_negative_numbers = true)]
    raise: Option<Vec<String>>,
    /// Delete a counter
    #[arg(long, value_name = "NAME")]
    remove: Option<String>,
}

#[derive(Serialize)]
struct Json<'a> {
    namespace: &'a str,
    name: &'a str,
    last: String,
    place_index: u64,
    place_count: u64,
}

impl Counters {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let mut store = self.store.open()?;
        match (&self.change.raise, &self.change.remove) {
            (Some(raise), _) => match raise.as_slice() {
                [name, number] => self.raise(&mut store, name, number),
                _ => Err(Failure::Usage("--raise takes a name and a number".into())),
            },
            (None, Some(name)) => self.remove(&mut store, name),
            (None, None) => self.show(&mut store),
        }
    }

    fn raise(&self, store: &mut Admin, name: &str, number: &str) -> Result<(), Failure> {
        let number = Number::parse(number).in_range("number", 1, LAST_NUMBER)?;
        let at = match store.counter(name)? {
            Some(found) if found.last >= number => {
                return output::print(&format!("It is already at {}.\n", found.last));
            }
            Some(found) => format!("It stands at {}.", found.last),
            None => "The store has no such counter; this creates it.".into(),
        };
        let address = store.address();
        self.yes.confirm(&format!(
            "Raise counter `{name}` of namespace {} of {address} to {number}? {at} Running processes first use up the \
             numbers they hold.",
            address.namespace
        ))?;
        let is_raised = store.raise(name, number)?;
        output::print(&if is_raised {
            format!("Done: the next number is above {number}.\n")
        } else {
            "It is further by now.\n".into()
        })
    }

    fn remove(&self, store: &mut Admin, name: &str) -> Result<(), Failure> {
        let Some(found) = store.counter(name)? else {
            return output::print("There is no such counter.\n");
        };
        let address = store.address();
        self.yes.confirm(&format!(
            "Remove counter `{name}` of namespace {} of {address}, which stands at {}? The next program that opens it begins again, \
             and numbers repeat.",
            address.namespace, found.last
        ))?;
        let was_there = store.remove(name)?;
        output::print(if was_there { "Done.\n" } else { "It is gone already.\n" })
    }

    fn show(&self, store: &mut Admin) -> Result<(), Failure> {
        let all = store.counters()?;
        let namespace = &store.address().namespace;
        if self.json {
            return all.iter().try_for_each(|(name, record)| output::json(&json(namespace, name, record)));
        }
        if all.is_empty() {
            return output::print(&format!("There is no counter in namespace {}.\n", shown(namespace)));
        }
        let all: Vec<_> = all.iter().map(|(name, record)| (shown(name), record)).collect();
        let width = all.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
        let mut text = String::new();
        for (name, record) in &all {
            let Place { index, count } = record.place;
            let place = if count > 1 { format!(", store {} of {count}", index + 1) } else { String::new() };
            let _ = writeln!(
                text,
                "{BOLD}{name:width$}{BOLD:#}  {:>25}  {DIM}handed out up to here{place}{DIM:#}",
                words::count(record.last)
            );
        }
        output::print(&text)
    }
}

fn json<'a>(namespace: &'a str, name: &'a str, record: &CounterRecord) -> Json<'a> {
    Json {
        namespace,
        name,
        last: record.last.to_string(),
        place_index: record.place.index,
        place_count: record.place.count,
    }
}
