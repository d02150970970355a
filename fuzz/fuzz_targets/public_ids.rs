#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| polyflake_fuzz::public_ids(data));
