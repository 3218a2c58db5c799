#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolsearch_fuzz::sse(data));
