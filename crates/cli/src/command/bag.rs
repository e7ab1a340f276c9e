//! `ropewalk bag`: recordings, in the words of `ros2 bag`.

use super::{info, play, record};
use crate::failure::Outcome;
use clap::{Args, Subcommand};

#[derive(Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    Play(play::Options),
    Record(record::Options),
    Info(info::Options),
}

/// Runs the subcommand.
pub(crate) fn run(options: &Options) -> Outcome {
    match &options.what {
        What::Play(options) => play::run(options),
        What::Record(options) => record::run(options),
        What::Info(options) => info::run(options),
    }
}
