#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| ros2::fuzzing::endpoint(data));
