//! What a Node addon needs from the linker. On Linux the addon is never unloaded: that would drop the process's cursors,
//! and IDs would repeat.

fn main() {
    napi_build::setup();
}
