//! What a Node addon needs of the linker. On Linux it is never unloaded: the cursors of the process's nodes would
//! go with it, and their IDs come again.

fn main() {
    napi_build::setup();
}
