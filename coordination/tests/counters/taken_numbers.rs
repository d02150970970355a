//! What became of all the numbers that the processes of a test took.

use std::collections::HashMap;
use std::fs;

use crate::journals::Journals;

/// All that is in the journals of a test. A process that was killed may have taken numbers that it could not write down.
pub(crate) struct TakenNumbers {
    /// Each thread's, by the journal and the thread, in the order in which they were taken.
    threads: HashMap<(String, u64), Vec<u64>>,
}

/// The numbers of a line such as `numbers 3 101 102`, and the thread that took them, here 3.
pub(crate) fn numbers_of(line: &str) -> Option<(u64, Vec<u64>)> {
    let mut words = line.strip_prefix("numbers ")?.split(' ').map(|word| word.parse().unwrap());
    Some((words.next()?, words.collect()))
}

impl TakenNumbers {
    /// Only whole lines are read.
    pub(crate) fn of(journals: &Journals) -> Self {
        let mut threads: HashMap<_, Vec<u64>> = HashMap::new();
        for path in fs::read_dir(journals.folder()).unwrap().map(|entry| entry.unwrap().path()) {
            if path.extension().is_some_and(|extension| extension == "journal") {
                let text = fs::read_to_string(&path).unwrap();
                let whole = text.rfind('\n').map_or("", |end| &text[..end]);
                for (thread, numbers) in whole.lines().filter_map(numbers_of) {
                    let journal = path.display().to_string();
                    threads.entry((journal, thread)).or_default().extend(numbers);
                }
            }
        }
        Self { threads }
    }

    /// All numbers, sorted.
    pub(crate) fn all(&self) -> Vec<u64> {
        let mut all: Vec<_> = self.threads.values().flatten().copied().collect();
        all.sort_unstable();
        all
    }

    /// Those that were taken more than once.
    pub(crate) fn repeated(&self) -> Vec<u64> {
        let mut repeated: Vec<_> =
            self.all().windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect();
        repeated.dedup();
        repeated
    }

    /// Checks that none was taken twice, and that there are at least this many.
    pub(crate) fn unique(&self, at_least: usize) -> &Self {
        let (count, repeated) = (self.all().len(), self.repeated());
        if let Some(&first) = repeated.first() {
            let whose: Vec<_> =
                self.threads.iter().filter(|(_, all)| all.contains(&first)).map(|(whose, _)| whose).collect();
            panic!("{} of {count} numbers are repeated: {first}, by {whose:?}", repeated.len());
        }
        assert!(count >= at_least, "only {count} numbers");
        self
    }

    /// Checks that those of each thread go up.
    pub(crate) fn increasing(&self) -> &Self {
        for (whose, numbers) in &self.threads {
            let mut pairs = numbers.iter().zip(numbers.iter().skip(1));
            if let Some((before, after)) = pairs.find(|(before, after)| before >= after) {
                panic!("{whose:?} took {after} after {before}");
            }
        }
        self
    }

    /// How many of the numbers up to `last` nobody is known to have, and how many of them follow each other at most.
    pub(crate) fn missing(&self, last: u64) -> (u64, u64) {
        let (mut missing, mut longest, mut next) = (0, 0, 1);
        for number in self.all().into_iter().chain([last + 1]) {
            assert!(number <= last + 1, "{number} was never handed out by the store, which is at {last}");
            let gap = number.saturating_sub(next);
            (missing, longest, next) = (missing + gap, longest.max(gap), number + 1);
        }
        (missing, longest)
    }
}
