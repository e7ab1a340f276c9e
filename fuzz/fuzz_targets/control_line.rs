#![no_main]
#![allow(
    dead_code,
    reason = "the tool is a program: its line parser is compiled in, along with code that executes the lines"
)]

#[path = "../../crates/cli/src/command/control/body.rs"]
mod body;
#[path = "../../crates/cli/src/command/control/kinds.rs"]
mod kinds;
#[path = "../../crates/cli/src/command/control/line.rs"]
mod line;
#[path = "../../crates/cli/src/numbers.rs"]
mod numbers;
#[path = "../../crates/cli/src/command/control/shorthand.rs"]
mod shorthand;

libfuzzer_sys::fuzz_target!(|data: &[u8]| line::fuzz(data));
