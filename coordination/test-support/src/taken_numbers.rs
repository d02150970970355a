//! All the numbers that a test's processes took.

use std::collections::HashMap;
use std::fs;

use crate::journals::Journals;

/// All the numbers in a test's journals. A process that was killed may have taken numbers it could not record.
pub struct TakenNumbers {
    /// Each thread's numbers, by journal and thread, in the order they were taken.
    threads: HashMap<(String, u64), Vec<u64>>,
    all: Vec<u64>,
}

/// Returns the numbers from a line such as `numbers 3 101 102`, and the thread that took them, which is 3 here.
pub fn numbers_of(line: &str) -> Option<(u64, Vec<u64>)> {
    let mut words = line.strip_prefix("numbers ")?.split(' ').map(|word| word.parse().unwrap());
    Some((words.next()?, words.collect()))
}

impl TakenNumbers {
    /// Reads the journals. Only complete lines count.
    pub fn of(journals: &Journals) -> Self {
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
        let mut all: Vec<_> = threads.values().flatten().copied().collect();
        // There are millions of numbers, and rustc would reuse `sort_unstable` from another crate, where it is not
        // optimized.
        all.sort_unstable_by(Ord::cmp);
        Self { threads, all }
    }

    /// Returns all numbers, sorted.
    pub fn all(&self) -> &[u64] {
        &self.all
    }

    /// Returns the numbers that were taken more than once.
    pub fn repeated(&self) -> Vec<u64> {
        let mut repeated: Vec<_> =
            self.all.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect();
        repeated.dedup();
        repeated
    }

    /// Checks that no number was taken twice, and that there are at least `at_least` numbers.
    pub fn unique(&self, at_least: usize) -> &Self {
        let (count, repeated) = (self.all.len(), self.repeated());
        if let Some(&first) = repeated.first() {
            let whose: Vec<_> =
                self.threads.iter().filter(|(_, all)| all.contains(&first)).map(|(whose, _)| whose).collect();
            panic!("{} of {count} numbers are repeated: {first}, by {whose:?}", repeated.len());
        }
        assert!(count >= at_least, "only {count} numbers");
        self
    }

    /// Checks that each thread's numbers increase.
    pub fn increasing(&self) -> &Self {
        for (whose, numbers) in &self.threads {
            let mut pairs = numbers.iter().zip(numbers.iter().skip(1));
            if let Some((before, after)) = pairs.find(|(before, after)| before >= after) {
                panic!("{whose:?} took {after} after {before}");
            }
        }
        self
    }

    /// Returns how many of the numbers up to `last` are not in any journal, and the length of the longest run of such
    /// numbers.
    pub fn missing(&self, last: u64) -> (u64, u64) {
        let (mut missing, mut longest, mut next) = (0, 0, 1);
        for number in self.all.iter().copied().chain([last + 1]) {
            assert!(number <= last + 1, "{number} was never handed out by the store, which is at {last}");
            let gap = number.saturating_sub(next);
            (missing, longest, next) = (missing + gap, longest.max(gap), number + 1);
        }
        (missing, longest)
    }
}
