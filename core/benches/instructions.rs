//! `instructions PATH CALLS` calls one path of the core CALLS times; without arguments, it lists the paths.
//! `tools/instructions` counts the instructions the calls take and compares them with `instructions.txt`.

use std::hint::black_box;

use polyflake::{
    BuiltinClock, ClockError, Error, Format, Layout, LeaseKeeper, Options, PublicIdKey, PublicIds, Snowflake,
    StdTime,
};

type Run = fn(u64) -> Result<(), Error>;

const PATHS: [(&str, Run); 14] = [
    ("next_id, held clock", next_id_held),
    ("next_id, system clock", next_id_system),
    ("next_id by lease, system clock", leased_next_id_system),
    ("next_id of one owner, held clock", local_next_id_held),
    ("next_id of one owner, system clock", local_next_id_system),
    ("fill of 1024, held clock", fill_held),
    ("decode", decode),
    ("layout from text", layout_from_text),
    ("base62 from ID", base62_from_id),
    ("ID from base62", id_from_base62),
    ("public ID from ID", public_id_from_id),
    ("ID from public ID", id_from_public_id),
    // Both counts must be the same: a branch on a key's digits would reveal them.
    ("public key of digits", public_key_of_digits),
    ("public key of letters", public_key_of_letters),
];

/// A tick holds more IDs than a run takes, so no call waits.
const WIDE: &str = "timestamp:32|worker:2|sequence:28@1735689600000/1s";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // `cargo bench` adds `--bench`.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let [path, calls] = arguments.as_slice() else {
        for (name, _) in PATHS {
            println!("{name}");
        }
        return Ok(());
    };
    let (_, run) = PATHS.iter().find(|(name, _)| name == path).ok_or("no such path")?;
    Ok(run(calls.parse()?)?)
}

/// Callgrind counts only inside this function: `tools/instructions` knows it by name.
#[inline(never)]
fn counted(calls: u64, mut call: impl FnMut() -> Result<(), Error>) -> Result<(), Error> {
    for _ in 0..calls {
        call()?;
    }
    Ok(())
}

/// A clock that stands still, at a time unknown to the compiler.
fn held() -> impl Fn() -> Result<i64, ClockError> {
    let now_ms = black_box(1_767_225_600_000);
    move || Ok(now_ms)
}

fn options() -> Options {
    Snowflake::builder().layout(WIDE).node(1)
}

fn next_id_held(calls: u64) -> Result<(), Error> {
    let ids = options().build_with_clock(held())?;
    ids.next_id()?;
    counted(calls, || ids.next_id().map(|id| _ = black_box(id)))
}

fn next_id_system(calls: u64) -> Result<(), Error> {
    let ids = options().build()?;
    // The first call waits for the next tick; the others do not.
    ids.next_id()?;
    counted(calls, || ids.next_id().map(|id| _ = black_box(id)))
}

/// The store for a lease that never expires.
#[derive(Debug)]
struct Granted;

impl LeaseKeeper for Granted {
    fn wake(&self) {}

    fn joined(&self) {}

    fn left(&self, _: bool) {}

    fn store(&self) -> &'static str {
        ""
    }

    fn retry_after_ms(&self) -> u64 {
        0
    }

    fn is_reachable(&self) -> bool {
        true
    }
}

fn leased_next_id_system(calls: u64) -> Result<(), Error> {
    let options = options().lease("redis://host");
    let lease = options.new_lease(Box::new(Granted))?;
    lease.hold(1, 0, u64::MAX);
    let ids = options.build_on_lease(lease, StdTime, |clock: BuiltinClock| clock)?;
    ids.next_id()?;
    counted(calls, || ids.next_id().map(|id| _ = black_box(id)))
}

fn local_next_id_held(calls: u64) -> Result<(), Error> {
    let mut ids = options().build_with_clock(held())?.into_local();
    ids.next_id()?;
    counted(calls, || ids.next_id().map(|id| _ = black_box(id)))
}

fn local_next_id_system(calls: u64) -> Result<(), Error> {
    let mut ids = options().build()?.into_local();
    ids.next_id()?;
    counted(calls, || ids.next_id().map(|id| _ = black_box(id)))
}

fn fill_held(calls: u64) -> Result<(), Error> {
    let ids = options().max_ahead_ms(60_000).build_with_clock(held())?;
    let mut buffer = [0; 1024];
    ids.fill(&mut buffer)?;
    counted(calls, || ids.fill(black_box(&mut buffer)))
}

fn decode(calls: u64) -> Result<(), Error> {
    let layout = black_box(Layout::parse("twitter")?);
    counted(calls, || {
        black_box(&layout.decode(black_box(1_541_815_603_606_036_480_u64))?);
        Ok(())
    })
}

fn layout_from_text(calls: u64) -> Result<(), Error> {
    counted(calls, || {
        black_box(&Layout::parse(black_box(WIDE))?);
        Ok(())
    })
}

fn base62_from_id(calls: u64) -> Result<(), Error> {
    counted(calls, || {
        black_box(&Format::Base62.write(black_box(1_541_815_603_606_036_480)));
        Ok(())
    })
}

fn id_from_base62(calls: u64) -> Result<(), Error> {
    let text = Format::Base62.write(1_541_815_603_606_036_480);
    counted(calls, || {
        black_box(Format::Base62.read(black_box(text.as_str()))?);
        Ok(())
    })
}

fn orders() -> Result<PublicIds, Error> {
    PublicIds::from_texts(&["pfk_10kvEGTqNtUTXFUlMnM4wIa"], "order")
}

fn public_id_from_id(calls: u64) -> Result<(), Error> {
    let orders = orders()?;
    counted(calls, || {
        black_box(&orders.encode(black_box(1_541_815_603_606_036_480)));
        Ok(())
    })
}

fn id_from_public_id(calls: u64) -> Result<(), Error> {
    let orders = orders()?;
    let text = orders.encode(1_541_815_603_606_036_480);
    counted(calls, || {
        black_box(orders.decode(black_box(text.as_str()))?);
        Ok(())
    })
}

fn public_key_of_digits(calls: u64) -> Result<(), Error> {
    public_key(calls, "pfk_11112345678901234567890")
}

fn public_key_of_letters(calls: u64) -> Result<(), Error> {
    public_key(calls, "pfk_11zAbCdEfGhIjKlMnOpQrSt")
}

fn public_key(calls: u64, text: &str) -> Result<(), Error> {
    counted(calls, || {
        black_box(PublicIdKey::parse(black_box(text))?);
        Ok(())
    })
}
