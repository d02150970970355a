//! `polyflake uuid` and `polyflake object-id`: IDs that are not Snowflakes and need no node.

use std::io::Write as _;

use ::uuid::Uuid as Id;
use clap::{Args, ValueEnum};
use polyflake::Number;

use crate::failure::Failure;
use crate::object_id::{self, ObjectIds};
use crate::output::Lines;
use crate::when;

/// Generate UUIDs, one per line
#[derive(Debug, Args)]
// Here, `--version` means the UUID's version.
#[command(disable_version_flag = true)]
pub(crate) struct Uuid {
    /// The version: 7 sorts by time, 4 is random
    #[arg(id = "uuid-version", long = "version", value_name = "VERSION", default_value = "7")]
    version: Version,
    #[command(flatten)]
    many: Many,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Version {
    #[value(name = "4")]
    Random,
    #[value(name = "7")]
    Time,
}

#[derive(Debug, Args)]
#[command(about = "Generate MongoDB ObjectIds, one per line")]
pub(crate) struct ObjectId {
    #[command(flatten)]
    many: Many,
}

#[derive(Debug, Args)]
struct Many {
    /// How many
    #[arg(short, long, value_name = "N", default_value = "1", allow_negative_numbers = true)]
    number: String,
}

impl Uuid {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let new: fn() -> Id = match self.version {
            Version::Random => Id::new_v4,
            Version::Time => Id::now_v7,
        };
        self.many.print(|| new().to_string())
    }
}

impl ObjectId {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let ids = ObjectIds::new().map_err(|error| Failure::Io(format!("random bytes: {error}")))?;
        self.many.print(|| object_id::text(ids.next(when::now_ms() / 1000)))
    }
}

impl Many {
    fn print(&self, mut next: impl FnMut() -> String) -> Result<(), Failure> {
        let number = Number::parse(&self.number).in_range("number", 0, u64::MAX)?;
        let mut lines = Lines::new();
        for _ in 0..number {
            // Writing to a string in memory cannot fail.
            let _ = writeln!(lines.line(), "{}", next());
            lines.done()?;
        }
        lines.flush()
    }
}
