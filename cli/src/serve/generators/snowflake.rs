//! Snowflakes, usually with a leased node.

use polyflake::{Layout, LeaseState, Snowflake, ThreadWait};

use super::{Generator, Ids, Made, Options};
use crate::serve::error::Error;

struct Snowflakes(Snowflake);

/// With `node` or `state`, no store is needed; otherwise the generator leases a node.
pub(super) fn make(options: &Options) -> Result<Made, Error> {
    let mut builder = Snowflake::builder();
    let mut has_lease = false;
    let mut needs_lease = true;
    for (name, values) in options.all() {
        let [value] = values else { return Err(Error::option(name, "it takes one value")) };
        has_lease |= name == "lease";
        needs_lease &= name != "state" && (name != "node" || value.parse::<u64>().is_err());
        builder.set(name, value).map_err(|error| Error::from(error).about_option(name))?;
    }
    if !has_lease && needs_lease {
        builder = builder.lease(&options.store()?);
        has_lease = true;
    }
    let why_alone = match (has_lease, options.get("node")?, options.get("state")?) {
        (false, Some(node), _) => Some(format!("has node {node}, which no store leased to it")),
        (false, None, Some(_)) => Some("keeps its state in a file on this host".into()),
        _ => None,
    };
    let made = Made::new(move || {
        let ids = if has_lease { polyflake_coordination::open(&builder)? } else { builder.build()? };
        Ok(Box::new(Snowflakes(ids)))
    });
    Ok(made.snowflakes(why_alone))
}

impl Generator for Snowflakes {
    fn ids(&self, n: usize) -> Result<Ids, Error> {
        let mut ids = vec![0; n];
        self.0.fill(&mut ids)?;
        Ok(Ids::Numbers(ids))
    }

    fn try_ids(&self, n: usize) -> Result<Ids, Error> {
        let mut ids = vec![0; n];
        if let Err(blocked) = self.0.poll_fill(&mut ids) {
            ids.truncate(blocked.filled());
        }
        Ok(Ids::Numbers(ids))
    }

    fn block(&self, n: usize) -> Result<u64, Error> {
        check_block(n)?;
        Ok(self.0.next_id_with(&mut ThreadWait::new())?)
    }

    fn try_block(&self, n: usize) -> Result<Option<u64>, Error> {
        check_block(n)?;
        Ok(self.0.poll_next_id().ok())
    }

    fn layout(&self) -> Option<Layout> {
        Some(*self.0.layout())
    }

    fn trouble(&self) -> Option<String> {
        match self.0.lease() {
            Ok(Some(lease)) if matches!(lease.state, LeaseState::Lost | LeaseState::Closed) => {
                Some(format!("the lease is {}", lease.state.name()))
            }
            Ok(_) => None,
            Err(error) => Some(error.to_string()),
        }
    }

    #[allow(clippy::cast_precision_loss, reason = "for graphs")]
    fn facts(&self) -> Vec<(&'static str, f64)> {
        let mut facts = Vec::new();
        if let Ok(stats) = self.0.stats() {
            facts.extend([
                ("waits_total", stats.waits as f64),
                ("rollbacks_total", stats.rollbacks as f64),
                ("lead_seconds", stats.lead_ms as f64 / 1e3),
                ("lease_losses_total", stats.lease_losses as f64),
            ]);
        }
        if let Ok(Some(lease)) = self.0.lease() {
            let is_held = matches!(lease.state, LeaseState::Held | LeaseState::Unreachable);
            facts.extend([
                ("node", lease.node as f64),
                ("lease_held", f64::from(u8::from(is_held))),
                ("store_reachable", f64::from(u8::from(lease.state == LeaseState::Held))),
                ("lease_left_seconds", lease.left_ms as f64 / 1e3),
            ]);
        }
        facts
    }

    fn close(&self) {
        self.0.close();
    }
}

/// Other nodes issue IDs that lie between two of this node's IDs, so blocks are impossible.
fn check_block(n: usize) -> Result<(), Error> {
    if n == 1 {
        return Ok(());
    }
    Err(Error::invalid(format!("Snowflakes are not consecutive: use PF.NEXT for {n} of them")))
}
