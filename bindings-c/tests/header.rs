//! include/polyflake.h is what cbindgen generates from the sources. `POLYFLAKE_BLESS=1` rewrites it.

#[test]
fn the_header_is_up_to_date() {
    let folder = env!("CARGO_MANIFEST_DIR");
    let config = cbindgen::Config::from_root_or_default(folder);
    let mut header = Vec::new();
    cbindgen::generate_with_config(folder, config).expect("cbindgen").write(&mut header);
    let header = String::from_utf8(header).unwrap();
    let path = format!("{folder}/include/polyflake.h");
    if std::env::var_os("POLYFLAKE_BLESS").is_some() {
        std::fs::write(&path, &header).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == header, "include/polyflake.h is stale: run `make header`");
}
