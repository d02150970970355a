//! The `polyflake` command with a custom kind of generator: order numbers with a prefix and a check digit.
//!
//!     custom-generator serve --config config.toml
//!
//! where the file has
//!
//!     [generators.orders]
//!     kind = "prefixed"
//!     prefix = "DE-"

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};

use polyflake_cli::serve::{Error, Generator, Ids, Made, Options, Registry, TextId};

/// A real generator would keep its count in a store, for example with `polyflake_coordination::Counter`.
struct Prefixed {
    prefix: String,
    last: AtomicU64,
}

impl Prefixed {
    fn make(options: &Options) -> Result<Made, Error> {
        for (name, _) in options.all() {
            if name != "prefix" {
                return Err(Error::option(name, "there is no such option; there is prefix"));
            }
        }
        let prefix = options.get("prefix")?.unwrap_or_default().to_owned();
        if prefix.len() > 8 {
            return Err(Error::option("prefix", "it takes at most 8 characters"));
        }
        Ok(Made::new(move || Ok(Box::new(Self { prefix, last: AtomicU64::new(0) }))))
    }

    fn next(&self) -> TextId {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let text = format!("{}{number}{}", self.prefix, number * 7 % 10);
        TextId { bytes: number.to_be_bytes().to_vec(), text }
    }
}

impl Generator for Prefixed {
    fn ids(&self, n: usize) -> Result<Ids, Error> {
        Ok(Ids::Texts((0..n).map(|_| self.next()).collect()))
    }

    /// Never waits.
    fn try_ids(&self, n: usize) -> Result<Ids, Error> {
        self.ids(n)
    }
}

fn main() -> ExitCode {
    let mut registry = Registry::default();
    registry.add("prefixed", Prefixed::make);
    polyflake_cli::main_with(registry)
}
