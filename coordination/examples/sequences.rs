//! Keeps a separate count for each key.
//!
//! `cargo run -p polyflake-coordination --example sequences -- sqlite:///tmp/numbers.db alice bob alice`

use polyflake_coordination::Sequences;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let store = arguments.next().ok_or("give the address of a store, and keys")?;
    let inbox = Sequences::open("inbox", &store)?;
    for key in arguments {
        println!("{key}: {}", inbox.next_id(&key)?);
    }
    inbox.close();
    Ok(())
}
