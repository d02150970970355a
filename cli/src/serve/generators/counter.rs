//! Counters.

use std::sync::{Mutex, PoisonError};

use polyflake::{ErrorCode, MAX_BATCH};
use polyflake_coordination::{Counter, CounterOptions};

use super::{Generator, Ids, Later, Made, Options};
use crate::serve::error::Error;

/// The last number that a counter can issue.
const END: u64 = i64::MAX as u64;

struct Numbers {
    counter: Counter,
    /// Why the store handed out no numbers when it was last checked.
    trouble: Mutex<Option<String>>,
}

pub(super) fn make(options: &Options) -> Result<Made, Error> {
    let mut builder = CounterOptions::new(options.name());
    builder.check()?;
    let mut has_store = false;
    for (name, values) in options.all() {
        has_store |= name == "store";
        for value in values {
            builder = builder.set(name, value);
        }
        builder.check().map_err(|error| Error::from(error).about_option(name))?;
    }
    if !has_store {
        builder = builder.store(&options.store()?);
    }
    Ok(Made::new(move || Ok(Box::new(Numbers { counter: builder.open()?, trouble: Mutex::default() }))))
}

/// Returns `None` if waiting may help: a call that waits then returns the error, if there is one.
fn without_waiting<T>(result: Result<T, polyflake::Error>) -> Result<Option<T>, Error> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.code() == ErrorCode::CounterUnavailable => Ok(None),
        Err(error) => Err(error.into()),
    }
}

impl Generator for Numbers {
    fn ids(&self, n: usize) -> Result<Ids, Error> {
        let mut ids = vec![0; n];
        self.counter.fill(&mut ids)?;
        Ok(Ids::Numbers(ids))
    }

    fn try_ids(&self, n: usize) -> Result<Ids, Error> {
        let mut ids = vec![0; n];
        let filled = if let [id] = &mut *ids {
            without_waiting(self.counter.try_next_id())?.map(|number| *id = number)
        } else {
            without_waiting(self.counter.try_fill(&mut ids))?
        };
        Ok(Ids::Numbers(if filled.is_some() { ids } else { Vec::new() }))
    }

    fn ids_later(&self, n: usize) -> Option<Later<'_, Ids>> {
        Some(Box::pin(async move {
            let mut ids = vec![0; n];
            self.counter.fill_async(&mut ids).await?;
            Ok(Ids::Numbers(ids))
        }))
    }

    fn block(&self, n: usize) -> Result<u64, Error> {
        if n == 1 {
            return Ok(self.counter.next_id()?);
        }
        Ok(last(self.counter.next_block(n as u64)?, n))
    }

    fn longest_run(&self) -> u64 {
        MAX_BATCH
    }

    fn try_block(&self, n: usize) -> Result<Option<u64>, Error> {
        if n == 1 {
            return without_waiting(self.counter.try_next_id());
        }
        Ok(self.counter.try_next_block(n as u64)?.map(|first| last(first, n)))
    }

    fn block_later(&self, n: usize) -> Option<Later<'_, u64>> {
        Some(Box::pin(async move {
            if n == 1 {
                return Ok(self.counter.next_id_async().await?);
            }
            Ok(last(self.counter.next_block_async(n as u64).await?, n))
        }))
    }

    fn trouble(&self) -> Option<String> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn look(&self) {
        let has_some = self.counter.stats().is_ok_and(|stats| stats.in_hand > 0);
        let trouble = if has_some {
            None
        } else {
            match self.counter.peek() {
                Ok(END) => Some(format!("the counter has reached its end, {END}")),
                Ok(_) => None,
                Err(error) => Some(error.to_string()),
            }
        };
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }

    #[allow(clippy::cast_precision_loss, reason = "for graphs")]
    fn facts(&self) -> Vec<(&'static str, f64)> {
        let Ok(stats) = self.counter.stats() else { return Vec::new() };
        vec![
            ("in_hand", stats.in_hand as f64),
            ("step", stats.step as f64),
            ("segments_total", stats.segments as f64),
            ("skipped_total", stats.skipped as f64),
            ("waits_total", stats.waits as f64),
        ]
    }

    fn close(&self) {
        self.counter.close();
    }
}

const fn last(first: u64, n: usize) -> u64 {
    first.saturating_add(n as u64).saturating_sub(1)
}
