//! `ropewalk service info`.

use super::to_json;
use crate::command::endpoints::{self, hex, who};
use crate::failure::{Failure, OrFail, Outcome};
use clap::Args;
use ropewalk::Node;
use schema::{did_you_mean, nearest};
use std::io::Write;

#[derive(Args)]
pub(super) struct Options {
    /// The service.
    service: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(node: &Node, options: &Options) -> Outcome {
    let full = format!("/{}", options.service.trim_start_matches('/'));
    let survey = node.survey().or_input()?;
    let all = survey.services();
    let services: Vec<_> = all.iter().filter(|s| s.service.service == full).collect();
    if services.is_empty() {
        let near = nearest(&full, all.iter().map(|s| s.service.service.as_str()));
        let near = did_you_mean(near);
        let silent = endpoints::but_silent(&survey);
        return Err(Failure::input(format_args!(
            "no program serves or calls {full}{near}; `ropewalk service list` lists the services{silent}"
        )));
    }
    let mut out = crate::screen::stdout();
    // Several if the programs disagree about the type.
    for info in services {
        let definition = info.service.definition.trim_end();
        let written = if options.json {
            let mut json = to_json(info);
            json["definition"] = definition.into();
            writeln!(out, "{json:#}")
        } else {
            writeln!(
                out,
                "{full}\ntype     {}\nmd5      {}\nservers  {}\nclients  {}\n\n{definition}",
                info.service.type_name,
                hex(&info.service.type_hash),
                who(&info.servers),
                who(&info.clients),
            )
        };
        written.or_job("writing")?;
    }
    Ok(())
}
