//! ZooKeeper, by a small client of our own.
//!
//! Under `/polyflake/NAMESPACE/SPACE/` there are the znode `space` and one for each node, `nodes/N`, both with JSON. A
//! change is one transaction that checks the version of the one and sets the other. Nothing is ephemeral: expiry is in
//! the record, so that a holder whose lease ran out reads like in every other store. The time is the leader's, from the
//! `mtime` of what was written.
//!
//! A server may read what is old by now. So the reads that an answer is based on come after a write on the same session,
//! of `/polyflake` itself: it tells the time, a majority has it, and what the session reads then is at least as new.
//! They are not at one instant, but in order: the record of the space first. Nodes that are changed later are found by
//! the transaction that would change them, and so is a space. A counter is a znode `/polyflake/NAMESPACE/counters/NAME`.

mod client;
mod counters;
mod jute;
mod names;
mod records;
mod sequences;
#[cfg(test)]
mod tests;

use async_trait::async_trait;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use self::client::{Client, Conflict};
use self::jute::{Answer, Op};
use super::record;
use crate::space::Space;
use crate::store::{
    Claim, CounterName, CounterRecord, Listing, NodeRecord, Outcome, Put, Reserve, Reserved, Schema,
    SequencesName, SequencesRecord, SpaceRecord, Store, StoreError,
};
use crate::stores::lists;
use crate::url::Address;

/// It loses nothing that it acknowledged, so there is one life of it.
const INCARNATION: &str = "zookeeper";

/// How often a transaction is tried whose znodes others change at the same time.
const ROUNDS: usize = 8;

/// What the name of a znode cannot have, or `zkCli.sh` does not take.
const ESCAPED: &AsciiSet = &CONTROLS.add(b'/').add(b'%').add(b' ').add(b'"').add(b'\'').add(b'\\');

/// Leases and counters in ZooKeeper.
#[derive(Debug)]
pub struct ZookeeperStore {
    client: Client,
    /// The chroot: of all paths the first part.
    chroot: String,
}

/// What is found after a write that makes reads fresh.
struct Fresh {
    now_ms: u64,
    /// Whether there is nothing of Polyflake.
    is_empty: bool,
    answers: Vec<Result<Answer, Conflict>>,
}

/// The paths of a space.
struct Paths {
    space: String,
    nodes: String,
    /// All above them, from the top.
    above: [String; 3],
}

impl ZookeeperStore {
    /// Connects at the first call.
    ///
    /// # Errors
    ///
    /// A parameter, since this client has none; a user's name with a colon.
    pub fn new(address: &Address) -> Result<Self, StoreError> {
        let client = Client::new(address);
        if !address.parameter_names().is_empty() {
            return Err(client.refused("a parameter that is not known; ZooKeeper has none of its own"));
        }
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

    fn paths(&self, space: &Space) -> Paths {
        let top = self.top();
        let namespace = format!("{top}/{}", name(&space.namespace));
        let base = format!("{namespace}/{}", name(&space.to_string()));
        Paths {
            space: format!("{base}/space"),
            nodes: format!("{base}/nodes"),
            above: [top, namespace, base],
        }
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
                return Ok(Fresh { now_ms: stat.mtime_ms, is_empty: stat.children == 0, answers });
            }
            // Nothing of ours is there, and nothing will be left.
            let set = Op::Set(top.clone(), String::new(), None);
            let ops = [self.create(&top, ""), set, Op::Delete(top.clone(), None)];
            match self.client.multi(&ops).await?.as_deref() {
                Ok([_, Answer::Stat(stat), _]) => {
                    let answers = reads.iter().map(|_| Err(Conflict::Absent)).collect();
                    return Ok(Fresh { now_ms: stat.mtime_ms, is_empty: true, answers });
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
        let path = if chroot.contains(' ') { format!("\"{chroot}\"") } else { chroot.clone() };
        self.client.refused(&format!("there is no {chroot}: make it in zkCli.sh with `create {path}`"))
    }

    fn space(&self, found: Option<Found>) -> Result<Option<(SpaceRecord, i32)>, StoreError> {
        let Some((data, version)) = found else { return Ok(None) };
        let record =
            record::read_space(&String::from_utf8_lossy(&data)).map_err(|e| self.client.refused(&e))?;
        Ok(Some((record, version)))
    }

    fn node(&self, node: u64, found: Option<Found>) -> Result<Option<(NodeRecord, i32)>, StoreError> {
        let Some((data, version)) = found else { return Ok(None) };
        let record = record::read(node, &String::from_utf8_lossy(&data));
        let record = record.ok_or_else(|| self.client.refused("a node's record is not readable"))?;
        Ok(Some((record, version)))
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

/// One component of a path. `.` and `..` are none, and neither is nothing.
fn name(text: &str) -> String {
    match text {
        "" => "%".into(),
        "." | ".." => text.replace('.', "%2E"),
        _ => utf8_percent_encode(text, ESCAPED).to_string(),
    }
}

#[async_trait(?Send)]
impl Store for ZookeeperStore {
    async fn list(&mut self, space: &Space) -> Result<Listing, StoreError> {
        let paths = self.paths(space);
        let reads = [Op::Get(paths.space), Op::Children(paths.nodes.clone())];
        let Fresh { now_ms, is_empty, answers } = self.read(&reads).await?;
        let mut answers = answers.into_iter();
        let record = self.space(found(&mut answers))?.map(|(it, _)| it);
        let mut numbers = Vec::new();
        if let Some(Ok(Answer::Names(names))) = answers.next() {
            let number = |it: &String| it.parse().ok();
            let all: Option<Vec<u64>> = names.iter().map(number).collect();
            numbers = all.ok_or_else(|| self.client.refused("a node's znode has another name"))?;
        }
        let reads: Vec<_> = numbers.iter().map(|it| Op::Get(format!("{}/{it}", paths.nodes))).collect();
        let mut answers = self.client.calls(&reads).await?.into_iter();
        let mut nodes = Vec::with_capacity(numbers.len());
        for number in numbers {
            // It may have been deleted by hand since.
            nodes.extend(self.node(number, found(&mut answers))?.map(|(it, _)| it));
        }
        let is_new = is_empty && record.is_none() && nodes.is_empty();
        Ok(Listing { now_ms, incarnation: INCARNATION.into(), space: record, is_new, nodes })
    }

    async fn put_space(
        &mut self,
        space: &Space,
        expected: Option<&SpaceRecord>,
        new: &SpaceRecord,
    ) -> Result<bool, StoreError> {
        if new.incarnation != INCARNATION {
            return Ok(false);
        }
        let text =
            record::write_space(new).ok_or_else(|| self.client.refused("the record cannot be written"))?;
        let Paths { space, nodes, above } = self.paths(space);
        let mut needed = above.to_vec();
        needed.push(nodes);
        let mut reads = vec![Op::Get(space.clone())];
        reads.extend(needed.iter().cloned().map(Op::Get));
        for _ in 0..ROUNDS {
            let mut answers = self.read(&reads).await?.answers.into_iter();
            let there = self.space(found(&mut answers))?;
            if there.as_ref().map(|(it, _)| it) != expected {
                return Ok(false);
            }
            let missing = needed.iter().zip(answers).filter(|(_, it)| it.is_err());
            let mut ops: Vec<_> = missing.map(|(path, _)| self.create(path, "")).collect();
            ops.push(match there {
                Some((_, version)) => Op::Set(space.clone(), text.clone(), Some(version)),
                None => self.create(&space, &text),
            });
            if self.client.multi(&ops).await?.is_ok() {
                return Ok(true);
            }
        }
        Err(self.client.unreachable("others change the space's record all the time"))
    }

    async fn put_node(
        &mut self,
        space: &Space,
        under: &SpaceRecord,
        expected: Option<&Claim>,
        new: &NodeRecord,
    ) -> Result<Put, StoreError> {
        let text = record::write(new).ok_or_else(|| self.client.refused("the record cannot be written"))?;
        let paths = self.paths(space);
        let node_path = format!("{}/{}", paths.nodes, new.node);
        let reads = [Op::Get(paths.space.clone()), Op::Get(node_path.clone())];
        // The first look may be at what is old: good enough for a change that checks it, and no ground for a refusal.
        let mut now_ms = None;
        let mut answers = self.client.calls(&reads).await?;
        for _ in 0..ROUNDS {
            let mut all = answers.into_iter();
            let there = self.space(found(&mut all))?;
            let node = self.node(new.node, found(&mut all))?;
            let (node, node_version) = node.unzip();
            let version = there.filter(|(it, _)| it == under && it.incarnation == INCARNATION).map(|it| it.1);
            let is_expected = node.as_ref().map(NodeRecord::claim).as_ref() == expected;
            match (version, now_ms) {
                (Some(version), _) if is_expected => {
                    let mut ops = vec![Op::Check(paths.space.clone(), version)];
                    if node.is_none() {
                        ops.push(self.create(&node_path, ""));
                    }
                    let node_version = node_version.unwrap_or_default();
                    ops.push(Op::Set(node_path.clone(), text.clone(), Some(node_version)));
                    if let Ok([.., Answer::Stat(stat)]) = self.client.multi(&ops).await?.as_deref() {
                        return Ok(Put { now_ms: stat.mtime_ms, outcome: Outcome::Written });
                    }
                }
                (Some(_), Some(now_ms)) => return Ok(Put { now_ms, outcome: Outcome::Found(node) }),
                (None, Some(now_ms)) => return Ok(Put { now_ms, outcome: Outcome::OtherSpace }),
                (_, None) => {}
            }
            let fresh = self.read(&reads).await?;
            (answers, now_ms) = (fresh.answers, Some(fresh.now_ms));
        }
        Err(self.client.unreachable("others change the node's record all the time"))
    }

    async fn reserve(&mut self, counter: &CounterName, reserve: &Reserve) -> Result<Reserved, StoreError> {
        self.take(counter, reserve).await
    }

    async fn counter(&mut self, counter: &CounterName) -> Result<Option<CounterRecord>, StoreError> {
        self.look(counter).await
    }

    async fn put_counter(
        &mut self,
        counter: &CounterName,
        expected: Option<&CounterRecord>,
        new: &CounterRecord,
    ) -> Result<bool, StoreError> {
        self.put(counter, expected, new).await
    }

    async fn remove_counter(&mut self, counter: &CounterName) -> Result<bool, StoreError> {
        self.remove(counter).await
    }

    async fn sequences(&mut self, name: &SequencesName) -> Result<Option<SequencesRecord>, StoreError> {
        self.read_sequences(name).await
    }

    async fn put_sequences(
        &mut self,
        name: &SequencesName,
        expected: Option<u64>,
        new: &SequencesRecord,
    ) -> Result<bool, StoreError> {
        self.write_sequences(name, expected, new).await
    }

    async fn spaces(&mut self, namespace: &str) -> Result<Vec<Space>, StoreError> {
        Ok(lists::spaces(namespace, self.names(namespace, "").await?))
    }

    async fn counter_names(&mut self, namespace: &str, _: Schema) -> Result<Vec<String>, StoreError> {
        self.names(namespace, "/counters").await
    }

    fn disconnect(&mut self) {
        self.client.disconnect();
    }
}
