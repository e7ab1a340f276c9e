//! `ropewalk service call`.

use crate::command::optional_type::Content;
use crate::command::waiting::Waiting;
use crate::failure::{Failure, OrFail, Outcome};
use crate::numbers;
use crate::signals::Signals;
use clap::Args;
use ropewalk::Node;
use schema::Show;
use std::io::Write;
use std::time::{Duration, Instant};

/// Call a service with a request in YAML
///
///   ropewalk service call /add_two_ints '{a: 1, b: 2}'
///   ropewalk service call /brake 'data: true'
///   ropewalk service call /brake std_srvs/srv/SetBool '{data: true}' --rate 1
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Options {
    /// The service.
    service: String,
    #[command(flatten)]
    request: Content,
    /// Give up after this many seconds, including the wait for a server.
    #[arg(long, default_value_t = 10.0, value_parser = numbers::seconds)]
    timeout: f64,
    /// Call the service at this rate, until Ctrl-C.
    #[arg(short, long, value_name = "HZ", value_parser = numbers::rate)]
    rate: Option<f64>,
    /// Print each answer as a line of JSON.
    #[arg(long)]
    json: bool,
    /// Show arrays in full.
    #[arg(long)]
    full: bool,
}

pub(super) fn run(node: &Node, call: &Options) -> Outcome {
    let timeout = Duration::from_secs_f64(call.timeout);
    let start = Instant::now();
    let left = || timeout.saturating_sub(start.elapsed());
    let waiting = Waiting::on(format!("a server of {}", call.service));
    let schema = node.discover_service(&call.service, timeout).or_input()?;
    let text = call.request.yaml(&call.service, &schema.name())?;
    let request = schema.request().value_from_yaml(text).or_input()?;
    let client = node.dynamic_client(&call.service, &schema).or_input()?;
    client.wait_for_server(left()).or_job("waiting for the server")?;
    drop(waiting);
    let show = if call.full { Show::ALL } else { Show::SHORT };
    let mut out = crate::screen::stdout();
    let mut once = |timeout: Duration| {
        let answer = client.call_value(&request, timeout).map_err(Failure::job)?;
        let written = if call.json {
            writeln!(out, "{}", answer.to_json(show))
        } else {
            writeln!(out, "{}", answer.to_yaml(show).trim_end())
        };
        written.and_then(|()| out.flush()).or_job("writing")
    };
    let Some(rate) = call.rate else {
        return once(left());
    };
    let signals = Signals::watch().or_job("watching signals")?;
    let mut due = clock::monotonic();
    while clock::sleep_until(due, Duration::ZERO, || signals.stopped()).or_job("waiting")? {
        once(timeout)?;
        due = (due + Duration::from_secs_f64(1.0 / rate)).max(clock::monotonic());
    }
    Ok(())
}
