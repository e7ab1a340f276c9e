#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| rtps::fuzzing::participant_operations(data));
