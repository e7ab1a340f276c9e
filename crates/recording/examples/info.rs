//! Prints what a recording contains: topics, types, counts, rates, sizes.
//!
//! `cargo run -p ropewalk-recording --example info -- FILE`

use std::process::ExitCode;

use recording::Recording;

fn main() -> ExitCode {
    let Some(path) = std::env::args_os().nth(1) else {
        eprintln!("usage: info FILE");
        return ExitCode::from(2);
    };
    let recording = match Recording::open(&path) {
        Ok(recording) => recording,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    let summary = recording.measure();
    let seconds = summary.duration().as_secs_f64();
    println!(
        "{:<32} {:<32} {:>8} {:>9} {:>12} {:>9}",
        "topic", "type", "messages", "Hz", "bytes", "Mbit/s"
    );
    for (topic, of) in &summary.topics {
        let bytes = of.bytes.unwrap_or(0);
        let per_second = |amount: f64| if seconds > 0.0 { amount / seconds } else { 0.0 };
        println!(
            "{topic:<32} {:<32} {:>8} {:>9.2} {bytes:>12} {:>9.3}",
            of.type_name,
            of.messages,
            per_second(of.messages as f64),
            per_second(bytes as f64 * 8e-6),
        );
    }
    println!("{} messages in {seconds:.3} s", summary.messages);
    if !recording.is_indexed() {
        println!("without index");
    }
    match recording.damage() {
        Some(damage) => {
            eprintln!("{damage}");
            ExitCode::from(1)
        }
        None => ExitCode::SUCCESS,
    }
}
