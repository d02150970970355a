//! The options of a Snowflake: parsed from text or set from Rust, and checked by `build`.

use crate::clock::ClockName;
use crate::decode::UnixTime;
use crate::error::{Error, error};
use crate::layout::{Key, Layout};
use crate::node::Node;
use crate::number::Number;
use crate::rule::{Rule, SequenceStart, Tolerance};
use crate::system::StatePath;
use crate::word::camel_case;

const LAYOUT: &str = "layout";
const NODE: &str = "node";
const MAX_BACKWARD_MS: &str = "max_backward_ms";
const MAX_AHEAD_MS: &str = "max_ahead_ms";
const MAX_WAIT_MS: &str = "max_wait_ms";
const SEQUENCE_START: &str = "sequence_start";
const CLOCK: &str = "clock";
const STATE: &str = "state";
const LEASE: &str = "lease";
const NAMES: [&str; 9] =
    [LAYOUT, NODE, MAX_BACKWARD_MS, MAX_AHEAD_MS, MAX_WAIT_MS, SEQUENCE_START, CLOCK, STATE, LEASE];

/// Added to the tick length to give the default wait, because the clock and the scheduler may be late.
const WAIT_MARGIN_MS: u64 = 1000;

/// The options of a [`Snowflake`](crate::Snowflake). [`Snowflake::builder`](crate::Snowflake::builder)
/// returns the defaults.
///
/// | option | default | meaning |
/// |---|---|---|
/// | `layout` | `twitter` | a preset's name, a layout string, or a [`Layout`] |
/// | `node` | none: required | a number for all node bits, or one for each node field |
/// | `max_backward_ms` | 1000 | how far the clock may step back while IDs are still issued |
/// | `max_ahead_ms` | 0 | how far IDs may run ahead of the clock to serve a burst |
/// | `max_wait_ms` | a tick + 1000 | the longest time that `next_id` waits, or a batch between two runs |
/// | `sequence_start` | `spread` | the first sequence number of a fresh tick, or `zero` |
/// | `clock` | `system` | the wall clock, or `steady` |
/// | `lease` | none | the address of a store that leases the node (`std`, and the crate `polyflake-coordination`) |
/// | `state` | none | a file through which all processes on this host share the node (`std`, Unix) |
///
/// The three millisecond options accept 0 to 4294967295. Setting an option again replaces its value.
///
/// ```
/// use polyflake::{Options, Snowflake};
/// let ids = Snowflake::builder()
///     .layout("twitter")
///     .node([("datacenter", 1), ("worker", 8)])
///     .max_backward_ms(50)
///     .build()?;
/// assert_eq!(ids.node(), 40);
///
/// let mut options = Options::default();
/// options.set("node", "datacenter=1,worker=9")?;
/// assert_eq!(options.build()?.node(), 41);
/// # Ok::<(), polyflake::Error>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "options do nothing until they are built"]
pub struct Options {
    layout: Layout,
    node: Option<Node>,
    max_backward_ms: u32,
    max_ahead_ms: u32,
    max_wait_ms: Option<u32>,
    sequence_start: SequenceStart,
    clock: ClockName,
    state: Option<StatePath>,
    lease: Option<LeaseAddress>,
    /// The first error from a chained setter. `build` returns it.
    error: Option<Error>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            layout: Layout::default(),
            node: None,
            max_backward_ms: 1000,
            max_ahead_ms: 0,
            max_wait_ms: None,
            sequence_start: SequenceStart::default(),
            clock: ClockName::default(),
            state: None,
            lease: None,
            error: None,
        }
    }
}

impl Options {
    /// Sets an option by name, with its value as a string. All languages share this parser.
    ///
    /// A node is checked against the layout when the Snowflake is built.
    ///
    /// # Errors
    ///
    /// `invalid_layout`, `unknown_layout` or `invalid_option`. On error, the options are unchanged.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), Error> {
        match name {
            LAYOUT => self.layout = Layout::parse(value)?,
            NODE => self.node = Some(Node::parse(value)),
            MAX_BACKWARD_MS => self.max_backward_ms = ms(MAX_BACKWARD_MS, Number::parse(value))?,
            MAX_AHEAD_MS => self.max_ahead_ms = ms(MAX_AHEAD_MS, Number::parse(value))?,
            MAX_WAIT_MS => self.max_wait_ms = Some(ms(MAX_WAIT_MS, Number::parse(value))?),
            SEQUENCE_START => self.sequence_start = value.parse()?,
            CLOCK => self.clock = value.parse()?,
            #[cfg(feature = "std")]
            STATE => self.state = Some(state_path(value.into())?),
            LEASE => self.lease = Some(LeaseAddress::new(value)?),
            _ => return Err(unknown(name)),
        }
        Ok(())
    }

    /// Returns true if an option with this name exists.
    #[doc(hidden)]
    #[must_use]
    pub fn has(name: &str) -> bool {
        NAMES.contains(&name)
    }

    /// Like [`set`](Self::set), but with the option's name in camelCase (`maxWaitMs`), for JavaScript.
    ///
    /// # Errors
    ///
    /// The same as for [`set`](Self::set).
    pub fn set_camel_case(&mut self, name: &str, value: &str) -> Result<(), Error> {
        match NAMES.iter().copied().find(|option| camel_case(option).eq(name.chars())) {
            Some(option) => self.set(option, value),
            None => Err(unknown(name)),
        }
    }

    /// Sets the layout: a [`Layout`], the name of a preset, or a layout string.
    pub fn layout<L: TryInto<Layout>>(mut self, layout: L) -> Self
    where
        Error: From<L::Error>,
    {
        match layout.try_into() {
            Ok(layout) => self.layout = layout,
            Err(error) => self.keep(error.into()),
        }
        self
    }

    /// Sets the node, which no other process may use at the same time.
    pub fn node(mut self, node: impl Into<Node>) -> Self {
        self.node = Some(node.into());
        self
    }

    /// Sets one field of the node, for callers that store the fields separately. Discards any whole node set
    /// earlier.
    pub fn node_field(mut self, name: &str, value: impl Into<Number>) -> Self {
        self.node = Some(self.node.unwrap_or(Node::NO_FIELDS).and_field(name, value.into()));
        self
    }

    /// Sets how far the clock may step back, in ms, before IDs stop. Within this limit, IDs continue in the
    /// last tick. After a larger step back, calls return `clock_moved_backwards`; with 0, they do so after
    /// every step back of a tick or more.
    pub fn max_backward_ms(mut self, value: impl Into<Number>) -> Self {
        match ms(MAX_BACKWARD_MS, value.into()) {
            Ok(value) => self.max_backward_ms = value,
            Err(error) => self.keep(error),
        }
        self
    }

    /// Sets how many ms IDs may run ahead of the clock to serve a burst.
    pub fn max_ahead_ms(mut self, value: impl Into<Number>) -> Self {
        match ms(MAX_AHEAD_MS, value.into()) {
            Ok(value) => self.max_ahead_ms = value,
            Err(error) => self.keep(error),
        }
        self
    }

    /// Sets how long `next_id` may wait, or a batch between two runs, in ms of real time. With 0, neither
    /// ever waits.
    pub fn max_wait_ms(mut self, value: impl Into<Number>) -> Self {
        match ms(MAX_WAIT_MS, value.into()) {
            Ok(value) => self.max_wait_ms = Some(value),
            Err(error) => self.keep(error),
        }
        self
    }

    /// Sets the first sequence number of a fresh tick.
    pub const fn sequence_start(mut self, start: SequenceStart) -> Self {
        self.sequence_start = start;
        self
    }

    /// Selects the built-in clock that [`build`](Self::build) uses.
    pub const fn clock(mut self, clock: ClockName) -> Self {
        self.clock = clock;
        self
    }

    /// Returns the ID for an instant (rounded down to its tick) and a sequence number, using the layout and
    /// node of these options, as [`Layout::compose`] does. For callers that set the node's fields one by one.
    ///
    /// # Errors
    ///
    /// The same as for [`Layout::compose`], and the first error from a chained setter.
    pub fn compose(&self, time: impl Into<UnixTime>, sequence: impl Into<Number>) -> Result<u64, Error> {
        if let Some(error) = self.error {
            return Err(error);
        }
        self.layout.compose(time, self.node.unwrap_or(Node::NO_FIELDS), sequence)
    }

    fn keep(&mut self, error: Error) {
        self.error.get_or_insert(error);
    }

    /// Checks the options against each other.
    pub(crate) fn resolve(&self) -> Result<Resolved, Error> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let layout = self.layout;
        let node = match (&self.node, &self.lease) {
            // The lease will supply the node.
            (_, Some(_)) => 0,
            (Some(node), None) => node.resolve(&layout)?,
            (None, None) => Node::missing(&layout)?,
        };
        if self.lease.is_some() && self.state.is_some() {
            return Err(error!(
                InvalidOption,
                "state and lease are both given; give one: a lease makes the node safe on all hosts without a file"
            ));
        }
        let default_wait = u32::try_from(layout.tick_ms().saturating_add(WAIT_MARGIN_MS)).unwrap_or(u32::MAX);
        Ok(Resolved {
            layout,
            node,
            tolerance: Tolerance { max_backward_ms: self.max_backward_ms, max_ahead_ms: self.max_ahead_ms },
            max_wait_ms: self.max_wait_ms.unwrap_or(default_wait),
            sequence_start: self.sequence_start,
            clock: self.clock,
            state: self.state.clone(),
            has_lease: self.lease.is_some(),
        })
    }
}

/// [`Options`] that have been checked against each other.
pub(crate) struct Resolved {
    pub(crate) layout: Layout,
    pub(crate) node: u64,
    pub(crate) tolerance: Tolerance,
    pub(crate) max_wait_ms: u32,
    pub(crate) sequence_start: SequenceStart,
    pub(crate) clock: ClockName,
    pub(crate) state: Option<StatePath>,
    pub(crate) has_lease: bool,
}

impl Resolved {
    pub(crate) fn key(&self) -> Key {
        Key::of(&self.layout, self.node)
    }

    /// Returns an error if the options name a lease, for builds that cannot use one.
    pub(crate) fn refuse_lease(&self) -> Result<(), Error> {
        // Without `std`, no lease can be set, and WebAssembly does not need the message.
        if cfg!(not(feature = "std")) || !self.has_lease {
            return Ok(());
        }
        Err(error!(
            InvalidOption,
            "lease is given, but a Snowflake built this way cannot lease: use the system's clock or the steady one, and in Rust \
             call `open` of the crate polyflake-coordination"
        ))
    }

    pub(crate) fn rule(&self) -> Rule {
        Rule::new(&self.layout, self.node, self.tolerance, self.sequence_start)
    }
}

#[cfg(feature = "std")]
impl Options {
    /// Like [`set`](Self::set), but the value need not be UTF-8, such as the path of a state file.
    ///
    /// # Errors
    ///
    /// The same as for [`set`](Self::set). Messages about other options show U+FFFD in place of invalid
    /// UTF-8.
    pub fn set_os(&mut self, name: &str, value: &std::ffi::OsStr) -> Result<(), Error> {
        if name == STATE {
            self.state = Some(state_path(value.into())?);
            return Ok(());
        }
        self.set(name, &value.to_string_lossy())
    }

    /// Sets the file that holds the node's cursor, so that all processes on this host that use the file share
    /// the node. If the file does not exist, it is created, readable and writable only by its owner.
    ///
    /// All Snowflakes with the same node in a process must use the same file, or none at all. A Snowflake
    /// built before a fork keeps working in the children.
    pub fn state(mut self, path: impl Into<std::path::PathBuf>) -> Self {
        match state_path(path.into()) {
            Ok(path) => self.state = Some(path),
            Err(error) => self.keep(error),
        }
        self
    }
}

/// The parts of a Snowflake's options that a lease needs.
#[cfg(feature = "std")]
#[doc(hidden)]
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LeaseTerms {
    /// The store's address as given. It may contain secrets.
    pub address: std::string::String,
    /// The layout.
    pub layout: Layout,
    /// A mask of the node bits that are given, and their value.
    pub fixed: (u64, u64),
    /// How far IDs may run ahead of the clock.
    pub max_ahead_ms: u32,
}

#[cfg(feature = "std")]
impl Options {
    /// Sets the address of the store that leases the node, such as `redis://host/0`. `node` is then optional:
    /// setting only some of its fields narrows the choice, and setting the whole node leases exactly that
    /// node.
    ///
    /// `polyflake_coordination::open` builds such a Snowflake.
    pub fn lease(mut self, address: &str) -> Self {
        match LeaseAddress::new(address) {
            Ok(address) => self.lease = Some(address),
            Err(error) => self.keep(error),
        }
        self
    }

    /// The parts of these options that a lease needs, or `None` without a lease.
    ///
    /// # Errors
    ///
    /// The same as for `build`.
    #[doc(hidden)]
    pub fn lease_terms(&self) -> Result<Option<LeaseTerms>, Error> {
        let resolved = self.resolve()?;
        let Some(LeaseAddress(address)) = &self.lease else { return Ok(None) };
        let fixed = self.node.unwrap_or(Node::NO_FIELDS).fixed_bits(&resolved.layout)?;
        Ok(Some(LeaseTerms {
            address: address.clone(),
            layout: resolved.layout,
            fixed,
            max_ahead_ms: resolved.tolerance.max_ahead_ms,
        }))
    }
}

/// The address of the store that leases the node.
#[cfg(feature = "std")]
#[derive(Clone)]
struct LeaseAddress(std::string::String);

#[cfg(feature = "std")]
impl LeaseAddress {
    fn new(address: &str) -> Result<Self, Error> {
        if address.is_empty() {
            return Err(error!(
                InvalidOption,
                "lease is ``; it takes the address of a store, such as redis://host/0"
            ));
        }
        Ok(Self(address.into()))
    }
}

/// Hides the address, because it may contain a password.
#[cfg(feature = "std")]
impl core::fmt::Debug for LeaseAddress {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("LeaseAddress")
    }
}

/// The address of the store that leases the node. Without `std`, no value of this type can exist.
#[cfg(not(feature = "std"))]
#[derive(Debug, Clone)]
enum LeaseAddress {}

#[cfg(not(feature = "std"))]
impl LeaseAddress {
    fn new(_: &str) -> Result<Self, Error> {
        Err(error!(InvalidOption, "lease needs a network, which WebAssembly does not have: give node"))
    }
}

#[cfg(feature = "std")]
fn state_path(path: std::path::PathBuf) -> Result<StatePath, Error> {
    if path.as_os_str().is_empty() {
        return Err(error!(InvalidOption, "state is ``; it takes the path of a file"));
    }
    Ok(path)
}

fn ms(option: &str, value: Number) -> Result<u32, Error> {
    let ms = value.in_range(option, 0, u32::MAX.into())?;
    // `in_range` has just checked this.
    Ok(u32::try_from(ms).unwrap_or(u32::MAX))
}

fn unknown(name: &str) -> Error {
    const TEMPLATE: &str = if cfg!(feature = "std") {
        "there is no option `%`; the options are layout, node, max_backward_ms, max_ahead_ms, max_wait_ms, sequence_start, \
         clock, state, lease"
    } else {
        "there is no option `%`; the options are layout, node, max_backward_ms, max_ahead_ms, max_wait_ms, sequence_start, clock"
    };
    Error::unknown_option(TEMPLATE, name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn errors_name_the_option_and_its_value() {
        let mut options = Options::default();
        for (name, value, says) in [
            ("max_wait_ms", "-1", "max_wait_ms is -1; it takes a whole number from 0 to 4294967295"),
            ("max_ahead_ms", "4294967296", "max_ahead_ms is 4294967296"),
            ("max_backward_ms", "1.5", "max_backward_ms is 1.5"),
            ("sequence_start", "random", "sequence_start is `random`; it takes zero or spread"),
            ("clock", "atomic", "clock is `atomic`; it takes system or steady"),
            ("nodes", "1", "no option `nodes`; the options are layout, node,"),
            // The name and value are swapped, or the option is the wrong one.
            ("redis://user:secret@host/0", "lease", "no option `redis://…`; the options are layout, node,"),
            ("max_wait_ms", "redis://user:secret@host/0", "max_wait_ms is redis://…; it takes"),
            ("clock", "redis://user:secret@host/0", "clock is `redis://…`; it takes"),
            ("sequence_start", "redis://user:secret@host/0", "sequence_start is `redis://…`; it takes"),
        ] {
            let error = options.set(name, value).unwrap_err().to_string();
            assert!(error.starts_with("invalid_option: ") && error.contains(says), "{error}");
        }
        options.set_camel_case("maxWaitMs", "5").unwrap();
        assert_eq!(options.max_wait_ms, Some(5));
        for (name, value, says) in [
            ("maxAheadMs", "x", "maxAheadMs is x;"),
            ("sequenceStart", "x", "sequenceStart is `x`; it takes zero or spread"),
            (
                "max_wait_ms",
                "1",
                "no option `max_wait_ms`; the options are layout, node, maxBackwardMs, maxAheadMs",
            ),
        ] {
            let error = options.set_camel_case(name, value).unwrap_err().camel_case().to_string();
            assert!(error.contains(says), "{error}");
        }
        let unknown = unknown("x").to_string();
        let listed = unknown.split("the options are ").last().unwrap().split(", ");
        assert!(listed.eq(NAMES), "{unknown}");
        for name in ["node", "layout"] {
            let mut options = Options::default();
            let error =
                options.set(name, "redis://user:secret@host/0").and_then(|()| options.resolve().map(drop));
            let error = error.unwrap_err().to_string();
            assert!(error.contains("//…") && !error.contains("secret"), "{error}");
        }
        let missing = Options::default().resolve().err().unwrap().to_string();
        assert!(missing.contains("node is missing; it takes a whole number from 0 to 1023"), "{missing}");
        let first = Options::default().layout("nope").max_wait_ms(-1).node(1).resolve().err().unwrap();
        assert_eq!(first.code(), crate::ErrorCode::UnknownLayout);
    }
}
