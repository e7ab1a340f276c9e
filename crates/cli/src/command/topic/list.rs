//! `ropewalk topic list`.

use crate::command::endpoints::{self, hex, who};
use crate::failure::{OrFail, Outcome};
use crate::graph::{Graph, is_hidden};
use bus::{Survey, TopicInfo};
use clap::Args;
use ropewalk::Node;
use serde_json::json;
use std::io::Write;
use terminal::table::{Align, Table};

#[derive(Args)]
pub(super) struct Options {
    /// Print only name and type of each topic, one per line.
    #[arg(short = 't', long)]
    show_types: bool,
    /// Print only the number of topics.
    #[arg(short = 'c', long = "count-topics")]
    count: bool,
    /// Also list hidden topics: a word of the name starts with an underscore.
    #[arg(short, long, alias = "include-hidden-topics")]
    all: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(node: &Node, options: &Options) -> Outcome {
    if options.show_types {
        return names(node, options);
    }
    let survey = node.survey().or_input()?;
    let topics = shown(&survey, options);
    let mut out = crate::screen::stdout();
    if options.json {
        let topics: Vec<_> = (topics.iter())
            .map(|t| {
                json!({ "topic": t.topic.topic, "type": t.topic.type_name, "md5": hex(&t.topic.type_hash),
                        "publishers": endpoints::to_json(&t.publishers),
                        "subscribers": endpoints::to_json(&t.subscribers) })
            })
            .collect();
        let all = json!({ "topics": topics, "silent": endpoints::silent_json(&survey) });
        return writeln!(out, "{all:#}").or_job("writing");
    }
    if let Some(silent) = endpoints::silent(&survey) {
        crate::screen::tell!("{silent}");
    }
    if options.count {
        let mut names: Vec<_> = topics.iter().map(|t| &t.topic.topic).collect();
        names.dedup();
        return writeln!(out, "{}", names.len()).or_job("writing");
    }
    let mut table = Table::new(&[
        ("topic", Align::Left),
        ("type", Align::Left),
        ("publishers", Align::Left),
        ("subscribers", Align::Left),
    ]);
    for t in &topics {
        table.row([
            t.topic.topic.clone(),
            t.topic.type_name.clone(),
            who(&t.publishers),
            who(&t.subscribers),
        ]);
    }
    if topics.is_empty() {
        crate::screen::tell!("no topics in {}", node.bus().config().runtime_dir.display());
        return Ok(());
    }
    writeln!(out, "{}", table.lines().join("\n")).or_job("writing")
}

/// Topics that are not parts of services, by name.
fn shown<'a>(survey: &'a Survey, options: &Options) -> Vec<&'a TopicInfo> {
    let topics = survey.topics.iter().filter(|t| !t.is_of_service());
    topics
        .filter(|t| options.all || !is_hidden(&t.topic.topic))
        .collect()
}

/// Prints a line for each topic, as `ros2 topic list -t` does.
fn names(node: &Node, options: &Options) -> Outcome {
    let graph = Graph::look(node)?;
    if let Some(silent) = endpoints::silent(&graph.survey) {
        crate::screen::tell!("{silent}");
    }
    let mut out = crate::screen::stdout();
    let topics = shown(&graph.survey, options);
    let mut lines: Vec<(&str, String)> = Vec::new();
    for t in topics {
        let ty = graph.type_of(&t.topic.topic, &t.topic.type_name, t.topic.flavour.ros, "msg");
        match lines.last_mut() {
            Some((name, types)) if *name == t.topic.topic => *types += &format!(", {ty}"),
            _ => lines.push((&t.topic.topic, ty)),
        }
    }
    if options.json {
        let topics: Vec<_> = lines
            .iter()
            .map(|(name, ty)| json!({ "topic": name, "type": ty }))
            .collect();
        return writeln!(out, "{:#}", json!({ "topics": topics })).or_job("writing");
    }
    lines
        .iter()
        .try_for_each(|(name, ty)| writeln!(out, "{name} [{ty}]"))
        .or_job("writing")
}
