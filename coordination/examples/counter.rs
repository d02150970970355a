//! Prints numbers from a counter in the given store: `counter STORE [NAME] [N]`.

use polyflake_coordination::Counter;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let store = arguments.next().ok_or("give a store, such as sqlite:///tmp/counters.db")?;
    let name = arguments.next().unwrap_or_else(|| "orders".into());
    let n: usize = arguments.next().map_or(Ok(5), |n| n.parse())?;
    let counter = Counter::open(&name, &store)?;
    for number in counter.iter().take(n) {
        println!("{}", number?);
    }
    counter.close();
    Ok(())
}
