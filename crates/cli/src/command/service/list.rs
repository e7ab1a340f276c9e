//! `ropewalk service list`.

use super::to_json;
use crate::command::endpoints::{self, who};
use crate::failure::{OrFail, Outcome};
use crate::graph::{Graph, is_hidden};
use clap::Args;
use ropewalk::{Node, ServiceInfo};
use serde_json::json;
use std::io::Write;
use terminal::table::{Align, Table};

#[derive(Args)]
pub(super) struct Options {
    /// Print only name and type of each service, one per line.
    #[arg(short = 't', long)]
    show_types: bool,
    /// Print only the number of services.
    #[arg(short = 'c', long = "count-services")]
    count: bool,
    /// Also list hidden services, such as the parts of actions: a word of the name starts with an underscore.
    #[arg(short, long, alias = "include-hidden-services")]
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
    let services = shown(survey.services(), options);
    let mut out = crate::screen::stdout();
    if options.json {
        let services: Vec<_> = services.iter().map(to_json).collect();
        let all = json!({ "services": services, "silent": endpoints::silent_json(&survey) });
        return writeln!(out, "{all:#}").or_job("writing");
    }
    if let Some(silent) = endpoints::silent(&survey) {
        crate::screen::tell!("{silent}");
    }
    if options.count {
        let mut names: Vec<_> = services.iter().map(|s| &s.service.service).collect();
        names.dedup();
        return writeln!(out, "{}", names.len()).or_job("writing");
    }
    if services.is_empty() {
        crate::screen::tell!("no services in {}", node.bus().config().runtime_dir.display());
        return Ok(());
    }
    let mut table = Table::new(&[
        ("service", Align::Left),
        ("type", Align::Left),
        ("servers", Align::Left),
        ("clients", Align::Left),
    ]);
    for s in &services {
        table.row([
            s.service.service.clone(),
            s.service.type_name.clone(),
            who(&s.servers),
            who(&s.clients),
        ]);
    }
    writeln!(out, "{}", table.lines().join("\n")).or_job("writing")
}

fn shown(mut services: Vec<ServiceInfo>, options: &Options) -> Vec<ServiceInfo> {
    services.retain(|s| options.all || !is_hidden(&s.service.service));
    services
}

/// Prints a line for each service, as `ros2 service list -t` does.
fn names(node: &Node, options: &Options) -> Outcome {
    let graph = Graph::look(node)?;
    let services = shown(graph.survey.services(), options);
    let line = |s: &ServiceInfo| {
        let kind = &s.service;
        (
            kind.service.clone(),
            graph.type_of(&kind.service, &kind.type_name, kind.flavour.ros, "srv"),
        )
    };
    let lines: Vec<_> = services.iter().map(line).collect();
    let mut out = crate::screen::stdout();
    if options.json {
        let services: Vec<_> = lines
            .iter()
            .map(|(name, ty)| json!({ "service": name, "type": ty }))
            .collect();
        return writeln!(out, "{:#}", json!({ "services": services })).or_job("writing");
    }
    lines
        .iter()
        .try_for_each(|(name, ty)| writeln!(out, "{name} [{ty}]"))
        .or_job("writing")
}
