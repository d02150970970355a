//! Checks that include/polyflake.h is what cbindgen generates from the sources. `POLYFLAKE_BLESS=1` rewrites it.

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

#[test]
fn the_header_lists_the_options_of_a_snowflake() {
    let header =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/include/polyflake.h")).unwrap();
    let (_, list) = header.split_once("Options of a Snowflake:").unwrap();
    let (list, _) = list.split_once("The values in ms").unwrap();
    // Explanations that continue on another line are indented.
    let listed = list
        .lines()
        .filter_map(|line| line.strip_prefix(" * ")?.split("  ").next())
        .filter(|it| !it.is_empty());
    let unknown = polyflake::Options::default().set("?", "").unwrap_err().to_string();
    let (_, known) = unknown.split_once("the options are ").unwrap();
    assert_eq!(listed.collect::<Vec<_>>(), known.split(", ").collect::<Vec<_>>());
}
