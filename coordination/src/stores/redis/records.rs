//! Records in Redis. A group is one hash, `polyflake:{NAMESPACE/KIND/NAME}`, since Redis evicts and expires
//! whole keys. Record `17` has the fields `17/version`, `17/number` and `17/text`.
//!
//! Each call is one script, which reads the server's time and incarnation in the same step.

use std::collections::HashMap;

use async_trait::async_trait;
use redis::{FromRedisValue as _, Value};

use super::connection::Connection;
use super::{RedisStore, Reply};
use crate::records::{Add, Added, Answer, Facts, Group, Kind, Named, Outcome, Record, Store, Write};
use crate::store::StoreError;
use crate::url::Scheme;

/// The beginning of each script. A plain search takes a fraction of the time that a pattern search takes.
/// Scripts keep numbers as strings of digits without leading zeros, since Lua's numbers are exact only up to
/// 2^53.
macro_rules! script {
    ($body:literal) => {
        concat!(
            "
    local function value(text, name)
      local _, last = string.find(text, name, 1, true)
      return last and string.match(text, '^%w+', last + 1)
    end
    local info = redis.call('INFO', 'replication')
    if value(info, 'role:') ~= 'master' then return {'replica'} end
    local life = value(info, 'master_replid:')
    if not life then return {'nameless'} end
    local before = value(info, 'master_replid2:') or '?'
    local replicas = value(info, 'connected_slaves:') or '0'
    local run = value(redis.call('INFO', 'server'), 'run_id:') or ''
    local is_first = ''
    if string.find(before, '^0+$') and value(info, 'repl_backlog_active:') == '1'
      and value(redis.call('INFO', 'stats'), 'total_net_repl_input_bytes:') == '0' then is_first = '1' end
    local time = redis.call('TIME')
    local function answer(status, ...)
      return {status, time[1], time[2], run, life, before, replicas, is_first, ...}
    end
    local function find(name)
      return redis.call('HMGET', KEYS[1], name .. '/version', name .. '/number', name .. '/text')
    end
",
            $body
        )
    };
}

/// Reads the settings for persistence and eviction. They determine whether the group survives a server
/// restart and a shortage of memory.
const CHECK: &str = script!(
    "
    local policy = string.match(redis.call('INFO', 'memory'), 'maxmemory_policy:([%w-]+)')
    local file = string.match(redis.call('INFO', 'persistence'), 'aof_enabled:(%d)')
    return answer('checked', policy or '', file or '')"
);

const READ_ALL: &str = script!("return answer('read', redis.call('HGETALL', KEYS[1]))");

/// Arguments: the names.
const READ: &str = script!(
    "
    local found = {}
    for i, name in ipairs(ARGV) do found[i] = find(name) end
    return answer('read', found)"
);

/// Arguments: the name, the expected version, the guard's name and version, and the new record. The expected
/// version is empty if the record must not exist.
const WRITE: &str = script!(
    "
    local there, guard = find(ARGV[1]), find(ARGV[3])
    local fits = (there[1] or '') == ARGV[2] or there[1] == ARGV[5]
    if not fits or (guard[1] or '') ~= ARGV[4] then return answer('found', there, guard) end
    local name = ARGV[1]
    redis.call('HSET', KEYS[1], name .. '/version', ARGV[5], name .. '/number', ARGV[6], name .. '/text', ARGV[7])
    return answer('written')"
);

/// Arguments: the name, the new version, the text, the lowest and the highest number, and the addend. If the
/// addition has already happened, the script writes the record again, unchanged, so that replicas can confirm
/// it.
const ADD: &str = script!(
    "
    local there, name = find(ARGV[1]), ARGV[1]
    local function is_up_to(a, b) return #a < #b or (#a == #b and a <= b) end
    if there[1] ~= ARGV[2] then
      if not there[1] or not there[2] or there[3] ~= ARGV[3]
        or not is_up_to(ARGV[4], there[2]) or not is_up_to(there[2], ARGV[5]) then
        return answer('found', there)
      end
      redis.call('HINCRBY', KEYS[1], name .. '/number', ARGV[6])
    end
    redis.call('HSET', KEYS[1], name .. '/version', ARGV[2])
    return answer('written', redis.call('HGET', KEYS[1], name .. '/number'))"
);

fn key(group: &Group) -> String {
    format!("polyflake:{{{}/{}/{}}}", group.namespace, group.kind, group.name)
}

/// Returns the group's key in an earlier version of Polyflake.
fn former_key(group: &Group) -> String {
    let Group { namespace, kind, name } = group;
    match kind {
        Kind::Space => format!("polyflake:{{{namespace}/{name}}}:space"),
        Kind::Counter | Kind::Sequences => format!("polyflake:{{{namespace}/{kind}:{name}}}"),
    }
}

/// The maximum number of scripts sent before the first answer is read.
const MOST_AT_ONCE: usize = 64;

/// Returns the arguments of [`WRITE`].
fn texts_of(write: &Write) -> [String; 7] {
    let Write { name, expected, guard, new, .. } = write;
    let text = |version: Option<u64>| version.map(|it| it.to_string()).unwrap_or_default();
    let (guard, under) = guard.as_ref().map_or(("", None), |(name, version)| (&**name, Some(*version)));
    [
        name.clone(),
        text(*expected),
        guard.to_owned(),
        text(under),
        new.version.to_string(),
        new.number.to_string(),
        new.text.clone(),
    ]
}

/// A record's version, number and text, where present.
type Fields = [Option<String>; 3];

/// The error for a record that another program wrote or changed.
struct Unreadable;

fn read_record(fields: Fields) -> Result<Option<Record>, Unreadable> {
    let number =
        |text: &str| text.parse().ok().filter(|&it: &u64| it <= Record::LAST_NUMBER).ok_or(Unreadable);
    match fields {
        [None, ..] => Ok(None),
        [Some(version), Some(at), Some(text)] => {
            Ok(Some(Record { version: number(&version)?, number: number(&at)?, text }))
        }
        _ => Err(Unreadable),
    }
}

fn read_records(value: Value) -> Result<Vec<Option<Record>>, Unreadable> {
    let all: Vec<Vec<Option<String>>> = Vec::from_redis_value(value).map_err(|_| Unreadable)?;
    all.into_iter().map(|fields| read_record(fields.try_into().map_err(|_| Unreadable)?)).collect()
}

/// Reads all fields of a hash. Skips fields that Polyflake did not write.
fn read_hash(value: Value) -> Result<Named, Unreadable> {
    let mut fields: HashMap<String, String> = HashMap::from_redis_value(value).map_err(|_| Unreadable)?;
    let names: Vec<String> =
        fields.keys().filter_map(|it| it.strip_suffix("/version")).map(ToOwned::to_owned).collect();
    let mut take = |name: &str, part| fields.remove(&format!("{name}/{part}"));
    let record = |name: String| {
        let record = read_record(["version", "number", "text"].map(|part| take(&name, part)));
        Ok((name, record?.ok_or(Unreadable)?))
    };
    names.into_iter().map(record).collect()
}

/// Returns the incarnation. It includes whether the server has a second replication ID, as a server that took
/// over has: this distinguishes such a server from one that has none.
fn incarnation(run: &str, life: &str, before: &str) -> String {
    let took_over = if before.bytes().all(|it| it == b'0') { "" } else { TOOK_OVER };
    format!("{run}/{life}{took_over}")
}

const TOOK_OVER: &str = "/took-over";

impl RedisStore {
    async fn ask(
        &mut self,
        group: &Group,
        code: &'static str,
        arguments: Vec<&str>,
    ) -> Result<Answer<Reply>, StoreError> {
        let answer = self.ask_each(&[group], code, vec![arguments]).await?.pop();
        answer.ok_or_else(|| self.refused("its reply is not Redis's"))
    }

    /// Runs a script for each of these groups.
    async fn ask_each(
        &mut self,
        groups: &[&Group],
        code: &'static str,
        arguments: Vec<Vec<&str>>,
    ) -> Result<Vec<Answer<Reply>>, StoreError> {
        let runs: Vec<_> = groups.iter().map(|group| key(group)).zip(arguments).collect();
        let Some((first, _)) = runs.first() else { return Ok(Vec::new()) };
        let (mut connection, is_new) = self.connection(first).await?;
        let is_numbers = groups.iter().any(|group| group.kind != Kind::Space);
        for (key, _) in &runs {
            if is_numbers && !self.address.is_durability_none && !connection.is_checked(key) {
                let checked = self.script(&mut connection, CHECK, &(key.clone(), Vec::new())).await;
                let checked = self.reply(checked.map_err(|e| self.told(&e, is_new))?, is_new)?;
                self.check(&checked)?;
                connection.set_checked();
            }
        }
        let replies = self.scripts(&mut connection, code, &runs).await.map_err(|e| self.told(&e, is_new))?;
        let mut answers = Vec::with_capacity(replies.len());
        for (group, reply) in groups.iter().zip(replies) {
            let reply = self.reply(reply, is_new)?;
            if code == READ || code == READ_ALL {
                self.refuse_former(&mut connection, group, &reply).await?;
            }
            let unreadable = || self.refused("its reply is not Redis's");
            let now_ms = reply.now_ms().ok_or_else(unreadable)?;
            let [_, _, run, life, before, replicas, is_first, ..] = &*reply.texts else {
                return Err(unreadable());
            };
            let incarnation = incarnation(run, life, before);
            if is_first == "1" && !self.first_masters.contains(&incarnation) {
                self.first_masters.push(incarnation.clone());
            }
            let replicas = replicas.parse().unwrap_or(u64::MAX);
            self.replicas = replicas.saturating_sub(self.address.replicas.into());
            answers.push(Answer { now_ms, incarnation, value: reply });
        }
        // A single server holds all groups, and this request comes after all of the writes.
        if answers.iter().any(|answer| answer.value.status == "written") {
            self.confirm(&mut connection).await?;
        }
        self.connection = Some(connection);
        Ok(answers)
    }

    /// Returns true if one server holds everything at this address.
    fn is_one_server(&self) -> bool {
        self.address.scheme() != Scheme::RedisCluster
    }

    /// Refuses a server whose settings could make a counter hand out the same number twice.
    fn check(&self, checked: &Reply) -> Result<(), StoreError> {
        let [.., policy, file] = &*checked.texts else {
            return Err(self.refused("its reply is not Redis's"));
        };
        if policy.starts_with("allkeys") {
            return Err(self.refused(&format!(
                "maxmemory-policy {policy} drops keys that are in use: set noeviction or a volatile policy, \
                 or accept that with durability=none in the address"
            )));
        }
        if file != "1" {
            return Err(self.refused(
                "it has no append-only file, so a restart could lose numbers already handed out: set appendonly yes, \
                 or accept that with durability=none in the address",
            ));
        }
        Ok(())
    }

    /// Refuses a group without records if the earlier version's key for the group exists.
    async fn refuse_former(
        &self,
        connection: &mut Connection,
        group: &Group,
        reply: &Reply,
    ) -> Result<(), StoreError> {
        let is_empty = |it: &Value| matches!(it, Value::Nil) || it.as_sequence().is_some_and(<[_]>::is_empty);
        let [Value::Array(found)] = &*reply.rest else { return Ok(()) };
        if !found.iter().all(|it| it.as_sequence().is_some_and(|it| it.iter().all(is_empty))) {
            return Ok(());
        }
        let former = former_key(group);
        let mut exists = redis::cmd("EXISTS");
        exists.arg(&former);
        let count: u64 = self.send(connection, &former, &exists).await.map_err(|e| self.told(&e, false))?;
        if count > 0 {
            return Err(self.refused(&format!(
                "{former} is a key of an earlier version of Polyflake: stop the processes of that version and \
                 delete the key; give a counter a new name and a start above the key's last number"
            )));
        }
        Ok(())
    }

    fn outcome(&self, group: &Group, mut answer: Answer<Reply>) -> Result<Answer<Outcome>, StoreError> {
        if answer.value.status == "written" {
            return Ok(answer.map(|_| Outcome::Written));
        }
        let found = read_records(Value::Array(core::mem::take(&mut answer.value.rest)));
        let found: Option<[_; 2]> = found.ok().and_then(|it| it.try_into().ok());
        let [record, guard] = found.ok_or_else(|| self.unreadable(group))?;
        Ok(answer.map(|_| Outcome::Found { record, guard }))
    }

    fn unreadable(&self, group: &Group) -> StoreError {
        self.refused(&format!("a record in {} is not readable", key(group)))
    }
}

#[async_trait(?Send)]
impl Store for RedisStore {
    async fn read(&mut self, group: &Group, names: Option<&[&str]>) -> Result<Answer<Named>, StoreError> {
        let (code, arguments) = names.map_or((READ_ALL, Vec::new()), |names| (READ, names.to_vec()));
        let mut answer = self.ask(group, code, arguments).await?;
        let found = answer.value.rest.pop().ok_or(Unreadable).and_then(|value| match names {
            None => read_hash(value),
            Some(names) => {
                let found = names.iter().zip(read_records(value)?);
                Ok(found.filter_map(|(name, record)| Some(((*name).to_owned(), record?))).collect())
            }
        });
        let found = found.map_err(|Unreadable| self.unreadable(group))?;
        Ok(answer.map(|_| found))
    }

    async fn write(&mut self, write: &Write) -> Result<Answer<Outcome>, StoreError> {
        let texts = texts_of(write);
        let answer = self.ask(&write.group, WRITE, texts.iter().map(String::as_str).collect()).await?;
        self.outcome(&write.group, answer)
    }

    async fn read_each(
        &mut self,
        groups: &[Group],
        name: &str,
    ) -> Result<Vec<Answer<Option<Record>>>, StoreError> {
        let mut answers = Vec::with_capacity(groups.len());
        let most = if self.is_one_server() { MOST_AT_ONCE } else { 1 };
        for groups in groups.chunks(most) {
            let groups: Vec<_> = groups.iter().collect();
            let found = self.ask_each(&groups, READ, vec![vec![name]; groups.len()]).await?;
            for (mut answer, group) in found.into_iter().zip(groups) {
                let records = answer.value.rest.pop().ok_or(Unreadable).and_then(read_records);
                let record = records.map_err(|Unreadable| self.unreadable(group))?.pop().flatten();
                answers.push(answer.map(|_| record));
            }
        }
        Ok(answers)
    }

    async fn write_each(&mut self, writes: &[Write]) -> Result<Vec<Answer<Outcome>>, StoreError> {
        let mut answers = Vec::with_capacity(writes.len());
        let most = if self.is_one_server() { MOST_AT_ONCE } else { 1 };
        for writes in writes.chunks(most) {
            let texts: Vec<_> = writes.iter().map(texts_of).collect();
            let arguments = texts.iter().map(|texts| texts.iter().map(String::as_str).collect()).collect();
            let groups: Vec<_> = writes.iter().map(|write| &write.group).collect();
            let found = self.ask_each(&groups, WRITE, arguments).await?;
            for (answer, group) in found.into_iter().zip(groups) {
                answers.push(self.outcome(group, answer)?);
            }
        }
        Ok(answers)
    }

    async fn add(&mut self, add: &Add) -> Result<Answer<Added>, StoreError> {
        let Add { group, name, text, floor, count, limit, version } = add;
        // If the addend alone is too large, no number fits.
        let most = (*limit).min(Record::LAST_NUMBER).checked_sub(*count);
        let (floor, most) = most.map_or((u64::MAX, 0), |most| (*floor, most));
        let [version, floor, most, count] = [*version, floor, most, *count].map(|it| it.to_string());
        let arguments = vec![&**name, &version, text, &floor, &most, &count];
        let mut answer = self.ask(group, ADD, arguments).await?;
        let added = if answer.value.status == "written" {
            answer.value.texts.pop().and_then(|it| it.parse().ok()).map(Added::To)
        } else {
            let found = read_records(Value::Array(core::mem::take(&mut answer.value.rest)));
            found.ok().and_then(|it| it.into_iter().next()).map(Added::Found)
        };
        let added = added.ok_or_else(|| self.unreadable(group))?;
        Ok(answer.map(|_| added))
    }

    async fn groups(&mut self, namespace: &str, kind: Kind) -> Result<Vec<String>, StoreError> {
        Ok(self.names(namespace, &format!("{kind}/"), "}").await?.into_iter().collect())
    }

    fn facts(&self) -> Facts {
        Facts { granularity_ms: 1, can_forget: true, asynchronous_replicas: self.replicas }
    }

    /// When a server's first replica connects, the server changes its replication ID and has no secondary ID.
    /// A server that was a replica itself and lost its master's writes does the same, some time after taking
    /// over. The amount of data that a server received as a replica distinguishes the two cases.
    fn has_kept_all(&self, before: &str, now: &str) -> bool {
        let run = |it: &str| it.split_once('/').map(|(run, _)| run.to_owned()).filter(|it| !it.is_empty());
        let is_first = self.first_masters.iter().any(|it| it == now);
        before == now || (is_first && run(now).is_some() && run(before) == run(now))
    }

    fn disconnect(&mut self) {
        self.connection = None;
    }
}
