//! ZooKeeper, by a small client of our own.
//!
//! Each record is a znode below `/polyflake/NAMESPACE/`. A change is one transaction that checks the version
//! of the guard and sets the record. Nothing is ephemeral: expiry is in the record, so that a holder whose lease ran out reads like in
//! every other store. The time is the leader's, from the `mtime` of what was written.
//!
//! A server may read what is old by now. So the reads that an answer is based on come after a write on the same session,
//! of `/polyflake` itself: it tells the time, a majority has it, and what the session reads then is at least as new.
//! They are not at one instant, but in order: the guard first. Records that are changed later are found by the transaction that
//! would change them.

mod client;
mod jute;
mod records;
#[cfg(test)]
mod tests;

use self::client::{Client, Conflict};
use self::jute::{Answer, Op};
use crate::store::StoreError;
use crate::url::Address;

/// It loses nothing that it acknowledged, so there is one life of it.
const INCARNATION: &str = "zookeeper";

/// How often a transaction is tried whose znodes others change at the same time.
const ROUNDS: usize = 8;

/// Leases, counters and sequences in ZooKeeper.
#[derive(Debug)]
pub struct ZookeeperStore {
    client: Client,
    /// The chroot: of all paths the first part.
    chroot: String,
}

/// What is found after a write that makes reads fresh.
struct Fresh {
    now_ms: u64,
    answers: Vec<Result<Answer, Conflict>>,
}

impl ZookeeperStore {
    /// Connects at the first call.
    ///
    /// # Errors
    ///
    /// A user's name with a colon.
    pub fn new(address: &Address) -> Result<Self, StoreError> {
        let client = Client::new(address);
        if address.user().is_some_and(|it| it.contains(':')) {
            return Err(client.refused("a user's name has no colon"));
        }
        let chroot = match address.path() {
            path if path.is_empty() => path,
            path => format!("/{path}"),
        };
        Ok(Self { client, chroot })
    }

    fn top(&self) -> String {
        format!("{}/polyflake", self.chroot)
    }

    fn create(&self, path: &str, data: &str) -> Op {
        Op::Create(path.into(), data.into(), self.client.access())
    }

    /// Reads what is as new as this call.
    async fn read(&mut self, reads: &[Op]) -> Result<Fresh, StoreError> {
        let top = self.top();
        let mut ops = vec![Op::Set(top.clone(), String::new(), None)];
        ops.extend_from_slice(reads);
        for _ in 0..ROUNDS {
            let mut answers = self.client.calls(&ops).await?.into_iter();
            if let Some(Ok(Answer::Stat(stat))) = answers.next() {
                let answers = answers.collect();
                return Ok(Fresh { now_ms: stat.mtime_ms, answers });
            }
            // Nothing of ours is there, and nothing will be left.
            let set = Op::Set(top.clone(), String::new(), None);
            let ops = [self.create(&top, ""), set, Op::Delete(top.clone(), None)];
            match self.client.multi(&ops).await?.as_deref() {
                Ok([_, Answer::Stat(stat), _]) => {
                    let answers = reads.iter().map(|_| Err(Conflict::Absent)).collect();
                    return Ok(Fresh { now_ms: stat.mtime_ms, answers });
                }
                Err(Conflict::Absent) => return Err(self.no_chroot()),
                // Others made it.
                _ => {}
            }
        }
        Err(self.client.unreachable("others make and delete its znodes all the time"))
    }

    fn no_chroot(&self) -> StoreError {
        let chroot = &self.chroot;
        let ends = chroot.match_indices('/').map(|(at, _)| at).skip(1).chain([chroot.len()]);
        let create = |path: &str| {
            if path.contains(' ') { format!("`create \"{path}\"`") } else { format!("`create {path}`") }
        };
        let all: Vec<_> = ends.filter_map(|end| chroot.get(..end)).map(create).collect();
        let advice = match &*all {
            [one] => format!("make it in zkCli.sh with {one}"),
            all => format!("make what is missing of it in zkCli.sh, in this order: {}", all.join(", ")),
        };
        self.client.refused(&format!("there is no {chroot}: {advice}"))
    }
}

/// What a znode has, and its version.
type Found = (Vec<u8>, i32);

/// `None`: it is not there.
fn found(answers: &mut impl Iterator<Item = Result<Answer, Conflict>>) -> Option<Found> {
    match answers.next() {
        Some(Ok(Answer::Data(data, stat))) => Some((data, stat.version)),
        _ => None,
    }
}
