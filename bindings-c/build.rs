//! Linker arguments for the shared library that cargo has no setting for.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let linux = std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux");
    if linux {
        // The number is POLYFLAKE_ABI_VERSION.
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libpolyflake.so.0");
        // Never unload the library: the process's cursors would be lost, and their IDs repeated.
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
