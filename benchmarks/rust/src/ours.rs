//! Polyflake's calls.

use polyflake::{Layout, Options, Snowflake};
use serde_json::json;

use crate::measure::{BATCH, Batches};
use crate::suite::{
    About, BATCHES, DECODE, DECODE_ALL, FULL_LOAD, FULL_LOAD_TWO, Role, SHARED, Suite, TWO_THREADS,
};
use crate::{ids_to_decode, some_ids, twitter_time};

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
    let ours = About {
        subject: "polyflake next_id",
        package: "polyflake",
        role: Role::Ours,
        reads_clock: true,
        ticker: false,
        capacity: 4096,
        time_of: twitter_time,
        note: "",
    };
    let at_most = |ratio: f64| json!({"what": "ratio", "at_most": ratio});
    let over_floor = json!([{"what": "over floor", "at_most": 4}]);
    let at_full_load = json!([{"what": "value", "at_least": 99.5}]);

    suite.shared(&ours, || {
        let ids = on_node(1);
        move || next_id(&ids)
    });
    suite.target(SHARED, ours.subject, over_floor.clone());
    suite.target(TWO_THREADS, ours.subject, json!([at_most(0.8)]));
    suite.target(FULL_LOAD, ours.subject, at_full_load.clone());
    suite.target(FULL_LOAD_TWO, ours.subject, at_full_load.clone());

    let wide = About {
        subject: "polyflake next_id, 22-bit sequence",
        time_of: |id| i64::try_from(id >> 24).expect("40 bits") + 1_735_689_600_000,
        ..ours
    };
    suite.singles(SHARED, &wide, || {
        let ids = on_layout(WIDE);
        move || next_id(&ids)
    });

    #[cfg(feature = "local")]
    {
        use std::sync::atomic::{AtomicU64, Ordering};

        let local = About { subject: "polyflake LocalSnowflake", ..ours };
        suite.owned(&local, || {
            // A new node each time: a single owner shares its cursor with nobody.
            static NODE: AtomicU64 = AtomicU64::new(7);
            let mut ids = on_node(NODE.fetch_add(1, Ordering::Relaxed)).into_local();
            move || ids.next_id().expect("an ID within the longest wait")
        });
        suite.target(crate::suite::OWNED, local.subject, over_floor);
        suite.target(FULL_LOAD, local.subject, at_full_load);
    }

    // A tick has at least 3,072 with `spread`.
    let few = Batches { burst: 3, bursts: 40 };
    let many = Batches { burst: 1000, bursts: 8 };
    let under_a_quarter_ns = json!([at_most(0.35), {"what": "value", "at_most": 0.25}]);
    let twitter = About { subject: "polyflake fill", ..ours };
    suite.batches(BATCHES, &twitter, few, || {
        let ids = on_node(2);
        move |buffer| fill(&ids, buffer)
    });
    // No target: the best peer's bursts are as long as those of the wide layouts.
    let wide = About { subject: "polyflake fill, 22-bit sequence", ..wide };
    suite.batches(BATCHES, &wide, many, || {
        let ids = on_layout(WIDE);
        move |buffer| fill(&ids, buffer)
    });
    suite.target(BATCHES, wide.subject, under_a_quarter_ns.clone());
    let wider = About {
        subject: "polyflake fill, 25-bit sequence",
        time_of: |id| i64::try_from(id >> 26).expect("38 bits") + 1_735_689_600_000,
        ..ours
    };
    suite.batches(BATCHES, &wider, many, || {
        let ids = on_layout(WIDER);
        move |buffer| fill(&ids, buffer)
    });
    suite.target(BATCHES, wider.subject, under_a_quarter_ns);

    let one = About { subject: "polyflake Layout::decode", ..ours.clone() };
    suite.singles(DECODE, &one, || {
        let layout = Layout::parse("twitter").expect("a preset");
        some_ids(move |id| {
            let decoded = layout.decode(id).expect("an ID of this layout");
            [decoded.timestamp_ms(), decoded.node(), decoded.sequence()]
        })
    });
    let all = About { subject: "polyflake Layout::decode_all, timestamps_ms", ..ours };
    suite.batches(DECODE_ALL, &all, Batches { burst: 100, bursts: 8 }, || {
        let (layout, ids) = (Layout::parse("twitter").expect("a preset"), ids_to_decode());
        move |buffer| {
            let decoded = layout.decode_all(&ids).expect("IDs of this layout");
            for (time, decoded) in buffer.iter_mut().zip(decoded.timestamps_ms()) {
                *time = decoded;
            }
        }
    });
    suite.target(DECODE_ALL, all.subject, json!([{"what": "value", "at_most": 3}]));
}
