#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| recording::fuzzing::db3(data));
