//! What the shared library needs and cargo does not give it.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let linux = std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux");
    if linux {
        // The number goes up with POLYFLAKE_ABI_VERSION.
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libpolyflake.so.0");
        // Never unloaded: the cursors of the process's nodes would go with it, and their IDs come again.
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
