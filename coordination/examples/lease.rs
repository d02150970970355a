//! Leases a node: `cargo run -p polyflake-coordination --example lease redis://127.0.0.1/0`.

use polyflake::Snowflake;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address =
        std::env::args().nth(1).ok_or("give the address of a store, such as redis://127.0.0.1/0")?;
    polyflake_coordination::set_listener(Some(Box::new(|event| eprintln!("{}: {event}", event.kind.name()))));
    let ids = polyflake_coordination::open(&Snowflake::builder().lease(&address))?;
    println!("{}", ids.next_id()?);
    println!("{:?}", ids.lease()?);
    ids.close();
    Ok(())
}
