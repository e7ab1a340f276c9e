//! `ropewalk web`: a page for operators.

use super::reach::{Reach, shown_host};
use crate::failure::{OrFail, Outcome};
use crate::screen::tell;
use crate::signals::Signals;
use clap::Args;
use ropewalk::Node;
use std::sync::Arc;
use std::time::Duration;
use web::foxglove::FoxgloveOptions;
use web::page::Dashboard;

/// Show this host's links and bus on a page in the browser
///
/// Runs until Ctrl-C and prints the address to open. The page shows peers,
/// topics with their losses by reason, what happened, use of the air, a camera
/// and a laser scan, and changes priorities. What nobody looks at is not taken
/// from the bus:
///
///   ropewalk web
///
/// Other machines need a token, which gives a role: view, or operate to change
/// settings of links. Nothing is encrypted: beyond a network that you trust,
/// use a tunnel.
///
///   ropewalk web --host 0.0.0.0 --token operate=$(openssl rand -hex 16)
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Options {
    /// The port.
    #[arg(long, short, default_value_t = 8766)]
    port: u16,
    #[command(flatten)]
    reach: Reach,
    /// Topics not to show as pictures and scans, names or patterns (may be repeated).
    #[arg(long, value_name = "PATTERN", num_args = 1..)]
    exclude: Vec<String>,
}

/// Runs the server.
pub(crate) fn run(options: &Options) -> Outcome {
    for pattern in &options.exclude {
        bridge::check(pattern, true).or_input()?;
    }
    let mut shown = FoxgloveOptions::default();
    shown.exclude = options.exclude.clone();
    let access = options.reach.access()?.without_foxglove();
    let has_token = access.has_tokens();
    let signals = Signals::watch().or_job("watching signals")?;
    let node = Node::new("web").or_input()?;
    let site = Arc::new(Dashboard::start(node, shown).or_job("starting a thread")?);
    let server = options.reach.serve(options.port, access, site.clone())?;
    let (host, port) = (shown_host(server.address()), server.address().port());
    let token = if has_token { "/#token=TOKEN" } else { "" };
    tell!("open http://{host}:{port}{token}");
    while !signals.stopped() {
        std::thread::sleep(Duration::from_millis(50));
    }
    drop(server);
    Ok(())
}
