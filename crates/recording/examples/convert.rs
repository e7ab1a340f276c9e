//! Rewrites a recording as MCAP, or, if the target does not end in `.mcap`, as a folder of rosbag2. Without a source,
//! it records the simulated room for ten seconds.
//!
//! `cargo run -p ropewalk-recording --example convert -- TARGET [SOURCE]`

use std::error::Error;
use std::process::ExitCode;

use recording::write::{Options, Writer};
use recording::{Set, Summary, simulation};

fn main() -> ExitCode {
    let mut paths = std::env::args_os().skip(1);
    let Some(target) = paths.next() else {
        eprintln!("usage: convert TARGET [SOURCE]");
        return ExitCode::from(2);
    };
    let written = match paths.next() {
        Some(source) => convert(source.as_ref(), target.as_ref()),
        None => simulation::write(target, 10.0, 1, &Options::default()).map_err(Into::into),
    };
    match written {
        Ok(summary) => {
            println!(
                "{} messages in {:.3} s",
                summary.messages,
                summary.duration().as_secs_f64()
            );
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(1)
        }
    }
}

fn convert(source: &std::path::Path, target: &std::path::Path) -> Result<Summary, Box<dyn Error>> {
    let source = Set::open(&[source])?;
    let mut writer = if target.extension().is_some_and(|end| end == "mcap") {
        Writer::create(target, &Options::default())?
    } else {
        Writer::create_rosbag2(target, &Options::default())?
    };
    for (_, channel) in source.channels() {
        writer.add_channel(channel)?;
    }
    for message in source.messages() {
        let message = message?;
        writer.write(
            message.channel,
            message.log_time,
            message.publish_time,
            &message.data,
        )?;
    }
    Ok(writer.finish()?)
}
