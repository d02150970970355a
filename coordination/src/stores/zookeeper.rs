//! ZooKeeper, through a small client written for Polyflake.
//!
//! Each record is a znode below `/polyflake/NAMESPACE/`. A change is one transaction that checks the version
//! of the guard and sets the record. No znode is ephemeral. The record contains the expiry, so that an
//! expired lease looks the same in every store. The time is the leader's time, taken from the `mtime` of the
//! znode that was written.
//!
//! A server may return stale data. For this reason, each answer is based on reads that follow a write to
//! `/polyflake` itself on the same session. The write returns the time. A majority has the write, so the
//! session then reads data that is at least as recent as the write. The server carries out the reads in
//! order, with the guard first, but not at a single instant. If a record changes after it has been read, the
//! transaction that would then write it detects this.

mod client;
mod jute;
mod records;
#[cfg(test)]
mod tests;

use self::client::{Client, Conflict};
use self::jute::{Answer, Op};
use crate::store::StoreError;
use crate::url::Address;

/// ZooKeeper loses nothing that it has acknowledged, so it has only one incarnation.
const INCARNATION: &str = "zookeeper";

/// The maximum number of times a transaction is attempted while other clients keep changing its znodes.
const ROUNDS: usize = 8;

/// Leases, counters and sequences in ZooKeeper.
#[derive(Debug)]
pub struct ZookeeperStore {
    client: Client,
    /// The chroot, with which all paths begin.
    chroot: String,
}

/// The results of reads that follow a write and are therefore fresh.
struct Fresh {
    now_ms: u64,
    answers: Vec<Result<Answer, Conflict>>,
}

impl ZookeeperStore {
    /// Creates the store. It connects on the first call.
    ///
    /// # Errors
    ///
    /// Fails if the user's name contains a colon.
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

    /// Reads data that is at least as recent as the start of this call.
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
            // None of Polyflake's znodes exists, and this transaction leaves none behind.
            let set = Op::Set(top.clone(), String::new(), None);
            let ops = [self.create(&top, ""), set, Op::Delete(top.clone(), None)];
            match self.client.multi(&ops).await?.as_deref() {
                Ok([_, Answer::Stat(stat), _]) => {
                    let answers = reads.iter().map(|_| Err(Conflict::Absent)).collect();
                    return Ok(Fresh { now_ms: stat.mtime_ms, answers });
                }
                Err(Conflict::Absent) => return Err(self.no_chroot()),
                // Another client created the znode.
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

/// A znode's data, and its version.
type Found = (Vec<u8>, i32);

/// Returns the next answer's znode, or `None` if the znode does not exist.
fn found(answers: &mut impl Iterator<Item = Result<Answer, Conflict>>) -> Option<Found> {
    match answers.next() {
        Some(Ok(Answer::Data(data, stat))) => Some((data, stat.version)),
        _ => None,
    }
}
