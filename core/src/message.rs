//! What an error says: a template for each refusal, with `%` where a value stands.
//!
//! Templates, and not `write!`, for size: WebAssembly downloads this. Pieces of text go to a function, [`Out`].

use crate::error::{Detail, ErrorCode, LayoutFault, NodeFault, TextFault};
#[cfg(feature = "std")]
use crate::error::{PathWord, StateFault};
use crate::layout::{MAX_NODE_FIELDS, ones};
use crate::number::{Number, Out, Shown, write_character, write_u64};
use crate::options;

/// The call that sets a state file's cursor back.
#[cfg(feature = "std")]
const RESET_STATE: &str = "reset_state";
/// What else a forked process can do, where there are state files.
const OR_STATE: &str =
    if cfg!(feature = "std") { ", or give both the same state file from the first on" } else { "" };

/// How a language writes the names of options.
#[derive(Clone, Copy)]
pub(crate) enum Naming {
    Snake,
    Camel,
}

/// What stands in the place of a `%`.
trait Value {
    fn write(&self, out: &mut Out<'_>, naming: Naming);
}

/// The name of an option.
struct Name(&'static str);

/// The names of all options.
struct Options;

/// The presets whose names are near to this one, or all.
struct Presets<'a>(&'a [u8]);

pub(crate) fn write(out: &mut Out<'_>, code: ErrorCode, detail: &Detail, naming: Naming) {
    out(code.name());
    out(": ");
    let mut words = Words { out, naming };
    match detail {
        Detail::Layout(fault) => words.of_layout(fault),
        Detail::Node(fault) => words.of_node(fault),
        Detail::Text(fault) => words.of_text(*fault),
        #[cfg(feature = "std")]
        Detail::State { path, fault } => words.of_state(path, *fault),
        other => words.of_other(other),
    }
}

struct Words<'a, 'b> {
    out: &'a mut Out<'b>,
    naming: Naming,
}

impl Words<'_, '_> {
    /// A template and its values.
    fn say(&mut self, template: &str, values: &[&dyn Value]) {
        debug_assert_eq!(template.matches('%').count(), values.len(), "{template}");
        let mut values = values.iter();
        let mut rest = template;
        while let Some(at) = rest.bytes().position(|byte| byte == b'%') {
            let (before, after) = rest.split_at_checked(at).unwrap_or_default();
            (self.out)(before);
            if let Some(value) = values.next() {
                value.write(self.out, self.naming);
            }
            rest = after.get(1..).unwrap_or_default();
        }
        (self.out)(rest);
    }

    fn of_other(&mut self, detail: &Detail) {
        match detail {
        Detail::UnknownLayout { name } => {
            self.say("no preset is called `%`; %", &[name, &Presets(name.as_bytes())]);
        }
        Detail::Option { option, value, fits } => {
            self.say("% is `%`; it takes %", &[&Name(option), value, fits]);
        }
        Detail::OptionRange { option, value, min, max } => self.say(
            "% is %; it takes a whole number from % to %",
            &[&Name(option), value, min, max],
        ),
        Detail::UnknownOption { name } => self.say("there is no option `%`; there are %", &[name, &Options]),
        #[cfg(feature = "alloc")]
        Detail::OtherBound { option, value, first } => self.say(
            "% is %, but IDs of this layout and node are already issued with % %: one node has one cursor, \
             and its bounds are the first's",
            &[
                &Name(option),
                value,
                &Name(option),
                first,
            ],
        ),
        Detail::IdTooWide { id, bits } => self.say(
            "ID % does not fit % bits; it takes 0 to %",
            &[id, bits, &ones(*bits)],
        ),
        Detail::Time { unix_ms, epoch_ms, ends_at_ms } => self.say(
            "% (Unix ms) lies outside the layout's time, from its epoch % to its end %",
            &[unix_ms, epoch_ms, ends_at_ms],
        ),
        Detail::NoTickAfter { unix_ms, last_ms } => self.say(
            "no tick begins at or after % (Unix ms); the layout's last begins at %",
            &[unix_ms, last_ms],
        ),
        Detail::LayoutEnded { ends_at_ms } => {
            self.say("the layout's last ID is used up; its time ends at % (Unix ms)", &[ends_at_ms]);
        }
        Detail::Backwards { behind_ms, retry_after_ms, max_backward_ms } => self.say(
            "the clock stands % ms behind the last ID (% is %); the next ID can come in % ms",
            &[
                behind_ms,
                &Name(options::MAX_BACKWARD_MS),
                max_backward_ms,
                retry_after_ms,
            ],
        ),
        Detail::Exhausted { retry_after_ms } => self.say(
            "the sequence of this tick is used up; the next ID can come in % ms",
            &[retry_after_ms],
        ),
        Detail::Clock(error) => self.say("%", &[&error.reason()]),
        Detail::Forked => self.say(
            "the parent process had this Snowflake, or one for the same IDs, before it forked, and two processes that \
             share a node repeat IDs; build one after the fork, with a node that is this process's own%",
            &[&OR_STATE],
        ),
        #[cfg(feature = "std")]
        Detail::OtherClaim { file: None } => self.say(
            "% is given, but this process already issues IDs for this layout and node without one: one node has one \
             cursor; give every Snowflake of this node the same state file, from the first on",
            &[&Name(options::STATE)],
        ),
        #[cfg(feature = "std")]
        Detail::OtherClaim { file: Some(path) } => self.say(
            "this process already issues IDs for this layout and node with the state file `%`: one node has one \
             cursor; give every Snowflake of this node that file as %",
            &[path, &Name(options::STATE)],
        ),
        Detail::Closed => self.say("this Snowflake was closed, and issues nothing more; build another", &[]),
        // What has faults of its own.
        _ => self.say("", &[]),
    }
    }

    #[cfg(feature = "std")]
    fn of_state(&mut self, path: &PathWord, fault: StateFault) {
        match fault {
        StateFault::NoPlatform => self.say(
            "`%` cannot be a state file: this platform has none; give each process a node of its own instead",
            &[path],
        ),
        StateFault::Os { action, errno } => self.say(
            "the state file `%` could not be % (%); its folder must be there, with room, and this process must be able \
             to read and write it",
            &[path, &action, &OsError(errno)],
        ),
        StateFault::NoFile => self.say("`%` is no regular file, and cannot be a state file; name another", &[path]),
        StateFault::FileSystem { kind } => self.say(
            "the state file `%` would lie on a file system (type %) that is not known to show a mapping to all processes \
             alike, as those of a network or FUSE do not; put it on a local one, such as ext4, XFS, Btrfs or tmpfs",
            &[path, &kind],
        ),
        StateFault::Size { len } => self.say(
            "`%` is no state file, or only a part of one: it has % bytes, and not 4096; name another, or restore it",
            &[path, &len],
        ),
        StateFault::Foreign => self.say(
            "`%` is no state file: it begins differently; it was left as it is; name another",
            &[path],
        ),
        StateFault::ByteOrder => self.say(
            "the state file `%` was made on a machine of the other byte order; name another",
            &[path],
        ),
        StateFault::Version { version } => self.say(
            "the state file `%` has the format %, and this version of Polyflake knows 1; use the version that made it",
            &[path, &version],
        ),
        StateFault::Damaged => self.say(
            "the state file `%` is damaged; delete it if the clock has passed every ID that was issued with it: a new \
             one then begins at the clock",
            &[path],
        ),
        StateFault::OtherKey { epoch_ms, tick_ms, placed_node } => self.say(
            "the state file `%` belongs to another layout or node (epoch %, tick % ms, node bits in their place %); \
             each has a file of its own: name another",
            &[path, &epoch_ms, &tick_ms, &placed_node],
        ),
        StateFault::FarAhead { lead_ms } => self.say(
            "the cursor in the state file `%` stands % ms ahead of the clock; set the clock right if it is behind; if it \
             was ahead once, % sets the cursor back, and IDs that were issued ahead of the clock are then issued \
             again when it gets there",
            &[path, &lead_ms, &Name(RESET_STATE)],
        ),
        StateFault::Gone => self.say(
            "the state file `%` was renamed, deleted or replaced while in use, and another process may issue the same \
             IDs now; put it back, or restart every process that uses it",
            &[path],
        ),
    }
    }

    fn of_layout(&mut self, fault: &LayoutFault) {
        match fault {
        LayoutFault::Expected { what, found } => self.say(
            "expected %, found `%`; a layout is written FIELD:BITS|FIELD:BITS@EPOCH/TICK, such as \
             timestamp:41|worker:10|sequence:12@1288834974657/1ms",
            &[what, found],
        ),
        LayoutFault::Bits { field, bits } => {
            self.say("field % has `%` bits; it takes 1 to 64", &[field, bits]);
        }
        LayoutFault::FieldName { name } => self.say(
            "`%` is no field name: a name is 1 to 24 characters of a-z, 0-9, _ and -, the first a letter",
            &[name],
        ),
        LayoutFault::Doubled { name } => self.say("field % stands twice; each field stands once", &[name]),
        LayoutFault::Missing { name } => self.say("there is no % field; a layout has exactly one", &[name]),
        LayoutFault::SequenceAboveTimestamp => {
            self.say("the sequence stands above the timestamp; IDs would not sort by time", &[]);
        }
        LayoutFault::TooManyNodeFields => {
            self.say("there are more than % node fields", &[&MAX_NODE_FIELDS]);
        }
        LayoutFault::TooManyBits { bits } => self.say(
            "the fields take % bits, % too many: an ID has 64",
            &[bits, &bits.saturating_sub(64)],
        ),
        LayoutFault::SequenceTooWide { bits } => {
            self.say("the sequence has % bits; it takes 1 to 32", &[bits]);
        }
        LayoutFault::NodeTooWide { bits } => {
            self.say("the node fields have % bits together; they take at most 32", &[bits]);
        }
        LayoutFault::Epoch { epoch } => {
            self.say("the epoch is `%`; it takes Unix ms from 0 to 9223372036854775807", &[epoch]);
        }
        LayoutFault::Tick { tick } => self.say(
            "the tick is `%`; it takes a whole number of ms or s from 1, such as 1ms or 10s",
            &[tick],
        ),
        LayoutFault::EndsTooLate => self.say(
            "the timestamp reaches past Unix ms 9223372036854775807: take fewer bits, a shorter tick or an earlier epoch",
            &[],
        ),
        LayoutFault::NodeAboveTimestamp { field } => self.say(
            "IDs of this layout do not sort by time, for node field % stands above the timestamp: no range of IDs holds \
             a span of time",
            &[field],
        ),
    }
    }

    fn of_node(&mut self, fault: &NodeFault) {
        match fault {
        NodeFault::Required { names, max } => self.say(
            "node is missing; it takes a whole number from 0 to % that no other process uses, or a value for each of %",
            &[max, names],
        ),
        NodeFault::Whole { value, max } => {
            self.say("node is %; it takes a whole number from 0 to %", &[value, max]);
        }
        NodeFault::Field { name, value, max } => self.say(
            "node field % is %; it takes a whole number from 0 to %",
            &[name, value, max],
        ),
        NodeFault::UnknownField { name, names } if names.as_bytes().is_empty() => {
            self.say("the layout has no node field `%`; it has none", &[name]);
        }
        NodeFault::UnknownField { name, names } => {
            self.say("the layout has no node field `%`; it has %", &[name, names]);
        }
        NodeFault::MissingField { name, names } => {
            self.say("node field % is missing; the layout has %", &[name, names]);
        }
        NodeFault::Twice { name } => self.say("node field % is given twice", &[name]),
        NodeFault::TooManyFields => {
            self.say("more node fields are given than the % a layout may have", &[&MAX_NODE_FIELDS]);
        }
        NodeFault::NoPair { text } => self.say(
            "`%` is no node; it takes a number, such as 7, or FIELD=NUMBER pairs joined by commas",
            &[text],
        ),
    }
    }

    fn of_text(&mut self, fault: TextFault) {
        match fault {
            TextFault::Empty { format } => self.say("an empty text is no % ID", &[&format.name()]),
            TextFault::Foreign { character, position, format } => self.say(
                "`%` at position % is no % digit; the digits are %",
                &[&character, &position, &format.name(), &format.alphabet()],
            ),
            TextFault::TooLong { position, format } => self.say(
                "a % ID has at most % characters; there is another at position %",
                &[&format.name(), &format.max_len(), &position],
            ),
            TextFault::Overflow { position, format } => self.say(
                "the % ID passes 64 bits (18446744073709551615) at position %",
                &[&format.name(), &position],
            ),
        }
    }
}

impl Value for &str {
    fn write(&self, out: &mut Out<'_>, _: Naming) {
        out(self);
    }
}

impl<const N: usize> Value for Shown<N> {
    fn write(&self, out: &mut Out<'_>, _: Naming) {
        self.write_to(out);
    }
}

impl Value for Number {
    fn write(&self, out: &mut Out<'_>, _: Naming) {
        self.write_to(out);
    }
}

/// What the operating system calls an error.
#[cfg(feature = "std")]
struct OsError(i32);

#[cfg(feature = "std")]
impl Value for OsError {
    fn write(&self, out: &mut Out<'_>, _: Naming) {
        if self.0 == 0 {
            out("the path is not valid");
        } else {
            out(&std::string::ToString::to_string(&std::io::Error::from_raw_os_error(self.0)));
        }
    }
}

impl Value for u64 {
    fn write(&self, out: &mut Out<'_>, _: Naming) {
        write_u64(out, *self);
    }
}

impl Value for u32 {
    fn write(&self, out: &mut Out<'_>, _: Naming) {
        write_u64(out, u64::from(*self));
    }
}

impl Value for usize {
    fn write(&self, out: &mut Out<'_>, _: Naming) {
        write_u64(out, *self as u64);
    }
}

/// As it is, if it is one that can be told from others; else its number, such as `\u{200b}`.
impl Value for char {
    fn write(&self, out: &mut Out<'_>, _: Naming) {
        if self.is_ascii_graphic() || *self == ' ' {
            write_character(out, *self);
        } else {
            self.escape_unicode().for_each(|letter| write_character(out, letter));
        }
    }
}

impl Value for Name {
    fn write(&self, out: &mut Out<'_>, naming: Naming) {
        match naming {
            Naming::Snake => out(self.0),
            Naming::Camel => camel_case(self.0).for_each(|letter| write_character(out, letter)),
        }
    }
}

impl Value for Options {
    fn write(&self, out: &mut Out<'_>, naming: Naming) {
        list(out, options::NAMES.iter().copied(), naming);
    }
}

impl Value for Presets<'_> {
    fn write(&self, out: &mut Out<'_>, naming: Naming) {
        let mut any = false;
        for near in crate::layout::presets::near(self.0) {
            out(if any { ", " } else { "did you mean " });
            out(near);
            any = true;
        }
        if any {
            out("?");
        } else {
            out("there are ");
            // No preset's name has a `_`, so that both namings write it alike.
            list(out, crate::layout::presets::PRESETS.iter().map(|preset| preset.name), naming);
        }
    }
}

/// The letters of `max_wait_ms` as `maxWaitMs`. Names of options are ASCII.
pub(crate) fn camel_case(name: &str) -> impl Iterator<Item = char> {
    let mut starts_word = false;
    name.bytes().filter_map(move |letter| {
        let was_start = core::mem::replace(&mut starts_word, letter == b'_');
        (letter != b'_').then(|| char::from(if was_start { letter.to_ascii_uppercase() } else { letter }))
    })
}

fn list(out: &mut Out<'_>, names: impl Iterator<Item = &'static str>, naming: Naming) {
    for (n, name) in names.enumerate() {
        out(if n == 0 { "" } else { ", " });
        Name(name).write(out, naming);
    }
}
