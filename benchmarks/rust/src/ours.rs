//! Polyflake's calls.

use std::sync::atomic::{AtomicU64, Ordering};

use polyflake::{Layout, Options, Snowflake};

use crate::measure::{BATCH, Batches};
use crate::suite::{About, BATCHES, DECODE, DECODE_ALL, SHARED, Suite};
use crate::{ids_to_decode, some_ids};

const WIDE: &str = "timestamp:40|worker:2|sequence:22@1735689600000/1ms";
const WIDER: &str = "timestamp:38|worker:1|sequence:25@1735689600000/1ms";

/// On a busy machine one of two threads may wait long for the other, and must not give up.
fn options() -> Options {
    Snowflake::builder().max_wait_ms(600_000)
}

/// Call it with a different node each time: two Snowflakes with the same node share a cursor.
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
    let ours = About::of("polyflake next_id");
    suite.shared(&ours, || {
        let ids = on_node(1);
        move || next_id(&ids)
    });

    let wide = About {
        time_of: Some(|id| i64::try_from(id >> 24).expect("40 bits") + 1_735_689_600_000),
        ..About::of("polyflake next_id, 22-bit sequence")
    };
    suite.singles(SHARED, &wide, || {
        let ids = on_layout(WIDE);
        move || next_id(&ids)
    });

    suite.owned(&About::of("polyflake LocalSnowflake"), || {
        // A new node each time: a single owner shares its cursor with nobody.
        static NODE: AtomicU64 = AtomicU64::new(7);
        let mut ids = on_node(NODE.fetch_add(1, Ordering::Relaxed)).into_local();
        move || ids.next_id().expect("an ID within the longest wait")
    });

    // A tick has at least 3,072 with `spread`.
    let few = Batches { burst: 3, bursts: 40 };
    let many = Batches { burst: 1000, bursts: 8 };
    let twitter = About::of("polyflake fill");
    suite.batches(BATCHES, &twitter, few, || {
        let ids = on_node(2);
        move |buffer| fill(&ids, buffer)
    });
    let wide = About { name: "polyflake fill, 22-bit sequence", ..wide };
    suite.batches(BATCHES, &wide, many, || {
        let ids = on_layout(WIDE);
        move |buffer| fill(&ids, buffer)
    });
    let wider = About {
        time_of: Some(|id| i64::try_from(id >> 26).expect("38 bits") + 1_735_689_600_000),
        ..About::of("polyflake fill, 25-bit sequence")
    };
    suite.batches(BATCHES, &wider, many, || {
        let ids = on_layout(WIDER);
        move |buffer| fill(&ids, buffer)
    });

    let one = About::of("polyflake Layout::decode");
    suite.singles(DECODE, &one, || {
        let layout = Layout::parse("twitter").expect("a preset");
        some_ids(move |id| {
            let decoded = layout.decode(id).expect("an ID of this layout");
            [decoded.timestamp_ms(), decoded.node(), decoded.sequence()]
        })
    });
    let all = About::of("polyflake Layout::decode_all, timestamps_ms");
    suite.batches(DECODE_ALL, &all, Batches { burst: 100, bursts: 8 }, || {
        let (layout, ids) = (Layout::parse("twitter").expect("a preset"), ids_to_decode());
        move |buffer| {
            let decoded = layout.decode_all(&ids).expect("IDs of this layout");
            for (time, decoded) in buffer.iter_mut().zip(decoded.timestamps_ms()) {
                *time = decoded;
            }
        }
    });
}
