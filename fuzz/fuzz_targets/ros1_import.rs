#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| ros1::fuzzing::import(data));
