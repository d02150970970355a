//! Says which Python this is built for: with a GIL or without.

fn main() {
    pyo3_build_config::use_pyo3_cfgs();
}
