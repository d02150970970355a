//! Judges the records once everything is over. The records are only compared with each other, so the result does not
//! depend on how fast the machine was.

use std::collections::HashMap;

/// The result of one call, and when the call began and ended, on a clock that all processes share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) thread: u64,
    pub(crate) begun: i64,
    pub(crate) ended: i64,
    pub(crate) got: Got,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Got {
    /// IDs, with the bound and the number of times the lease had been lost, both before and after the call.
    Ids {
        bounds: (u64, u64),
        losses: (u64, u64),
        ids: Vec<u64>,
    },
    Numbers(Vec<u64>),
    /// Keys, each with its number.
    Keys(Vec<(u64, u64)>),
    Error(String),
}

/// One process, from its first call to its exit.
#[derive(Debug, Clone, Default)]
pub(crate) struct Process {
    pub(crate) calls: Vec<Call>,
    /// Threads whose calls have not returned.
    pub(crate) waiting: Vec<u64>,
    pub(crate) is_killed: bool,
}

/// A history's promises, beyond the rules that always hold.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Promise {
    /// The counter's last number, and how many of the numbers up to it may be missing.
    pub(crate) skipped: Option<(u64, u64)>,
    /// Whether the counter has several stores, so that its numbers are unique but not ordered.
    pub(crate) is_unordered: bool,
}

/// The counts of IDs and numbers issued.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) ids: usize,
    pub(crate) numbers: usize,
    pub(crate) keys: usize,
}

/// Returns an ID's node and time.
pub(crate) fn node_and_ms(id: u64) -> (u64, u64) {
    let parts = polyflake::Layout::default().decode(id).unwrap();
    (parts.node(), parts.timestamp_ms())
}

pub(crate) fn check(all: &[Process], promise: Promise) -> Result<Counts, String> {
    waits_ended(all)?;
    Ok(Counts { ids: ids(all)?, numbers: numbers(all, promise)?, keys: keys(all)? })
}

/// Checks that no call is still waiting, except in a process that was killed.
fn waits_ended(all: &[Process]) -> Result<(), String> {
    for (at, process) in all.iter().enumerate() {
        if !process.is_killed && !process.waiting.is_empty() {
            return Err(format!("process {at}: threads {:?} still wait", process.waiting));
        }
    }
    Ok(())
}

/// Checks that each thread's values increase.
fn increasing(all: &[Process], of: impl Fn(&Got) -> Vec<u64>) -> Result<(), String> {
    for (at, process) in all.iter().enumerate() {
        let mut before: HashMap<u64, u64> = HashMap::new();
        for call in &process.calls {
            for value in of(&call.got) {
                match before.insert(call.thread, value) {
                    Some(last) if last >= value => {
                        return Err(format!("process {at}, thread {}: {value} after {last}", call.thread));
                    }
                    _ => {}
                }
            }
        }
    }
    Ok(())
}

/// Checks that no value occurs twice. Returns the sorted values, each with the process that issued it.
fn unique(all: &[Process], of: impl Fn(&Got) -> Vec<u64>) -> Result<Vec<(u64, usize)>, String> {
    let calls =
        all.iter().enumerate().flat_map(|(at, process)| process.calls.iter().map(move |call| (at, call)));
    let mut values: Vec<_> =
        calls.flat_map(|(at, call)| of(&call.got).into_iter().map(move |value| (value, at))).collect();
    values.sort_unstable();
    match values.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some(pair) => {
            Err(format!("{} is given twice, to processes {} and {}", pair[0].0, pair[0].1, pair[1].1))
        }
        None => Ok(values),
    }
}

fn ids(all: &[Process]) -> Result<usize, String> {
    let of = |got: &Got| if let Got::Ids { ids, .. } = got { ids.clone() } else { Vec::new() };
    let values = unique(all, of)?;
    // From one lease to the next, the node may change within a tick, so each node's IDs are compared separately.
    for node in values.iter().map(|&(id, _)| node_and_ms(id).0).collect::<std::collections::BTreeSet<_>>() {
        increasing(all, |got| of(got).into_iter().filter(|&id| node_and_ms(id).0 == node).collect())?;
    }
    // For each node, its IDs and the processes that issued them. A tenure runs from the first to the last ID
    // of a process between two losses of its lease.
    let mut nodes: HashMap<u64, Vec<(u64, usize)>> = HashMap::new();
    for &(id, at) in &values {
        nodes.entry(node_and_ms(id).0).or_default().push((id, at));
    }
    let mut tenures: HashMap<(u64, usize, u64), (u64, u64)> = HashMap::new();
    for (at, process) in all.iter().enumerate() {
        for call in &process.calls {
            let Got::Ids { bounds, losses, ids } = &call.got else { continue };
            for &id in ids {
                let (node, ms) = node_and_ms(id);
                // A bound is only ever cut to a time that is later than every ID issued.
                let bound = bounds.0.max(bounds.1);
                if ms >= bound {
                    return Err(format!("process {at}: {id} is of {ms}, beyond the bound {bound}"));
                }
                // The lease may have been lost during the call.
                if losses.0 == losses.1 {
                    let tenure = tenures.entry((node, at, losses.0)).or_insert((id, id));
                    *tenure = (tenure.0.min(id), tenure.1.max(id));
                }
            }
        }
    }
    for ((node, owner, _), (first, last)) in tenures {
        let of_others = nodes[&node].iter().find(|&&(id, at)| at != owner && (first..last).contains(&id));
        if let Some((id, at)) = of_others {
            return Err(format!("process {at} issued {id} while process {owner} had node {node}"));
        }
    }
    Ok(values.len())
}

fn numbers(all: &[Process], promise: Promise) -> Result<usize, String> {
    let of = |got: &Got| if let Got::Numbers(numbers) = got { numbers.clone() } else { Vec::new() };
    let values = unique(all, of)?;
    if !promise.is_unordered {
        increasing(all, of)?;
    }
    if let Some((last, most)) = promise.skipped {
        if let Some((beyond, at)) = values.last().filter(|(number, _)| *number > last) {
            return Err(format!("process {at} has {beyond}, and the store gave none above {last}"));
        }
        let missing = last - values.len() as u64;
        if missing > most {
            return Err(format!("{missing} of {last} numbers are missing, {most} may be"));
        }
    }
    Ok(values.len())
}

/// Checks that there is one owner at a time: a number requested after another was received is higher, whichever owner
/// issued it.
fn keys(all: &[Process]) -> Result<usize, String> {
    let mut given: HashMap<u64, Vec<(u64, i64, i64, usize)>> = HashMap::new();
    for (at, process) in all.iter().enumerate() {
        for call in &process.calls {
            let Got::Keys(keys) = &call.got else { continue };
            for &(key, number) in keys {
                given.entry(key).or_default().push((number, call.begun, call.ended, at));
            }
        }
    }
    for (key, numbers) in &mut given {
        numbers.sort_unstable();
        if let Some(pair) = numbers.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(format!("key {key}: {} is given twice: {pair:?}", pair[0].0));
        }
        let mut first_end = i64::MAX;
        for &(number, begun, ended, at) in numbers.iter().rev() {
            if first_end < begun {
                return Err(format!("key {key}: process {at} gave {number} after a higher one"));
            }
            first_end = first_end.min(ended);
        }
    }
    Ok(given.values().map(Vec::len).sum())
}

/// For each rule, a forged record fails the check.
#[cfg(test)]
mod tests {
    use polyflake::Snowflake;

    use super::{Call, Counts, Got, Process, Promise, check, node_and_ms};

    fn call(begun: i64, got: Got) -> Call {
        Call { thread: 0, begun, ended: begun + 1, got }
    }

    fn process(got: Vec<Got>) -> Process {
        let calls = (0..).step_by(10).zip(got).map(|(begun, got)| call(begun, got)).collect();
        Process { calls, ..Process::default() }
    }

    fn fails(all: &[Process], says: &str) {
        let error = check(all, Promise::default()).unwrap_err();
        assert!(error.contains(says), "{error}");
    }

    fn some_ids() -> Vec<u64> {
        let ids = Snowflake::builder().node(5_u64).build().unwrap();
        (0..4).map(|_| ids.next_id().unwrap()).collect()
    }

    fn ids(ids: &[u64]) -> Got {
        Got::Ids { bounds: (0, u64::MAX), losses: (0, 0), ids: ids.to_vec() }
    }

    #[test]
    fn a_good_record() {
        let issued = some_ids();
        let all = [
            process(vec![ids(&issued[..2]), Got::Numbers(vec![1, 3]), Got::Keys(vec![(7, 1)])]),
            process(vec![ids(&issued[2..]), Got::Numbers(vec![2]), Got::Keys(vec![(8, 1)])]),
        ];
        assert_eq!(
            check(&all, Promise { skipped: Some((4, 1)), is_unordered: false }),
            Ok(Counts { ids: 4, numbers: 3, keys: 2 })
        );
    }

    #[test]
    fn what_is_given_twice() {
        let issued = some_ids();
        fails(&[process(vec![ids(&issued)]), process(vec![ids(&issued[3..])])], "is given twice");
        fails(
            &[process(vec![Got::Numbers(vec![4])]), process(vec![Got::Numbers(vec![4])])],
            "4 is given twice",
        );
        fails(&[process(vec![Got::Keys(vec![(1, 4), (1, 4)])])], "key 1: 4 is given twice");
    }

    #[test]
    fn what_goes_down() {
        let issued = some_ids();
        fails(&[process(vec![ids(&[issued[1], issued[0]])])], " after ");
        fails(&[process(vec![Got::Numbers(vec![5]), Got::Numbers(vec![4])])], "4 after 5");
    }

    #[test]
    fn two_owners() {
        let issued = some_ids();
        let all = [process(vec![ids(&[issued[0], issued[2]])]), process(vec![ids(&[issued[1]])])];
        fails(&all, "while process 0 had node 5");
        let all = [
            process(vec![Got::Keys(vec![(1, 9)])]),
            process(vec![Got::Error("lease_lost".into()), Got::Keys(vec![(1, 8)])]),
        ];
        fails(&all, "process 1 gave 8 after a higher one");
    }

    #[test]
    fn beyond_a_bound() {
        let issued = some_ids();
        let bound = node_and_ms(issued[3]).1;
        let got = Got::Ids { bounds: (bound - 1, bound), losses: (0, 0), ids: vec![issued[3]] };
        fails(&[process(vec![got])], "beyond the bound");
    }

    #[test]
    fn too_many_skipped_and_more_than_the_store_gave() {
        let all = [process(vec![Got::Numbers(vec![1, 9])])];
        let says =
            |skipped| check(&all, Promise { skipped: Some(skipped), is_unordered: false }).unwrap_err();
        assert_eq!(says((9, 6)), "7 of 9 numbers are missing, 6 may be");
        assert!(says((8, 100)).contains("has 9, and the store gave none above 8"));
    }

    #[test]
    fn a_wait_without_an_end() {
        let waits = Process { waiting: vec![2], ..Process::default() };
        fails(std::slice::from_ref(&waits), "threads [2] still wait");
        check(&[Process { is_killed: true, ..waits }], Promise::default()).unwrap();
    }
}
