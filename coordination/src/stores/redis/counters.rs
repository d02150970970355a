//! Counters in Redis: a hash for each, `polyflake:{NAMESPACE/counter:NAME}`, which one script a call reads and changes.

use super::RedisStore;
use crate::store::{
    CounterName, CounterRecord, FORMAT, LAST_NUMBER, Numbers, Place, Reserve, Reserved, StoreError,
};
use crate::stores::counter_record::{NOT_TO_ASK, NOT_TO_KEEP, Unreadable, can_ask, ended, is_sound};

/// Before each script. Numbers are texts, and are counted with in two parts, since Lua's are exact to 2^53 only: how many times
/// 10^15, and the rest.
macro_rules! script {
    ($body:literal) => {
        concat!(
            "
    local info = redis.call('INFO', 'replication')
    if string.match(info, 'role:(%a+)') ~= 'master' then return {'replica'} end
    local found = redis.call('HMGET', KEYS[1], 'format', 'last', 'version', 'index', 'count')
    if found[1] and found[1] ~= ARGV[1] then return {'format', found[1]} end

    local half = 1000000000000000
    local function read(text)
      if not text or #text > 19 or not string.match(text, '^%d+$') then return nil end
      return {tonumber('0' .. string.sub(text, 1, -16)), tonumber(string.sub(text, -15))}
    end
    local function write(it)
      if it[1] == 0 then return string.format('%.0f', it[2]) end
      return string.format('%.0f%015.0f', it[1], it[2])
    end
    local function is_above(a, b) return a[1] > b[1] or (a[1] == b[1] and a[2] > b[2]) end
    local function plus(a, few)
      if a[2] + few < half then return {a[1], a[2] + few} end
      return {a[1] + 1, a[2] + few - half}
    end
    local top = read('9223372036854775807')

    local is_there = redis.call('EXISTS', KEYS[1]) == 1
    local last, version, index, count = read(found[2]), read(found[3]), read(found[4]), read(found[5])
    local is_sound = found[1] and last and version and index and count
      and not is_above(last, top) and not is_above(version, top)
      and count[1] == 0 and count[2] >= 1 and count[2] <= 1024 and is_above(count, index)
    local function keep(...)
      local time = redis.call('TIME')
      local ms = string.format('%s%03d', time[1], math.floor(time[2] / 1000))
      redis.call('HSET', KEYS[1], 'updated_ms', ms, ...)
    end
",
            $body
        )
    };
}

const READ: &str = script!(
    "
    if not is_there then return {'none'} end
    if not is_sound then return {'unsound'} end
    return {'there', found[2], found[3], found[4], found[5]}"
);

/// Arguments: format, how many, the place's index and count, and what was seen.
const RESERVE: &str = script!(
    "
    if not is_there then return {'none'} end
    if not is_sound then return {'unsound'} end
    local stride = count[2]
    local above = (index[2] - (last[1] * (half % stride) + last[2])) % stride
    if above == 0 then above = stride end
    local new = plus(last, above + (tonumber(ARGV[2]) - 1) * stride)
    if index[2] ~= tonumber(ARGV[3]) or stride ~= tonumber(ARGV[4]) or is_above(read(ARGV[5]), last)
      or is_above(new, top) then
      return {'there', found[2], found[3], found[4], found[5]}
    end
    if not is_above(top, version) then return {'ended'} end
    local next = {write(new), write(plus(version, 1))}
    keep('last', next[1], 'version', next[2])
    return {'written', next[1], next[2]}"
);

/// Arguments: format, the new record, whether to confirm what is found, and the expected version where there is one. What is
/// found may be what the caller wrote itself in an attempt that no replica confirmed: see the script for a node's record.
const PUT: &str = script!(
    "
    if is_there and not is_sound then return {'unsound'} end
    local fits = not is_there
    if ARGV[7] then
      local expected = read(ARGV[7])
      fits = is_there and expected and not is_above(expected, version) and not is_above(version, expected)
    end
    if fits then
      keep('format', ARGV[1], 'last', ARGV[2], 'version', ARGV[3], 'index', ARGV[4], 'count', ARGV[5])
      return {'written'}
    end
    if not is_there or ARGV[6] ~= '1' then return {'none'} end
    redis.call('HSET', KEYS[1], 'format', ARGV[1])
    return {'no'}"
);

/// What is broken can be deleted.
const REMOVE: &str = script!(
    "
    if redis.call('DEL', KEYS[1]) == 0 then return {'none'} end
    return {'written'}"
);

/// What a script says where it wrote nothing, so that no replica has to confirm it.
pub(super) const UNCHANGED: [&str; 5] = ["none", "there", "unsound", "format", "ended"];

/// The first `{...}` says the slot in a Cluster; a name that has braces may end it early, which does not matter for one key.
fn key(counter: &CounterName) -> String {
    format!("polyflake:{{{}/counter:{}}}", counter.namespace, counter.name)
}

fn fields(record: &CounterRecord) -> Option<[String; 4]> {
    let CounterRecord { last, version, place: Place { index, count } } = *record;
    Some([last, version?, index, count].map(|it| it.to_string()))
}

fn numbers(texts: &[String]) -> Option<Vec<u64>> {
    texts.iter().map(|it| it.parse().ok()).collect()
}

impl RedisStore {
    /// Runs a script that says what became of it, and some numbers.
    async fn count(
        &mut self,
        counter: &CounterName,
        code: &'static str,
        arguments: Vec<String>,
    ) -> Result<(String, Vec<u64>), StoreError> {
        let key = key(counter);
        let mut all = vec![FORMAT.to_string()];
        all.extend(arguments);
        let reply = self.run(std::slice::from_ref(&key), code, &all, code != READ).await?;
        match &*reply.status {
            "format" => {
                let format = reply.texts.into_iter().next().unwrap_or_default();
                Err(self.refused(&Unreadable::Format(format).text(&key)))
            }
            "ended" => Err(self.refused(&ended(&key))),
            "none" | "no" | "there" | "written" => match numbers(&reply.texts) {
                Some(numbers) => Ok((reply.status, numbers)),
                None => Err(self.refused(&Unreadable::Broken.text(&key))),
            },
            _ => Err(self.refused(&Unreadable::Broken.text(&key))),
        }
    }

    fn found(&self, status: &str, numbers: &[u64]) -> Result<Option<CounterRecord>, StoreError> {
        match (status, numbers) {
            ("none", _) => Ok(None),
            ("there", &[last, version, index, count]) => {
                Ok(Some(CounterRecord { last, version: Some(version), place: Place { index, count } }))
            }
            _ => Err(self.refused("it answered with something else")),
        }
    }

    pub(super) async fn take(
        &mut self,
        counter: &CounterName,
        reserve: &Reserve,
    ) -> Result<Reserved, StoreError> {
        if !can_ask(reserve) {
            return Err(self.refused(NOT_TO_ASK));
        }
        let Reserve { count, place: Place { index, count: stride }, seen } = *reserve;
        let arguments = [count, index, stride].map(|it| it.to_string());
        // No record stands above it.
        let seen = seen.min(LAST_NUMBER + 1).to_string();
        let arguments = arguments.into_iter().chain([seen]).collect();
        let (status, texts) = self.count(counter, RESERVE, arguments).await?;
        if let ("written", &[last, version]) = (&*status, &*texts) {
            let first = last.saturating_sub((count - 1) * stride);
            return Ok(Reserved::Numbers(Numbers { first, stride, count, version: Some(version) }));
        }
        self.found(&status, &texts).map(Reserved::Found)
    }

    pub(super) async fn look(&mut self, counter: &CounterName) -> Result<Option<CounterRecord>, StoreError> {
        let (status, numbers) = self.count(counter, READ, Vec::new()).await?;
        self.found(&status, &numbers)
    }

    pub(super) async fn put(
        &mut self,
        counter: &CounterName,
        expected: Option<&CounterRecord>,
        new: &CounterRecord,
    ) -> Result<bool, StoreError> {
        let fields = fields(new).filter(|_| is_sound(new));
        let fields = fields.ok_or_else(|| self.refused(NOT_TO_KEEP))?;
        let mut arguments = Vec::from(fields);
        arguments.push(u8::from(self.address.replicas > 0).to_string());
        if let Some(expected) = expected {
            // Every record here has a version.
            let Some(version) = expected.version else { return Ok(false) };
            arguments.push(version.to_string());
        }
        Ok(self.count(counter, PUT, arguments).await?.0 == "written")
    }

    pub(super) async fn remove(&mut self, counter: &CounterName) -> Result<bool, StoreError> {
        Ok(self.count(counter, REMOVE, Vec::new()).await?.0 == "written")
    }
}
