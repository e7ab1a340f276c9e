#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| schema::fuzzing::cdr_split(data));
