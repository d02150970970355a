//! Tells rustc whether this is built for a Python with a GIL or without one.

fn main() {
    pyo3_build_config::use_pyo3_cfgs();
}
