//! A process that takes numbers from a counter and records them.

use std::io::BufRead;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use polyflake::{Error, ErrorCode};
use polyflake_coordination::{Counter, CounterOptions};

use crate::journals::{Holder, Journal, Journals, Mark};
use crate::taken_numbers::numbers_of;

/// How many numbers a thread takes at a time, before it records them.
pub(crate) const AT_A_TIME: u64 = 20;

/// Creates options from a counter's name and lines such as `step=100`. On a busy machine, a store may take seconds to
/// answer, so calls wait for a minute unless a test says otherwise.
pub(crate) fn options(settings: &str) -> CounterOptions {
    let (name, settings) = settings.split_once('\n').unwrap_or((settings, ""));
    settings.lines().fold(CounterOptions::new(name).max_wait_ms(60_000_u64), |options, line| {
        let (option, value) = line.split_once('=').unwrap();
        options.set(option, value)
    })
}

/// Returns settings in the form that [`options`] reads.
pub(crate) fn settings(name: &str, stores: &[&str], more: &[&str]) -> String {
    let stores = stores.iter().map(|store| format!("\nstore={store}"));
    let more = more.iter().map(|setting| format!("\n{setting}"));
    name.to_owned() + &stores.chain(more).collect::<String>()
}

/// Takes up to [`AT_A_TIME`] numbers, in one of four ways.
fn take_some(counter: &Counter, way: u64, to: &mut Vec<u64>) -> Result<(), Error> {
    match way % 4 {
        0 => (0..AT_A_TIME).try_for_each(|_| counter.next_id().map(|number| to.push(number))),
        1 => counter.next_ids(AT_A_TIME).map(|numbers| to.extend(numbers)),
        2 => counter.next_block(AT_A_TIME).map(|first| to.extend(first..first + AT_A_TIME)),
        _ => (0..AT_A_TIME).try_for_each(|_| match counter.try_next_id() {
            Ok(number) => {
                to.push(number);
                Ok(())
            }
            // This method does not wait.
            Err(error) if error.code() == ErrorCode::CounterUnavailable => Ok(()),
            Err(error) => Err(error),
        }),
    }
}

fn take(counter: &Counter, count: u64, journal: &Journal) -> Result<(), Error> {
    let mut taken = Vec::new();
    let result = (0..count).try_for_each(|_| counter.next_id().map(|number| taken.push(number)));
    journal.numbers(99, &taken);
    result
}

/// Takes numbers, pausing each time, until the counter is closed. With several stores, there are no blocks.
pub(crate) fn stream(counter: &Counter, journal: &Journal, way: u64, pause: Duration) {
    let mut last_error = None;
    loop {
        let mut taken = Vec::new();
        let result = take_some(counter, way, &mut taken);
        journal.numbers(way, &taken);
        match result {
            Ok(()) => last_error = None,
            Err(error) if error.code() == ErrorCode::Closed => return,
            Err(error) => {
                if last_error.replace(error.code()) != Some(error.code()) {
                    journal.error("error", &error);
                }
            }
        }
        thread::sleep(pause);
    }
}

/// Opens a counter, and obeys the commands on its standard input, answering each unless noted otherwise:
/// - `threads N`: takes numbers in N threads from now on. No answer.
/// - `take N`: takes N numbers.
/// - `take_briefly N`: takes N numbers, but waits no longer than half a second for any of them.
/// - `raise N`, `peek`, `in_hand`, `remove`, `close`.
/// - `exit`: exits without closing, as at the end of that input. No answer.
#[test]
#[ignore = "the other tests start it"]
fn a_taker() {
    let Some((journal, settings)) = Journal::of_this_process() else { return };
    let counter = match options(&settings).open() {
        Ok(counter) => Arc::new(counter),
        Err(error) => return journal.error("refused", &error),
    };
    journal.write("open");
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let (command, number) = line.split_once(' ').unwrap_or((&line, "0"));
        let number: u64 = number.parse().unwrap();
        let done = match command {
            "threads" => {
                for thread in 0..number {
                    let (counter, journal) = (Arc::clone(&counter), journal.clone());
                    thread::spawn(move || stream(&counter, &journal, thread, Duration::from_millis(20)));
                }
                continue;
            }
            "take" => take(&counter, number, &journal),
            // This Counter shares the numbers in hand.
            "take_briefly" => options(&settings)
                .max_wait_ms(500_u64)
                .open()
                .and_then(|brief| take(&brief, number, &journal)),
            "raise" => counter.raise(number),
            "peek" => counter.peek().map(|number| journal.write(&format!("last {number}"))),
            "in_hand" => counter.stats().map(|stats| journal.write(&format!("in_hand {}", stats.in_hand))),
            "remove" => counter.remove().map(|was_there| assert!(was_there)),
            "close" => {
                counter.close();
                Ok(())
            }
            "exit" => return,
            _ => panic!("{line}"),
        };
        match done {
            Ok(()) => journal.write(&format!("done {line}")),
            Err(error) => journal.error("error", &error),
        }
    }
}

// In the test ---------------------------------------------------------------------------------------------------------

/// A process that takes numbers from a counter.
pub(crate) struct Taker(Holder);

impl Deref for Taker {
    type Target = Holder;

    fn deref(&self) -> &Holder {
        &self.0
    }
}

impl DerefMut for Taker {
    fn deref_mut(&mut self) -> &mut Holder {
        &mut self.0
    }
}

/// Starts a process that opens a counter, without waiting until it is open.
pub(crate) fn begin(journals: &Journals, settings: &str) -> Taker {
    Taker(journals.start_with(settings, "taker::a_taker", &[]))
}

/// Starts a process, and waits until it has opened the counter.
pub(crate) fn start(journals: &Journals, settings: &str) -> Taker {
    let mut taker = begin(journals, settings);
    taker.wait_for(Holder::start(), "open");
    taker
}

impl Taker {
    /// Tells the process to do something, and waits until that has succeeded or failed.
    fn ask(&mut self, command: &str) -> (Result<(), String>, Mark) {
        let mark = self.mark();
        self.tell(command);
        let done = format!("done {command}");
        let result = self.wait_until(mark, &done, |lines| {
            lines.iter().find_map(|line| match line.strip_prefix("error ") {
                Some(error) => Some(Err(error.to_owned())),
                None => (*line == done).then_some(Ok(())),
            })
        });
        (result, mark)
    }

    /// Tells the process to do something, which must succeed.
    pub(crate) fn does(&mut self, command: &str) {
        let (result, _) = self.ask(command);
        assert_eq!(result, Ok(()), "{command}: {}", self.text());
    }

    /// Tells the process to do something, which must fail, and returns the error.
    pub(crate) fn fails(&mut self, command: &str) -> String {
        let (result, _) = self.ask(command);
        result.expect_err(command)
    }

    /// Takes `count` numbers.
    pub(crate) fn take(&mut self, count: usize) -> Vec<u64> {
        let (result, mark) = self.ask(&format!("take {count}"));
        let numbers = self.numbers(mark);
        assert_eq!((result, numbers.len()), (Ok(()), count), "{}", self.text());
        numbers
    }

    /// Takes numbers until the counter refuses to return more, and returns the error.
    pub(crate) fn take_until_refused(&mut self, count: usize) -> String {
        self.fails(&format!("take {count}"))
    }

    /// Takes numbers until a call times out after half a second, and returns the error.
    pub(crate) fn take_until_timeout(&mut self, count: usize) -> String {
        self.fails(&format!("take_briefly {count}"))
    }

    /// Returns the numbers that the process has taken since a mark.
    pub(crate) fn numbers(&self, from: Mark) -> Vec<u64> {
        self.lines()[from.line()..].iter().filter_map(|line| Some(numbers_of(line)?.1)).flatten().collect()
    }

    /// Waits until the process has taken `count` numbers since a mark.
    pub(crate) fn wait_for_numbers(&mut self, from: Mark, count: usize) {
        self.wait_until(from, &format!("{count} numbers"), |lines| {
            let taken = lines.iter().filter_map(|line| numbers_of(line)).map(|(_, numbers)| numbers.len());
            (taken.sum::<usize>() >= count).then_some(())
        });
    }

    /// Returns the highest number that the store has handed out.
    pub(crate) fn peek(&mut self) -> u64 {
        self.number("peek", "last ")
    }

    /// Returns how many fetched numbers the process has not taken yet.
    pub(crate) fn in_hand(&mut self) -> usize {
        usize::try_from(self.number("in_hand", "in_hand ")).unwrap()
    }

    fn number(&mut self, command: &str, before: &str) -> u64 {
        let (result, mark) = self.ask(command);
        assert_eq!(result, Ok(()));
        let (number, _) = self.wait_for(mark, before);
        number.parse().unwrap()
    }

    /// Returns the errors from the process's calls.
    pub(crate) fn errors(&self) -> Vec<String> {
        self.lines().into_iter().filter(|line| line.starts_with("error ")).collect()
    }

    /// Waits until the process has opened the counter, or returns the reason it could not.
    pub(crate) fn opened(&mut self) -> Result<(), String> {
        self.wait_until(Holder::start(), "outcome", |lines| {
            lines.iter().find_map(|line| match line.strip_prefix("refused ") {
                Some(error) => Some(Err(error.to_owned())),
                None => (line == "open").then_some(Ok(())),
            })
        })
    }

    /// Returns the reason the process could not open the counter.
    pub(crate) fn why_refused(&mut self) -> String {
        self.opened().expect_err("it opened the counter")
    }

    /// Closes the counter, and makes the process exit.
    pub(crate) fn finish(&mut self) {
        self.does("close");
        self.tell("exit");
        assert!(self.wait().success(), "{}", self.text());
    }
}
