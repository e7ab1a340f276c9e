//! Queries and changes running links of this host.

use crate::command::endpoints::but_silent;
use crate::failure::{Failure, OrFail, Outcome};
use clap::{Args, Subcommand};
use link::control::Change;
use observe::{AccountState, AskError, Asked, Drops, LinkState, ServiceRole};
use ropewalk::Node;
use schema::{did_you_mean, nearest};
use serde_json::{Value, json};
use std::io::Write;
use std::time::{Duration, Instant};
use terminal::table::{Align, Table};

/// How long a link may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Subcommand)]
pub(crate) enum What {
    Set(Set),
    Status(Status),
}

/// Change a topic of a running link until it restarts: ropewalk link set /scan priority=120 depth=1
///
/// Queued messages take the new priority as well. Keys: priority=0…127 (127 first), depth=N (most messages queued; the
/// newest stay), deadline=100ms or none, rate_limit=5Hz or none, every=N (keep one message in N), min_share=5% (share
/// of the air guaranteed against higher priorities). A service has only a priority.
#[derive(Args)]
pub(crate) struct Set {
    /// The topic, by its name on this host's bus (then only towards one robot, if robots have namespaces) or on the
    /// air.
    topic: String,
    /// Changes, as key=value.
    #[arg(required = true, value_name = "KEY=VALUE")]
    changes: Vec<String>,
    /// Change it only towards or over this peer (default: towards all).
    #[arg(long)]
    peer: Option<String>,
    #[command(flatten)]
    which: Which,
    /// Print the resulting settings as JSON.
    #[arg(long)]
    json: bool,
}

/// Show the state of a running link: peers, topics, losses, services and their calls.
#[derive(Args)]
pub(crate) struct Status {
    #[command(flatten)]
    which: Which,
    /// Print the whole state as a line of JSON.
    #[arg(long)]
    json: bool,
}

/// Selects a link.
#[derive(Args)]
pub(crate) struct Which {
    /// Name of the link, if several run on this host: its `radio.name`, or its `host`.
    #[arg(long)]
    link: Option<String>,
}

/// A running link of this host.
pub(crate) struct Running {
    asked: Asked,
}

pub(super) fn run(what: &What) -> Outcome {
    let mut out = crate::screen::stdout();
    match what {
        What::Set(set) => {
            // An invalid change is an error even if no link runs.
            Change::parse(&set.changes).or_input()?;
            let running = Running::find(&set.which)?;
            let now = running.set(&set.topic, set.peer.as_deref(), &set.changes)?;
            let written = if set.json {
                writeln!(out, "{}", json!({ "link": running.name(), "now": now }))
            } else {
                writeln!(out, "{}", now.join("\n"))
            };
            written.or_job("writing")
        }
        What::Status(status) => {
            let running = Running::find(&status.which)?;
            let written = if status.json {
                writeln!(out, "{}", running.state()?)
            } else {
                writeln!(out, "{}", text(&running.observed()?))
            };
            written.or_job("writing")
        }
    }
}

impl Running {
    /// Finds the selected link.
    pub(crate) fn find(which: &Which) -> Result<Running, Failure> {
        let node = Node::new("operator").or_input()?;
        let start = Instant::now();
        let (links, survey) = loop {
            let survey = node.survey().or_input()?;
            let links = Asked::links(&survey);
            let is_found = match &which.link {
                Some(wanted) => links.contains(wanted),
                None => !links.is_empty(),
            };
            // A process that did not answer may be the link: on a busy machine it takes time.
            if is_found || survey.silent.is_empty() || start.elapsed() >= PATIENCE {
                break (Vec::from_iter(links), survey);
            }
        };
        let folder = node.bus().config().runtime_dir.display().to_string();
        let silent = but_silent(&survey);
        let link = match (&which.link, links.as_slice()) {
            (_, []) => {
                return Err(Failure::input(format_args!(
                    "no link runs in {folder}: start one with `ropewalk link FILE`, or set ROPEWALK_RUNTIME_DIR to its folder{silent}"
                )));
            }
            (Some(wanted), links) => links.iter().find(|l| *l == wanted).ok_or_else(|| {
                let near = did_you_mean(nearest(wanted, links.iter().map(String::as_str)));
                Failure::input(format_args!(
                    "no link '{wanted}' runs in {folder}{near}; there is {}{silent}",
                    links.join(", ")
                ))
            })?,
            (None, [one]) => one,
            (None, several) => {
                return Err(Failure::input(format_args!(
                    "several links run here: choose one with --link; there are {}",
                    several.join(", ")
                )));
            }
        };
        let asked = Asked::new(node, link);
        Ok(Running { asked })
    }

    /// All running links of this host.
    pub(crate) fn all() -> Result<Vec<Running>, Failure> {
        let node = Node::new("operator").or_input()?;
        let links = Asked::links(&node.survey().or_input()?);
        let running = |link: &String| Running {
            asked: Asked::new(node.clone(), link),
        };
        Ok(links.iter().map(running).collect())
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        self.asked.name()
    }

    /// Changes a topic, and returns the resulting settings.
    pub(crate) fn set(
        &self,
        topic: &str,
        peer: Option<&str>,
        changes: &[String],
    ) -> Result<Vec<String>, Failure> {
        let now = self.asked.set(topic, peer, changes, PATIENCE);
        now.map_err(failure)
    }

    /// Its state, as `ropewalk link FILE --json` prints it.
    pub(crate) fn state(&self) -> Result<Value, Failure> {
        let text = self.asked.state(PATIENCE).map_err(failure)?;
        serde_json::from_str(&text).or_job("reading the link's state")
    }

    /// Its state, as far as views show it.
    pub(crate) fn observed(&self) -> Result<LinkState, Failure> {
        let text = self.asked.state(PATIENCE).map_err(failure)?;
        LinkState::parse(&text).or_job("reading the link's state")
    }
}

fn failure(error: AskError) -> Failure {
    match error {
        AskError::Absent(_) | AskError::Refused(_) => Failure::input(error),
        error => Failure::job(error),
    }
}

/// Reasons and counts in short: `replaced 3, air 1`.
fn drops(of: &Drops) -> String {
    let texts: Vec<String> = of.iter().map(|(r, n)| format!("{r} {n}")).collect();
    texts.join(", ")
}

/// Calls by service and peer, if there are services.
fn services(state: &LinkState) -> Vec<String> {
    if state.services.is_empty() {
        return Vec::new();
    }
    let mut table = Table::new(&[
        ("service", Align::Left),
        ("peer", Align::Left),
        ("state", Align::Left),
        ("priority", Align::Right),
        ("calls", Align::Right),
        ("open", Align::Right),
        ("answered", Align::Right),
        ("failed", Align::Left),
    ]);
    for s in &state.services {
        let serves = s.role == ServiceRole::Serve;
        table.row([
            s.here.clone(),
            format!("{} {}", if serves { "for" } else { "of" }, s.peer),
            s.state.as_str().replace('_', " "),
            s.priority.to_string(),
            s.calls.to_string(),
            s.open.to_string(),
            s.answered.to_string(),
            drops(&s.failed),
        ]);
    }
    table.lines()
}

/// Account of a topic's messages: offered, delivered, the share, in flight and lost. The counts are of one moment, so
/// the first is the sum of the others. Messages that the receiver's subscribers lost, by `receiver`, are added to the
/// text of losses.
fn account(account: Option<&AccountState>, receiver: Option<&Drops>) -> [String; 5] {
    let count = |of: fn(&AccountState) -> u64| account.map_or_else(|| "–".to_owned(), |a| of(a).to_string());
    let mut lost = account.map_or_else(String::new, |a| drops(&a.dropped));
    let not_taken = receiver.and_then(|d| d.get("not_taken")).copied().unwrap_or(0);
    if not_taken > 0 {
        let comma = if lost.is_empty() { "" } else { "; " };
        lost += &format!("{comma}subscribers there lost {not_taken}");
    }
    let share = account.and_then(AccountState::delivery);
    let share = share.map_or_else(|| "–".to_owned(), |d| format!("{:.1}", 100.0 * d));
    [
        count(|a| a.offered),
        count(|a| a.delivered),
        share,
        count(|a| a.in_flight),
        lost,
    ]
}

/// How much of a large message has arrived, if one is in flight.
fn arrived(share: Option<f64>) -> String {
    share.map_or_else(String::new, |s| {
        format!(", {:.0} % of a message there", 100.0 * s)
    })
}

fn text(state: &LinkState) -> String {
    let mut lines = vec![format!("link {} of {}", state.link, state.host)];
    for p in &state.peers {
        lines.push(format!(
            "peer {}: {}, {} lost, {} topics refused{}",
            p.name,
            if p.up { "up" } else { "down" },
            p.lost,
            p.refused_topics,
            match p.path_mtu {
                None | Some(0) => String::new(),
                Some(mtu) => format!(", path MTU {mtu}"),
            },
        ));
        lines.extend(p.unheard.iter().map(|u| u.text.clone()));
    }
    for w in state.ways.iter().filter(|w| w.host != w.over) {
        lines.push(format!(
            "peer {}: over {}, {} hops, {} us of air for a full datagram",
            w.host, w.over, w.hops, w.cost_us,
        ));
    }
    for host in &state.unreachable {
        lines.push(format!("peer {host}: no relay reaches it"));
    }
    for y in &state.radio.yields_to {
        lines.push(format!(
            "yields the air to {}: {:.0} % of the time",
            y.host,
            100.0 * y.share,
        ));
    }
    let relay = &state.relay;
    if relay.forwarded > 0 || !relay.drops.is_empty() {
        let lost = match drops(&relay.drops) {
            none if none.is_empty() => "nothing".into(),
            reasons => reasons,
        };
        let sent = relay.forwarded;
        lines.push(format!(
            "over relays: messages sent {sent} times, lost without a path: {lost}"
        ));
    }
    if relay.unopened > 0 {
        let times = relay.unopened;
        lines.push(format!(
            "over relays: {times} topics were not announced, since the peer has reached its limit of topics"
        ));
    }
    let mut table = Table::new(&[
        ("topic", Align::Left),
        ("peer", Align::Left),
        ("state", Align::Left),
        ("priority", Align::Right),
        ("offered", Align::Right),
        ("delivered", Align::Right),
        ("%", Align::Right),
        ("in flight", Align::Right),
        ("lost", Align::Left),
    ]);
    for t in &state.sent {
        let there = t.at_receiver.as_ref().map(|r| &r.drops);
        let [offered, delivered, share, in_flight, lost] = account(t.account.as_ref(), there);
        table.row([
            t.shown_name(&state.host),
            format!("to {}", t.other_end()),
            format!(
                "{}{}",
                t.state.as_str().replace('_', " "),
                arrived(t.bulk.as_ref().and_then(|b| b.arrived))
            ),
            t.priority.to_string(),
            offered,
            delivered,
            share,
            in_flight,
            lost,
        ]);
    }
    for t in &state.received {
        let [offered, delivered, share, in_flight, lost] = account(t.account.as_ref(), Some(&t.drops));
        table.row([
            t.shown_name(&state.host),
            format!("from {}", t.other_end()),
            format!("{}{}", t.state().as_str(), arrived(t.arrived)),
            t.priority.to_string(),
            offered,
            delivered,
            share,
            in_flight,
            lost,
        ]);
    }
    lines.extend(table.lines());
    lines.extend(services(state));
    if !state.unpublished.is_empty() {
        lines.push(format!(
            "nobody publishes {} here yet",
            state.unpublished.join(", ")
        ));
    }
    lines.extend((state.unsent.iter()).map(|(topic, why)| format!("cannot send {topic}: {why}")));
    lines.join("\n")
}
