//! Counters in the Leaf, tinyid and `CosId` tables. Those systems' own servers may use the tables at the same
//! time.
//!
//! Statements have a `?` for each value, in order, and select only whole numbers.

use super::{MOST_TRIES, bigint, whole};
use crate::store::{
    CounterName, CounterRecord, LAST_NUMBER, Numbers, Place, Reserve, Reserved, Schema, StoreError,
};

/// A value in a statement.
#[derive(Clone, Copy)]
pub(in crate::engine::stores) enum Value<'a> {
    Text(&'a str),
    Number(i64),
}

/// A row's columns.
pub(in crate::engine::stores) type Columns = Vec<Option<i64>>;

/// The parts of statements that differ between the databases.
pub(in crate::engine::stores) struct Dialect {
    /// A condition that holds if this server accepts changes. Without it, a replica would also accept changes
    /// from some accounts.
    pub(in crate::engine::stores) writable: &'static str,
    /// The SQL before and after a number that [`Client::number`] returns.
    pub(in crate::engine::stores) returned: [&'static str; 2],
    /// The Unix time in whole seconds.
    pub(in crate::engine::stores) seconds: &'static str,
}

/// A connection to a database.
pub(in crate::engine::stores) trait Client {
    type Fault: From<StoreError>;

    const DIALECT: Dialect;

    /// Returns the rows selected by a statement that changes nothing.
    async fn rows(&mut self, statement: &str, values: &[Value<'_>]) -> Result<Vec<Columns>, Self::Fault>;

    /// Changes at most one row. Returns true if the row exists.
    async fn change(&mut self, statement: &str, values: &[Value<'_>]) -> Result<bool, Self::Fault>;

    /// Changes at most one row. Returns the new value of the column that the statement marks as
    /// [`returned`](Dialect::returned).
    async fn number(
        &mut self,
        statement: &str,
        column: &str,
        values: &[Value<'_>],
    ) -> Result<Option<i64>, Self::Fault>;
}

/// See [`Rows::reserve`](crate::store::Rows::reserve).
pub(in crate::engine::stores) async fn reserve<C: Client>(
    client: &mut C,
    counter: &CounterName,
    reserve: &Reserve,
) -> Result<Reserved, C::Fault> {
    let Place { index, count: stride } = reserve.place;
    if !(1..=Reserve::MAX_COUNT).contains(&reserve.count) || index >= stride || stride > Place::MAX_COUNT {
        return Err(StoreError::Refused(format!("no such numbers can be asked for: {reserve:?}")).into());
    }
    Others::of(counter, C::DIALECT.seconds)?.reserve(client, reserve).await
}

/// See [`Rows::counter`](crate::store::Rows::counter).
pub(in crate::engine::stores) async fn counter<C: Client>(
    client: &mut C,
    counter: &CounterName,
) -> Result<Option<CounterRecord>, C::Fault> {
    Ok(Others::of(counter, C::DIALECT.seconds)?.row(client).await?.map(|row| row.record()))
}

/// See [`Rows::put_counter`](crate::store::Rows::put_counter).
pub(in crate::engine::stores) async fn put_counter<C: Client>(
    client: &mut C,
    counter: &CounterName,
    expected: &CounterRecord,
    new: &CounterRecord,
) -> Result<bool, C::Fault> {
    Others::of(counter, C::DIALECT.seconds)?.put(client, expected, new).await
}

/// Returns the table that contains a schema's counters.
pub(in crate::engine::stores) const fn table_of(schema: Schema) -> &'static str {
    match schema {
        // Polyflake's records are not rows of other systems.
        Schema::Polyflake => "",
        Schema::Leaf => "leaf_alloc",
        Schema::Tinyid => "tiny_id_info",
        Schema::Cosid => "cosid",
    }
}

/// Returns the statement that reads the names of all rows.
pub(in crate::engine::stores) const fn names_of(schema: Schema) -> &'static str {
    match schema {
        // Polyflake's records are not rows of other systems.
        Schema::Polyflake => "SELECT NULL LIMIT 0",
        Schema::Leaf => "SELECT biz_tag FROM leaf_alloc",
        Schema::Tinyid => "SELECT biz_type FROM tiny_id_info",
        Schema::Cosid => "SELECT name FROM cosid",
    }
}

/// Picks out the counters in a namespace from the names of all rows.
pub(in crate::engine::stores) fn in_namespace(
    schema: Schema,
    namespace: &str,
    rows: Vec<String>,
) -> Vec<String> {
    if schema != Schema::Cosid {
        return rows;
    }
    let name = |row: String| Some(row.strip_prefix(namespace)?.strip_prefix('.')?.to_owned());
    rows.into_iter().filter_map(name).collect()
}

fn check_writable(row: &Columns) -> Result<(), StoreError> {
    if column(row, 0)? == Some(0) { Err(super::read_only()) } else { Ok(()) }
}

fn column(row: &Columns, at: usize) -> Result<Option<i64>, StoreError> {
    row.get(at).copied().ok_or_else(|| StoreError::Unreachable("a truncated row".into()))
}

fn filled(row: &Columns, at: usize, table: &str) -> Result<u64, StoreError> {
    let value =
        column(row, at)?.ok_or_else(|| StoreError::Refused(format!("a column of {table} is empty")))?;
    whole(value)
}

/// Returns the lowest number at or above `from` that belongs to a place. A place in another system's table
/// may have a larger count than any of Polyflake's places.
fn first(from: u64, place: Place) -> u64 {
    from.saturating_add((place.index + place.count - from % place.count) % place.count)
}

/// A counter in another system's table.
struct Others {
    table: &'static str,
    /// The column with the row's name.
    key: &'static str,
    /// The row's name.
    name: String,
    /// The column with the bound of the numbers handed out so far.
    bound: &'static str,
    /// The distance from the bound up to the next number to hand out. It is 0 for Leaf, whose segments are
    /// [before, after), and 1 for the others, whose segments are (before, after].
    below_next: u64,
    /// The columns with the step, the stride, the remainder and the version.
    columns: &'static str,
    versioned: bool,
    /// The other columns that a change sets.
    also: String,
}

/// A row of [`Others`].
struct Row {
    bound: u64,
    /// The next number to hand out. This number and all higher numbers are free.
    next: u64,
    /// The minimum distance by which to move the bound.
    step: u64,
    place: Place,
    version: Option<u64>,
}

/// A plan to move a row's bound.
struct Ahead {
    by: u64,
    /// The lowest and the highest bound from which the plan still works.
    from: [u64; 2],
    place: Place,
    version: Option<u64>,
}

impl Ahead {
    /// Returns the reserved numbers. `after` is the next number to hand out after the move.
    fn numbers(&self, after: u64) -> Numbers {
        let Self { by, place, version, .. } = *self;
        let first = first(after.saturating_sub(by), place);
        let count = after.saturating_sub(1).checked_sub(first).map_or(0, |rest| rest / place.count + 1);
        Numbers { first, stride: place.count, count, version }
    }
}

impl Row {
    const fn record(&self) -> CounterRecord {
        CounterRecord { last: self.next.saturating_sub(1), version: self.version, place: self.place }
    }
}

impl Others {
    fn of(counter: &CounterName, seconds: &str) -> Result<Self, StoreError> {
        let table = table_of(counter.schema);
        Ok(match counter.schema {
            Schema::Polyflake => return Err(StoreError::Refused("no table of others is named".into())),
            Schema::Leaf => Self {
                table,
                key: "biz_tag",
                name: counter.name.clone(),
                bound: "max_id",
                below_next: 0,
                columns: "step, 1, 0, 0",
                versioned: false,
                also: String::new(),
            },
            Schema::Tinyid => Self {
                table,
                key: "biz_type",
                name: counter.name.clone(),
                bound: "max_id",
                below_next: 1,
                columns: "step, delta, remainder, version",
                versioned: true,
                also: ", update_time = CURRENT_TIMESTAMP".into(),
            },
            Schema::Cosid => Self {
                table,
                key: "name",
                name: format!("{}.{}", counter.namespace, counter.name),
                bound: "last_max_id",
                below_next: 1,
                columns: "1, 1, 0, 0",
                versioned: false,
                also: format!(", last_fetch_time = {seconds}"),
            },
        })
    }

    /// Returns the row, if it exists.
    async fn row<C: Client>(&self, client: &mut C) -> Result<Option<Row>, C::Fault> {
        let Self { table, key, bound, columns, .. } = self;
        let writable = C::DIALECT.writable;
        let statement = format!("SELECT {writable}, {bound}, {columns} FROM {table} WHERE {key} = ?");
        let rows = client.rows(&statement, &[Value::Text(&self.name)]).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        check_writable(row)?;
        let number = |at| filled(row, at, table);
        let place = Place { index: number(4)?, count: number(3)? };
        if place.index >= place.count {
            let text = format!(
                "the row {:?} of {table} has delta {} and remainder {}: a remainder is below its delta",
                self.name, place.count, place.index
            );
            return Err(StoreError::Refused(text).into());
        }
        let bound = number(1)?;
        // A Leaf row may contain 0, but numbers start at 1.
        let next = (bound + self.below_next).max(1);
        // Some rows have no step, and the step is only a hint.
        let step = column(row, 2)?.and_then(|step| u64::try_from(step).ok()).unwrap_or(0);
        let version = if self.versioned { Some(number(5)?) } else { None };
        Ok(Some(Row { bound, next, step, place, version }))
    }

    /// Takes all numbers below `next`, if the row is as expected.
    async fn set<C: Client>(
        &self,
        client: &mut C,
        [expected_next, next]: [u64; 2],
        [expected_version, version]: [Option<u64>; 2],
    ) -> Result<bool, C::Fault> {
        let Self { table, key, bound, also, .. } = self;
        let writable = C::DIALECT.writable;
        let column = |next: u64| {
            let bound = next.checked_sub(self.below_next);
            bigint(bound.ok_or_else(|| StoreError::Refused("numbers begin at 1".into()))?)
        };
        let (mut set, mut compared) = ("", "");
        let mut values = vec![Value::Number(column(next)?)];
        let old = column(expected_next)?;
        // Before the first number is handed out, a Leaf row contains 0 or 1.
        let lowest = if expected_next == 1 { 0 } else { old };
        let versions = expected_version.zip(version);
        if let Some((_, version)) = versions {
            (set, compared) = (", version = ?", " AND version = ?");
            values.push(Value::Number(bigint(version)?));
        }
        values.extend([Value::Text(&self.name), Value::Number(lowest), Value::Number(old)]);
        if let Some((expected, _)) = versions {
            values.push(Value::Number(bigint(expected)?));
        }
        let statement = format!(
            "UPDATE {table} SET {bound} = ?{set}{also} WHERE {key} = ? AND {bound} BETWEEN ? AND ?{compared} AND {writable}"
        );
        client.change(&statement, &values).await
    }

    /// Reserves numbers. One statement moves the bound ahead from its current value, so no lock is held
    /// between two statements, and the call succeeds no matter how fast other processes are. If the table has
    /// a version, the row must still have the version that was read, because no answer could return another
    /// version.
    async fn reserve<C: Client>(&self, client: &mut C, reserve: &Reserve) -> Result<Reserved, C::Fault> {
        for _ in 0..MOST_TRIES {
            let Some(row) = self.row(client).await? else { return Ok(Reserved::Found(None)) };
            let Some(ahead) = self.plan(&row, reserve) else {
                return Ok(Reserved::Found(Some(row.record())));
            };
            if let Some(bound) = self.move_ahead(client, &row, &ahead).await? {
                return Ok(Reserved::Numbers(ahead.numbers(whole(bound)?.saturating_add(self.below_next))));
            }
        }
        Err(StoreError::Unreachable("every attempt to change the row conflicted with another process".into())
            .into())
    }

    /// Returns a plan that moves the bound from the row's value. The plan also holds the range of other
    /// values from which the same move works.
    fn plan(&self, row: &Row, reserve: &Reserve) -> Option<Ahead> {
        let Row { bound, next, step, place, version } = *row;
        if row.record().last < reserve.seen {
            return None;
        }
        let step = if reserve.is_exact { 0 } else { step };
        let version = version.map(|version| version + 1);
        let lowest = if reserve.seen == 0 { 0 } else { (reserve.seen + 1).saturating_sub(self.below_next) };
        // A range of this length contains all the requested numbers, wherever it begins.
        if let Some(by) = reserve.count.checked_mul(place.count).map(|least| least.max(step)) {
            if next.checked_add(by).is_some_and(|after| after <= LAST_NUMBER) {
                return Some(Ahead { by, from: [lowest, LAST_NUMBER - by], place, version });
            }
        }
        // Near the end, move the bound all the way to the end. The next number may then be one more than a
        // column can hold.
        let least =
            (reserve.count - 1).checked_mul(place.count)?.checked_add(first(next, place))?.checked_add(1)?;
        let most = LAST_NUMBER + self.below_next;
        (least <= most).then(|| Ahead { by: most - next, from: [bound, bound], place, version })
    }

    /// Moves the bound ahead, and returns the new bound.
    async fn move_ahead<C: Client>(
        &self,
        client: &mut C,
        row: &Row,
        ahead: &Ahead,
    ) -> Result<Option<i64>, C::Fault> {
        let Self { table, key, bound, also, .. } = self;
        let Dialect { writable, returned: [before, after], .. } = C::DIALECT;
        // Numbers start at 1.
        let lowest = 1 - self.below_next;
        let mut values = vec![Value::Number(bigint(ahead.by)?)];
        let (mut set, mut compared) = ("", "");
        if let (Some(expected), Some(version)) = (row.version, ahead.version) {
            (set, compared) = (", version = ?", " AND version = ? AND delta = ? AND remainder = ?");
            values.push(Value::Number(bigint(version)?));
            values.push(Value::Text(&self.name));
            for expected in [expected, row.place.count, row.place.index] {
                values.push(Value::Number(bigint(expected)?));
            }
        } else {
            values.push(Value::Text(&self.name));
        }
        for from in ahead.from {
            values.push(Value::Number(bigint(from)?));
        }
        let statement = format!(
            "UPDATE {table} SET {bound} = {before}CASE WHEN {bound} < {lowest} THEN {lowest} ELSE {bound} END + ?{after}{set}{also} \
             WHERE {key} = ?{compared} AND {bound} BETWEEN ? AND ? AND {writable}"
        );
        client.number(&statement, bound, &values).await
    }

    /// Compares and writes only the bound, and the version if there is one.
    async fn put<C: Client>(
        &self,
        client: &mut C,
        expected: &CounterRecord,
        new: &CounterRecord,
    ) -> Result<bool, C::Fault> {
        let versions = if self.versioned { [expected.version, new.version] } else { [None, None] };
        if self.versioned && versions.contains(&None) {
            return Err(StoreError::Refused(format!("a row of {} without a version", self.table)).into());
        }
        let written =
            self.set(client, [expected.last, new.last].map(|last| last.saturating_add(1)), versions).await?;
        if !written {
            // This read fails if the server accepts no changes.
            self.row(client).await?;
        }
        Ok(written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tinyid(next: u64, step: u64, place: Place) -> (Others, Row) {
        let name = CounterName { namespace: "n".into(), name: "c".into(), schema: Schema::Tinyid };
        (Others::of(&name, "").unwrap(), Row { bound: next - 1, next, step, place, version: Some(7) })
    }

    /// Returns the planned numbers, and the next number after them.
    fn planned(table: &Others, row: &Row, reserve: &Reserve) -> Option<(Numbers, u64)> {
        let ahead = table.plan(row, reserve)?;
        let after = row.next + ahead.by;
        Some((ahead.numbers(after), after))
    }

    /// Returns the numbers that tinyid's `SegmentId` hands out from (before, after].
    fn segment_id(before: u64, after: u64, place: Place) -> Vec<u64> {
        let mut current = i128::from(before);
        let (delta, remainder) = (i128::from(place.count), i128::from(place.index));
        if current % delta != remainder {
            for _ in 0..=delta {
                current += 1;
                if current % delta == remainder {
                    current -= delta;
                    break;
                }
            }
        }
        let mut numbers = Vec::new();
        loop {
            current += delta;
            if current > i128::from(after) {
                return numbers;
            }
            numbers.push(u64::try_from(current).unwrap());
        }
    }

    #[test]
    fn a_segment_has_the_numbers_that_tinyid_takes_from_it() {
        for delta in 1..8 {
            for index in 0..delta {
                let place = Place { index, count: delta };
                for (before, step) in (0..30).flat_map(|before| (0..25).map(move |step| (before, step))) {
                    for count in 1..5 {
                        let (table, row) = tinyid(before + 1, step, place);
                        let reserve = Reserve { count, place: Place::ONLY, seen: 0, is_exact: false };
                        let (numbers, next) = planned(&table, &row, &reserve).unwrap();
                        let after = next - 1;
                        let all = segment_id(before, after, place);
                        let ours: Vec<_> =
                            (0..numbers.count).map(|at| numbers.first + at * numbers.stride).collect();
                        assert_eq!(ours, all, "{place:?} ({before}, {after}]");
                        assert!(numbers.count >= count && after >= before + step);
                        // The bound moves no further than the step or the count requires.
                        assert!(after == before + step || numbers.count == count);
                        assert!(after <= before + step.max(count * delta));
                        assert_eq!(numbers.version, Some(8));
                    }
                }
            }
        }
    }

    #[test]
    fn nothing_is_above_the_last_number() {
        let reserve = |count| Reserve { count, place: Place::ONLY, seen: 0, is_exact: false };
        for step in [0, 1, 5, 1 << 31, u64::MAX] {
            let (table, row) = tinyid(LAST_NUMBER - 4, step, Place::ONLY);
            assert!(table.plan(&row, &reserve(6)).is_none());
            let (numbers, next) = planned(&table, &row, &reserve(5)).unwrap();
            assert_eq!((numbers.first, numbers.count, next), (LAST_NUMBER - 4, 5, LAST_NUMBER + 1));
            let (numbers, next) = planned(&table, &row, &reserve(1)).unwrap();
            assert_eq!((numbers.count, next), (step.clamp(1, 5), LAST_NUMBER - 4 + numbers.count));
            let (table, row) = tinyid(LAST_NUMBER + 1, step, Place::ONLY);
            assert!(table.plan(&row, &reserve(1)).is_none());
            // The place's count is as large as a column allows.
            let wide = Place { index: LAST_NUMBER - 1, count: LAST_NUMBER };
            let (table, row) = tinyid(1, step, wide);
            assert!(table.plan(&row, &reserve(2)).is_none());
            assert_eq!(planned(&table, &row, &reserve(1)).unwrap().0.first, LAST_NUMBER - 1);
        }
    }
}
