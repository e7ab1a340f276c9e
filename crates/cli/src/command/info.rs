//! `ropewalk info`: what a recording contains.

use crate::failure::{OrFail, Outcome};
use crate::numbers;
use clap::Args;
use recording::{Set, TopicSummary};
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;
use terminal::table::{Align, Table};

/// Print what a recording contains: time, topics, types, number of messages
///
///   ropewalk info drive.mcap
///   ropewalk info drive.bag --json
///
/// Reads the formats of `ropewalk play`: .bag, .mcap and .db3 files and folders
/// of rosbag2. Adds up several recordings.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Options {
    /// Recordings.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(options: &Options) -> Outcome {
    let set = Set::open(&options.files).or_input()?;
    let summary = set.summary();
    let mut out = crate::screen::stdout();
    let seconds = summary.duration().as_secs_f64();
    if options.json {
        let topic = |(name, t): (&String, &TopicSummary)| json!({ "topic": name, "type": t.type_name, "messages": t.messages, "bytes": t.bytes });
        let at = |time: Option<stats::Time>| time.map(|t| t.as_nanos() as f64 / 1e9);
        let all = json!({
            "start_s": at(summary.start), "end_s": at(summary.end), "duration_s": seconds,
            "messages": summary.messages, "topics": summary.topics.iter().map(topic).collect::<Vec<_>>(),
        });
        return writeln!(out, "{all:#}").or_job("writing");
    }
    let start = summary.start.map_or("none".into(), |start| {
        format!("{} UTC", numbers::date(start.as_nanos() / 1_000_000_000))
    });
    let mut text = format!(
        "start     {start}\nduration  {seconds:.3} s\nmessages  {}\n\n",
        summary.messages
    );
    let mut table = Table::new(&[
        ("topic", Align::Left),
        ("type", Align::Left),
        ("messages", Align::Right),
        ("Hz", Align::Right),
    ]);
    for (name, topic) in &summary.topics {
        let hz = match topic.messages {
            0 | 1 => "-".into(),
            _ if seconds <= 0.0 => "-".into(),
            n => format!("{:.1}", n as f64 / seconds),
        };
        table.row([
            name.clone(),
            topic.type_name.clone(),
            topic.messages.to_string(),
            hz,
        ]);
    }
    text += &table.lines().join("\n");
    writeln!(out, "{text}").or_job("writing")
}
