//! Sends the counters' checks for losses in batches, since a process may have hundreds of counters on one
//! store, and must check each of them within seconds.

use core::cell::Cell;
use core::time::Duration;
use std::rc::Rc;

use tokio::sync::oneshot;

use super::stores::{self, Connected, Look};
use crate::counter::protocol::{LOOK_TAKES_MS, NAME, Received, Request};
use crate::lease::Time as _;
use crate::local::Clocks;
use crate::records::Store;
use crate::store::StoreError;
use crate::url::Address;

/// The maximum number of requests in one attempt. Some stores handle them one after the other, and must still
/// answer all of them in time.
const MOST: usize = 32;

/// Clears `is_asking` when the sending task ends, even if it panics, so that the next request starts a new
/// task.
struct Asking<'a>(&'a Cell<bool>);

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

/// Sends a check to a store, together with other counters' checks. The future may be dropped.
pub(super) async fn ask(
    address: &Address,
    store: &Connected,
    request: Request,
) -> Result<Received, StoreError> {
    let (tell, answer) = oneshot::channel();
    store.looks().waiting.borrow_mut().push(Look { request, tell });
    if !store.looks().is_asking.replace(true) {
        let (address, store) = (address.clone(), Rc::clone(store));
        tokio::task::spawn_local(async move {
            let _asking = Asking(&store.looks().is_asking);
            loop {
                // Let the other tasks that are due now add their requests to this batch.
                tokio::task::yield_now().await;
                let some = take(&mut store.looks().waiting.borrow_mut());
                if some.is_empty() {
                    return;
                }
                ask_together(&address, &store, some).await;
            }
        });
    }
    answer.await.unwrap_or_else(|_| Err(StoreError::Unreachable("the look was given up".into())))
}

/// Takes the next batch of requests, either all reads or all writes. Drops requests that nobody is waiting
/// for.
fn take(waiting: &mut Vec<Look>) -> Vec<Look> {
    let is_write = |it: &Look| matches!(it.request, Request::Write(_));
    let (writes, reads): (Vec<_>, Vec<_>) =
        waiting.drain(..).filter(|it| !it.tell.is_closed()).partition(is_write);
    // Writes go first, since a raise must not wait for the next checks.
    let (mut some, others) = if writes.is_empty() { (reads, Vec::new()) } else { (writes, reads) };
    waiting.extend(some.drain(some.len().min(MOST)..));
    waiting.extend(others);
    some
}

async fn ask_together(address: &Address, store: &Connected, some: Vec<Look>) {
    let longest = Duration::from_millis(LOOK_TAKES_MS);
    let carry_out = async |store: &mut dyn Store| carry_out(store, &some).await;
    match stores::limited_to(address.attempt(), longest, address, store, carry_out).await {
        Ok(all) => some.into_iter().zip(all).for_each(|(it, received)| _ = it.tell.send(Ok(received))),
        // The cause may be a single request, for example one that reads an invalid record, so try them one by
        // one.
        Err(StoreError::Refused(_)) if some.len() > 1 => {
            for it in some {
                Box::pin(ask_together(address, store, vec![it])).await;
            }
        }
        Err(error) => some.into_iter().for_each(|it| _ = it.tell.send(Err(error.clone()))),
    }
}

async fn carry_out(store: &mut dyn Store, some: &[Look]) -> Result<Vec<Received>, StoreError> {
    let (mut groups, mut writes) = (Vec::new(), Vec::new());
    for it in some {
        match &it.request {
            Request::Read(group) => groups.push(group.clone()),
            Request::Write(write) => writes.push(write.clone()),
            Request::Add(_) => return Err(StoreError::Refused("a look takes no numbers".into())),
        }
    }
    let found = store.read_each(&groups, NAME).await?;
    let written = store.write_each(&writes).await?;
    let elapsed_ms = Clocks.elapsed_ms();
    let found = found.into_iter().map(|answer| Received::of_read(answer, elapsed_ms));
    let written =
        writes.iter().zip(written).map(|(write, answer)| Received::of_write(write, answer, elapsed_ms));
    Ok(found.chain(written).collect())
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex, PoisonError};

    use async_trait::async_trait;
    use tokio::runtime::Builder;
    use tokio::task::{LocalSet, spawn_local};

    use super::*;
    use crate::records::{Answer, Facts, Group, Kind, MemoryStore, Named, Outcome, Record, Write};

    /// How many requests the store has received, and how it responds to the next one.
    #[derive(Debug, Default)]
    struct Counts {
        reads: Cell<usize>,
        writes: Cell<usize>,
        fails: Cell<bool>,
        panics: Cell<bool>,
    }

    #[derive(Debug)]
    struct Counting(MemoryStore, Arc<Mutex<Counts>>);

    impl Counting {
        fn count(&self, of: impl Fn(&Counts) -> &Cell<usize>) -> Result<(), StoreError> {
            let counts = self.1.lock().unwrap_or_else(PoisonError::into_inner);
            of(&counts).set(of(&counts).get() + 1);
            assert!(!counts.panics.take(), "on purpose");
            if counts.fails.take() { Err(StoreError::Unreachable("away".into())) } else { Ok(()) }
        }
    }

    #[async_trait(?Send)]
    impl Store for Counting {
        async fn read(&mut self, group: &Group, names: Option<&[&str]>) -> Result<Answer<Named>, StoreError> {
            self.0.read(group, names).await
        }

        async fn read_each(
            &mut self,
            groups: &[Group],
            name: &str,
        ) -> Result<Vec<Answer<Option<Record>>>, StoreError> {
            if groups.is_empty() {
                return Ok(Vec::new());
            }
            self.count(|counts| &counts.reads)?;
            self.0.read_each(groups, name).await
        }

        async fn write(&mut self, write: &Write) -> Result<Answer<Outcome>, StoreError> {
            self.0.write(write).await
        }

        async fn write_each(&mut self, writes: &[Write]) -> Result<Vec<Answer<Outcome>>, StoreError> {
            if writes.is_empty() {
                return Ok(Vec::new());
            }
            self.count(|counts| &counts.writes)?;
            self.0.write_each(writes).await
        }

        async fn groups(&mut self, namespace: &str, kind: Kind) -> Result<Vec<String>, StoreError> {
            self.0.groups(namespace, kind).await
        }

        fn facts(&self) -> Facts {
            self.0.facts()
        }

        fn disconnect(&mut self) {}
    }

    fn group(at: u64) -> Group {
        Group { namespace: "n".into(), kind: Kind::Counter, name: at.to_string() }
    }

    fn read(at: u64) -> Request {
        Request::Read(group(at))
    }

    fn write(at: u64) -> Request {
        let new = Record { version: at, number: at, text: String::new() };
        Request::Write(Write { group: group(at), name: NAME.into(), expected: None, guard: None, new })
    }

    #[test]
    fn those_that_are_due_are_asked_together() {
        let counts = Arc::<Mutex<Counts>>::default();
        let store = Connected::new(stores::Connection::of(Box::new(Counting(
            MemoryStore::default(),
            counts.clone(),
        ))));
        let address = Address::parse("redis://host").unwrap();
        let ask = |request| {
            let (address, store) = (address.clone(), Rc::clone(&store));
            spawn_local(async move { ask(&address, &store, request).await })
        };
        let asked = || {
            let counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
            (counts.reads.take(), counts.writes.take())
        };
        let tell = |of: fn(&Counts) -> &Cell<bool>| {
            of(&counts.lock().unwrap_or_else(PoisonError::into_inner)).set(true);
        };
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        LocalSet::new().block_on(&runtime, async {
            // The store receives the writes first, although the reads were requested before them.
            let reads: Vec<_> = (1..=150).map(|at| ask(read(at))).collect();
            let writes: Vec<_> = (1..=150).map(|at| ask(write(at))).collect();
            for (at, (read, write)) in (1..).zip(reads.into_iter().zip(writes)) {
                let (read, write) = (read.await.unwrap().unwrap(), write.await.unwrap().unwrap());
                assert!(write.is_done && !read.is_done);
                assert_eq!((write.record.unwrap().number, read.record.unwrap().number), (at, at));
            }
            assert_eq!(asked(), (150_usize.div_ceil(MOST), 150_usize.div_ceil(MOST)));
            // A request that nobody is waiting for is not sent.
            let gone = ask(read(1));
            let stays = ask(read(2));
            gone.abort();
            assert_eq!(stays.await.unwrap().unwrap().record.unwrap().number, 2);
            // If the store fails, all calls in the batch fail, but later requests are still sent.
            for of in [(|counts| &counts.fails) as fn(&Counts) -> &Cell<bool>, |counts| &counts.panics] {
                tell(of);
                let [one, other] = [1, 2].map(|at| ask(read(at)));
                assert!(matches!(one.await.unwrap(), Err(StoreError::Unreachable(_))));
                assert!(matches!(other.await.unwrap(), Err(StoreError::Unreachable(_))));
                assert_eq!(ask(read(3)).await.unwrap().unwrap().record.unwrap().number, 3);
            }
            assert_eq!(asked(), (5, 0));
        });
    }
}
