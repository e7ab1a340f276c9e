#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| proto::fuzzing_relay::relay(data));
