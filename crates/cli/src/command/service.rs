//! `ropewalk service`: looking at services, and calling them by hand.

use super::endpoints::{self, hex, who};
use crate::failure::{Failure, OrFail, Outcome};
use crate::numbers;
use bench::table::{Align, Table};
use clap::{Args, Subcommand};
use ropewalk::{Node, ServiceInfo};
use schema::Show;
use serde_json::{Value, json};
use std::io::Write;
use std::time::{Duration, Instant};

/// Lists, shows and calls services of this host's bus.
#[derive(Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Services with their types, servers and clients.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// One service: its type, its definition, who serves and who calls it.
    Info {
        /// The service.
        service: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Call a service with a request written as YAML: ropewalk service call /add_two_ints '{a: 1, b: 2}'
    Call(Call),
}

#[derive(Args)]
struct Call {
    /// The service.
    service: String,
    /// The request as YAML or JSON; fields left out have their defaults.
    #[arg(value_name = "YAML", default_value = "{}", allow_hyphen_values = true)]
    request: String,
    /// Give up after so many seconds, waiting for a server included.
    #[arg(long, default_value_t = 10.0, value_parser = numbers::seconds)]
    timeout: f64,
    /// Print the answer as a line of JSON.
    #[arg(long)]
    json: bool,
    /// Show arrays in full.
    #[arg(long)]
    full: bool,
}

/// Runs one of the commands.
pub(crate) fn run(options: &Options) -> Outcome {
    let node = Node::new("service").or_input()?;
    match &options.what {
        What::List { json } => list(&node, *json),
        What::Info { service, json } => info(&node, service, *json),
        What::Call(call) => run_call(&node, call),
    }
}

fn to_json(info: &ServiceInfo) -> Value {
    json!({ "service": info.service.service, "type": info.service.type_name,
            "md5": hex(&info.service.type_hash),
            "servers": endpoints::to_json(&info.servers), "clients": endpoints::to_json(&info.clients) })
}

fn list(node: &Node, as_json: bool) -> Outcome {
    let survey = node.survey().or_input()?;
    let services = survey.services();
    let mut out = crate::screen::stdout();
    if as_json {
        let services: Vec<_> = services.iter().map(to_json).collect();
        let all = json!({ "services": services, "silent": endpoints::silent_json(&survey) });
        return writeln!(out, "{all:#}").or_job("writing");
    }
    if let Some(silent) = endpoints::silent(&survey) {
        crate::screen::tell!("{silent}");
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

fn info(node: &Node, service: &str, as_json: bool) -> Outcome {
    let full = format!("/{}", service.trim_start_matches('/'));
    let survey = node.survey().or_input()?;
    let mut services = survey.services();
    services.retain(|s| s.service.service == full);
    if services.is_empty() {
        let silent = endpoints::but_silent(&survey);
        return Err(Failure::input(format_args!(
            "nobody serves or calls {full}; `ropewalk service list` shows what there is{silent}"
        )));
    }
    let mut out = crate::screen::stdout();
    // More than one if they disagree about the type.
    for info in &services {
        let definition = info.service.definition.trim_end();
        let written = if as_json {
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

fn run_call(node: &Node, call: &Call) -> Outcome {
    let timeout = Duration::from_secs_f64(call.timeout);
    let start = Instant::now();
    let left = || timeout.saturating_sub(start.elapsed());
    let schema = node.discover_service(&call.service, timeout).or_input()?;
    let request = schema.request().value_from_yaml(&call.request).or_input()?;
    let client = node.client(&call.service, &schema).or_input()?;
    client.wait_for_server(left()).or_job("waiting for the server")?;
    let answer = client.call_value(&request, left());
    let answer = answer.map_err(Failure::job)?;
    let show = if call.full { Show::ALL } else { Show::SHORT };
    let mut out = crate::screen::stdout();
    let written = if call.json {
        writeln!(out, "{}", answer.to_json(show))
    } else {
        writeln!(out, "{}", answer.to_yaml(show).trim_end())
    };
    written.or_job("writing")
}
