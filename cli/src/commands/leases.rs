//! `polyflake leases`: shows which node each process holds.

use std::fmt::Write as _;

use clap::Args;
use polyflake::{Layout, Node, PRESETS, UnixTime};
use polyflake_coordination::{Admin, LeasesOf, Listing, NodeRecord, Space, Target};
use serde::Serialize;

use super::{LayoutArg, StoreArg};
use crate::failure::Failure;
use crate::output;
use crate::picture::{BOLD, DIM, WARN};
use crate::question::Yes;
use crate::reading::shown;
use crate::when::{self, Zone, ZoneArg};
use crate::words;

/// Show who holds which node in a store, or change that by hand
#[derive(Debug, Args)]
#[command(after_help = "\
The namespace comes from the address (`?namespace=shop`); otherwise it is `default`. Changes affect the nodes of one layout; the command \
asks before each.")]
pub(crate) struct Leases {
    #[command(flatten)]
    store: StoreArg,
    #[command(flatten)]
    change: Change,
    #[command(flatten)]
    layout: LayoutArg,
    /// With --init and --fence: the sequences with this name, instead of a layout's nodes
    #[arg(long, value_name = "NAME", requires = "Change", conflicts_with_all = ["reset", "layout", "max_ahead_ms"])]
    sequences: Option<String>,
    /// With --init and --fence: how far this fleet's IDs may run ahead of the clock
    #[arg(long, value_name = "MS", default_value = "0")]
    max_ahead_ms: u32,
    /// With --reset: even if the node's lease has not expired
    #[arg(long, requires = "reset")]
    force: bool,
    #[command(flatten)]
    yes: Yes,
    #[command(flatten)]
    zone: ZoneArg,
    /// Print JSON, one line per space
    #[arg(long, conflicts_with_all = ["init", "fence", "reset"])]
    json: bool,
}

#[derive(Debug, Args)]
#[group(multiple = false)]
struct Change {
    /// Declare that nobody has leased a node in this store before, so that nobody waits
    #[arg(long)]
    init: bool,
    /// After restoring the store: new leases begin only after all IDs that current holders may still issue
    #[arg(long)]
    fence: bool,
    /// Free a node whose bound a wrong clock moved far ahead: a number, or fields such as `datacenter=1,worker=7`
    #[arg(long, value_name = "NODE")]
    reset: Option<String>,
}

impl Leases {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let layout = self.layout.layout()?;
        let zone = &self.zone.zone()?;
        let mut store = self.store.open()?;
        let target = self.sequences.as_deref().map_or(Target::Layout(&layout), Target::Sequences);
        if self.change.init {
            self.init(&mut store, target)
        } else if self.change.fence {
            self.fence(&mut store, target, zone)
        } else if let Some(node) = &self.change.reset {
            self.reset(&mut store, &layout, node, zone)
        } else {
            self.show(&mut store, zone)
        }
    }

    fn init(&self, store: &mut Admin, target: Target<'_>) -> Result<(), Failure> {
        let at = place(store, target);
        self.yes.confirm(&match target {
            Target::Layout(_) => format!(
                "Has nobody ever leased a node of {at}, or has every process that did ended? Otherwise, IDs repeat."
            ),
            Target::Sequences(_) => {
                format!("Has nobody ever owned {at}, or has every process that did ended? Otherwise, numbers repeat.")
            }
        })?;
        let is_new = store.init(target, self.max_ahead_ms)?;
        output::print(if is_new { "Done: nobody waits.\n" } else { "Nobody waits already.\n" })
    }

    fn fence(&self, store: &mut Admin, target: Target<'_>, zone: &Zone) -> Result<(), Failure> {
        let at = place(store, target);
        self.yes.confirm(&format!(
            "Set a fence for {at}? No new lease begins before it has passed; existing leases go on."
        ))?;
        let until_ms = store.fence(target, self.max_ahead_ms)?;
        let from_now = words::from_now(until_ms, when::now_ms());
        output::print(&format!("Done: new leases begin at {}, {from_now}.\n", zone.shown(until_ms)))
    }

    fn reset(&self, store: &mut Admin, layout: &Layout, node: &str, zone: &Zone) -> Result<(), Failure> {
        // The core parses nodes when it composes IDs.
        let any = layout.compose(UnixTime::from_ms(layout.epoch_ms()), Node::parse(node), 0)?;
        let node = layout.decode(any)?.node();
        let at = place(store, Target::Layout(layout));
        let risk = if self.force { " Its holder must have ended: otherwise IDs repeat." } else { "" };
        self.yes.confirm(&format!("Reset node {node} of {at}?{risk}"))?;
        let from_ms = store.reset(layout, node, self.force)?;
        let from_now = words::from_now(from_ms, when::now_ms());
        output::print(&format!("Done: node {node} can issue from {}, {from_now}.\n", zone.shown(from_ms)))
    }

    fn show(&self, store: &mut Admin, zone: &Zone) -> Result<(), Failure> {
        let difference_ms = store.address().clock_difference_ms;
        let all = store.leases()?;
        if self.json {
            return all
                .iter()
                .try_for_each(|(of, listing)| output::json(&Json::of(of, listing, difference_ms)));
        }
        let namespace = &store.address().namespace;
        if all.is_empty() {
            return output::print(&format!("No node was ever leased in namespace {}.\n", shown(namespace)));
        }
        let texts: Vec<_> =
            all.iter().map(|(of, listing)| text_of(of, listing, difference_ms, zone)).collect();
        output::print(&texts.join("\n"))
    }
}

/// Names the target and the store, for questions to the user.
fn place(store: &Admin, target: Target<'_>) -> String {
    let address = store.address();
    let what = match target {
        Target::Layout(layout) => format!("layout {}", crate::picture::name_of(layout)),
        Target::Sequences(name) => format!("sequences {name:?}"),
    };
    format!("{what} in namespace {} of {address}", address.namespace)
}

/// The presets to which these nodes belong.
fn presets(space: &Space) -> Vec<&'static str> {
    PRESETS
        .iter()
        .filter(|preset| Space::of(&space.namespace, &preset.layout) == *space)
        .map(|preset| preset.name)
        .collect()
}

fn text_of(of: &LeasesOf, listing: &Listing, difference_ms: u64, zone: &Zone) -> String {
    let (now_ms, space) = (listing.now_ms, of.space());
    let is_of_sequences = matches!(of, LeasesOf::Sequences { .. });
    let mut text = format!("{BOLD}{}{BOLD:#}", shown(&of.to_string()));
    let names = presets(space);
    if !names.is_empty() {
        let _ = write!(text, "  {DIM}as {}{DIM:#}", names.join(", "));
    }
    text.push('\n');
    if let Some(fence) = fence_of(listing, space, zone) {
        let _ = writeln!(text, "  {WARN}{fence}{WARN:#}");
    }
    let mut nodes: Vec<_> = listing.nodes.iter().collect();
    nodes.sort_by_key(|node| node.node);
    if nodes.is_empty() {
        let one = if is_of_sequences { "nobody has ever owned them" } else { "no node was leased" };
        let _ = writeln!(text, "  {one}");
        return text;
    }
    if !is_of_sequences {
        let held = nodes.iter().filter(|node| node.is_held(now_ms, difference_ms)).count();
        let _ = writeln!(text, "  {DIM}{held} of {} that were ever leased are held{DIM:#}", nodes.len());
    }
    for node in nodes {
        let label = shown(&node.label);
        let state = match state(node, now_ms, difference_ms) {
            "held" => {
                let since = words::from_now(node.since_ms, now_ms);
                let until = words::from_now(node.expires_ms, now_ms);
                format!("by {label}  {DIM}since {since}, expires {until} unless renewed{DIM:#}")
            }
            "expired" => {
                let expired = words::from_now(node.expires_ms, now_ms);
                format!("{DIM}free: the lease of {label} expired {expired}{DIM:#}")
            }
            _ => format!("{DIM}free: given back by {label}{DIM:#}"),
        };
        let bound_ms = space.start_ms(node.reserved_until);
        // --reset is for a bound that is far ahead of the clock.
        let bound = if !is_of_sequences && bound_ms > now_ms && !node.is_held(now_ms, difference_ms) {
            format!("  {WARN}can issue from {}{WARN:#}", zone.shown(bound_ms))
        } else {
            String::new()
        };
        let of_one =
            if is_of_sequences { "owned".into() } else { format!("node {BOLD}{:<6}{BOLD:#}", node.node) };
        let _ = writeln!(text, "  {of_one} {state}{bound}");
    }
    text
}

/// Returns a warning if new leases must wait for a fence, or if the next lease will set one.
fn fence_of(listing: &Listing, space: &Space, zone: &Zone) -> Option<String> {
    let record = listing.space.as_ref()?;
    if record.incarnation != listing.incarnation {
        return Some("the store may have lost writes since: the next lease sets a fence".into());
    }
    let until_ms = space.start_ms(record.fence);
    let is_ahead = record.fence > 0 && until_ms > listing.now_ms;
    is_ahead.then(|| {
        let from_now = words::from_now(until_ms, listing.now_ms);
        format!("fenced: new leases begin at {}, {from_now}", zone.shown(until_ms))
    })
}

fn state(node: &NodeRecord, now_ms: u64, difference_ms: u64) -> &'static str {
    if node.is_held(now_ms, difference_ms) {
        "held"
    } else if node.token.is_empty() {
        "free"
    } else {
        "expired"
    }
}

#[derive(Serialize)]
struct Json<'a> {
    namespace: &'a str,
    space: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    sequences: Option<&'a str>,
    presets: Vec<&'static str>,
    store_time_ms: u64,
    incarnation: &'a str,
    lead_ms: Option<u64>,
    fence_ms: Option<u64>,
    is_fenced: bool,
    lost_writes: bool,
    nodes: Vec<JsonNode<'a>>,
}

#[derive(Serialize)]
struct JsonNode<'a> {
    node: u64,
    state: &'static str,
    label: &'a str,
    since_ms: u64,
    expires_ms: u64,
    bound_ms: u64,
}

impl<'a> Json<'a> {
    fn of(of: &'a LeasesOf, listing: &'a Listing, difference_ms: u64) -> Self {
        let space = of.space();
        let sequences = match of {
            LeasesOf::Sequences { name, .. } => Some(&**name),
            LeasesOf::Layout(_) => None,
        };
        let record = listing.space.as_ref();
        let fence_ms = record.map(|record| if record.fence == 0 { 0 } else { space.start_ms(record.fence) });
        let mut nodes: Vec<_> = listing
            .nodes
            .iter()
            .map(|node| JsonNode {
                node: node.node,
                state: state(node, listing.now_ms, difference_ms),
                label: &node.label,
                since_ms: node.since_ms,
                expires_ms: node.expires_ms,
                bound_ms: space.start_ms(node.reserved_until),
            })
            .collect();
        nodes.sort_by_key(|node| node.node);
        Self {
            namespace: &space.namespace,
            space: space.to_string(),
            sequences,
            presets: presets(space),
            store_time_ms: listing.now_ms,
            incarnation: &listing.incarnation,
            lead_ms: record.map(|record| record.lead_ms),
            fence_ms,
            is_fenced: fence_ms.is_some_and(|fence_ms| fence_ms > listing.now_ms),
            lost_writes: record.is_some_and(|record| record.incarnation != listing.incarnation),
            nodes,
        }
    }
}
