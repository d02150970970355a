//! Polyflake's calls.

use polyflake::{Layout, Options, Snowflake};

use crate::measure::{BATCH, Batches};
use crate::suite::{BATCHES, DECODE, DECODE_ALL, Suite};
use crate::{ids_to_decode, some_ids};

const WIDE: &str = "timestamp:40|worker:2|sequence:22@1735689600000/1ms";
const WIDER: &str = "timestamp:38|worker:1|sequence:25@1735689600000/1ms";

/// On a busy machine, one of two threads may wait a long time for the other, and must not give up.
fn options() -> Options {
    Snowflake::builder().max_wait_ms(600_000)
}

fn on_node(node: u64) -> Snowflake {
    options().node(node).build().expect("the options are right")
}

fn on_layout(layout: &str) -> Snowflake {
    options().layout(layout).node(1).build().expect("the layout is right")
}

fn next_id(ids: &Snowflake) -> u64 {
    ids.next_id().expect("an ID within the longest wait")
}

fn fill(ids: &Snowflake, buffer: &mut [u64; BATCH]) {
    ids.fill(buffer).expect("IDs within the longest wait");
}

pub fn add(suite: &mut Suite) {
    suite.shared("polyflake next_id", || {
        let ids = on_node(1);
        move || next_id(&ids)
    });
    suite.owned("polyflake LocalSnowflake", || {
        let mut ids = on_node(1).into_local();
        move || ids.next_id().expect("an ID within the longest wait")
    });

    // With `spread`, a tick has at least 3,072 IDs.
    suite.batches(BATCHES, "polyflake fill", Batches { burst: 3, bursts: 40 }, || {
        let ids = on_node(1);
        move |buffer| fill(&ids, buffer)
    });
    let many = Batches { burst: 1000, bursts: 8 };
    suite.batches(BATCHES, "polyflake fill, 22-bit sequence", many, || {
        let ids = on_layout(WIDE);
        move |buffer| fill(&ids, buffer)
    });
    suite.batches(BATCHES, "polyflake fill, 25-bit sequence", many, || {
        let ids = on_layout(WIDER);
        move |buffer| fill(&ids, buffer)
    });

    suite.singles(DECODE, "polyflake Layout::decode", || {
        let layout = Layout::parse("twitter").expect("a preset");
        some_ids(move |id| {
            let decoded = layout.decode(id).expect("an ID of this layout");
            [decoded.timestamp_ms(), decoded.node(), decoded.sequence()]
        })
    });
    let all = "polyflake Layout::decode_all, timestamps_ms";
    suite.batches(DECODE_ALL, all, Batches { burst: 100, bursts: 8 }, || {
        let (layout, ids) = (Layout::parse("twitter").expect("a preset"), ids_to_decode());
        move |buffer| {
            let decoded = layout.decode_all(&ids).expect("IDs of this layout");
            for (time, decoded) in buffer.iter_mut().zip(decoded.timestamps_ms()) {
                *time = decoded;
            }
        }
    });
}
