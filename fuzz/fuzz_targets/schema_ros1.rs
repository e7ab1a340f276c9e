#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| schema::fuzzing::ros1_split(data));
