//! Linker settings for a Node addon. On Linux the addon is never unloaded, because that would drop the process's
//! cursors, and IDs would repeat.

fn main() {
    napi_build::setup();
}
