//! `polyflake public`: public IDs, which are strings that hide IDs from outsiders.

mod lines;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use polyflake::{PublicIdKey, PublicIds};
use zeroize::Zeroizing;

use super::TextArg;
use crate::failure::{Failure, complain};
use crate::output;
use crate::reading::bare;
use crate::secret::warning_of_open;
use crate::source::{Sink as _, Source, delimiter};
use lines::{Turn, Writer};

/// Turn IDs into public IDs, which hide them, and back
#[derive(Debug, Args)]
#[command(after_help = "\
Keys come from a file or from POLYFLAKE_PUBLIC_KEYS, because other users can see a command line. The first key encodes, and \
each key decodes.

  (umask 077; polyflake public key > keys)
  polyflake public encode --keys keys --prefix order 1541815603606036480
  polyflake public decode --keys keys --prefix order < texts.txt
  polyflake public encode --keys keys --prefix order --column id --input orders.csv")]
pub(crate) struct Public {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Generate a key and print it
    Key {
        /// The file with your present keys; the new key gets a number that none of them has
        #[arg(long, value_name = "FILE")]
        keys: Option<PathBuf>,
        /// The key's number, from 0 to 61 [default: 0; with --keys, the next free number after the first key's]
        #[arg(long, value_name = "N", conflicts_with = "keys", allow_negative_numbers = true)]
        number: Option<String>,
    },
    /// Turn IDs into public IDs
    Encode {
        /// The IDs; read from standard input if there are none, or for `-`
        #[arg(value_name = "ID", allow_negative_numbers = true)]
        ids: Vec<String>,
        #[command(flatten)]
        text: TextArg,
        #[command(flatten)]
        with: With,
    },
    /// Turn public IDs back into IDs
    Decode {
        /// The public IDs; read from standard input if there are none, or for `-`
        #[arg(id = "ids", value_name = "PUBLIC_ID")]
        texts: Vec<String>,
        #[command(flatten)]
        text: TextArg,
        #[command(flatten)]
        with: With,
    },
    /// Encode public IDs again, with the first key
    Rotate {
        /// The public IDs; read from standard input if there are none, or for `-`
        #[arg(id = "ids", value_name = "PUBLIC_ID")]
        texts: Vec<String>,
        #[command(flatten)]
        with: With,
    },
}

#[derive(Debug, Args)]
struct With {
    /// The file with the keys, one per line; without this option, they come from `POLYFLAKE_PUBLIC_KEYS`
    #[arg(long, value_name = "FILE")]
    keys: Option<PathBuf>,
    /// The prefix of the public IDs, such as `order` [default: none]
    #[arg(long, short, value_name = "PREFIX", default_value = "", hide_default_value = true)]
    prefix: String,
    /// Read a file instead of standard input
    #[arg(long, short, value_name = "FILE", conflicts_with = "ids")]
    input: Option<PathBuf>,
    /// Convert a CSV column and print whole rows: the column's name in the first line, or its number from 1
    #[arg(long, value_name = "COLUMN", conflicts_with = "ids")]
    column: Option<String>,
    /// Treat the first line of the CSV as data, whatever it contains
    #[arg(long, requires = "column")]
    no_header: bool,
    /// The character between CSV columns
    #[arg(long, value_name = "CHARACTER", default_value = ",", requires = "column")]
    delimiter: String,
}

impl Public {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        match &self.what {
            What::Key { keys, number } => make_key(keys.as_deref(), number.as_deref()),
            What::Encode { ids, text, with } => with.run(Turn::Encode(text.format()?), ids),
            What::Decode { texts, text, with } => with.run(Turn::Decode(text.format()?), texts),
            What::Rotate { texts, with } => with.run(Turn::Rotate, texts),
        }
    }
}

fn make_key(keys: Option<&Path>, number: Option<&str>) -> Result<(), Failure> {
    let number = match (keys, number) {
        (Some(file), _) => {
            let ids = PublicIds::from_texts(&[keys_in(file)?.as_str()], "")?;
            let taken: Vec<u8> = ids.key_numbers().collect();
            let after = taken.first().map_or(0, |first| first + 1);
            let mut numbers = (after..=PublicIdKey::MAX_NUMBER).chain(0..after);
            numbers.find(|number| !taken.contains(number)).unwrap_or_default().into()
        }
        (None, Some(number)) => polyflake::Number::parse(number),
        (None, None) => polyflake::Number::from(0_u64),
    };
    let text = PublicIdKey::generate(number)?.to_text();
    output::print(&Zeroizing::new(format!("{}\n", text.as_str())))
}

impl With {
    fn run(&self, turn: Turn, given: &[String]) -> Result<(), Failure> {
        let keys = match &self.keys {
            Some(file) => keys_in(file)?,
            None => Zeroizing::new(std::env::var("POLYFLAKE_PUBLIC_KEYS").map_err(|_| {
                Failure::Usage(
                    "no keys are given: name a file with --keys, or set POLYFLAKE_PUBLIC_KEYS".into(),
                )
            })?),
        };
        let ids = PublicIds::from_texts(&[keys.as_str()], &self.prefix)?;
        drop(keys);
        let delimiter = delimiter(&self.delimiter)?;
        let mut writer = Writer::new(ids, turn, delimiter);
        if !given.is_empty() && given != ["-"] {
            for (text, n) in given.iter().zip(1..) {
                writer.write(bare(text), turn.what(), n)?;
            }
            return writer.end();
        }
        let source = Source::open(self.input.as_deref())?;
        let read = match &self.column {
            Some(column) => source.csv(column, !self.no_header, delimiter, &mut writer),
            None => source.lines(&mut writer),
        };
        // Print everything before the error first.
        if read.is_err() {
            writer.flush()?;
            return read;
        }
        writer.end()
    }
}

/// Reads the keys from a file, as text.
fn keys_in(file: &Path) -> Result<Zeroizing<String>, Failure> {
    if file.file_name().and_then(OsStr::to_str).is_some_and(|name| name.starts_with("pfk_")) {
        return Err(Failure::Usage(
            "--keys takes a file, not a key: other users of the host can see a command line".into(),
        ));
    }
    let keys = std::fs::read_to_string(file).map_err(|error| Failure::io(file.display(), &error))?;
    if let Some(warning) = warning_of_open(file) {
        complain("open", &warning);
    }
    Ok(Zeroizing::new(keys))
}
