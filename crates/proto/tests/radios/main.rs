//! Radios in virtual time.
#![allow(missing_docs, reason = "tests")]

mod ahead;
mod bulk;
mod cable;
mod common;
mod day;
mod duty;
mod faults;
mod greeting;
mod hostile;
mod lateness;
mod liars;
mod pound;
mod rated_cable;
mod recording;
mod redundant;
mod relay;
mod reliable;
mod scheduling;
mod sharing;
mod unknown_rate;
mod watched;

mod withdrawal;
