//! Queries and changes running links of this host.

use crate::command::endpoints::but_silent;
use crate::failure::{Failure, OrFail, Outcome};
use bus::Survey;
use clap::{Args, Subcommand};
use link::control::{Change, name};
use observe::text::{delivery, other_end, received_state, shown_name};
use ropewalk::{Client, Node};
use schema::Show;
use serde_json::{Value, json};
use std::cell::OnceCell;
use std::collections::BTreeSet;
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
    node: Node,
    link: String,
    /// Clients of its services, created at the first call.
    set: OnceCell<Client>,
    state: OnceCell<Client>,
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
                writeln!(out, "{}", json!({ "link": running.link, "now": now }))
            } else {
                writeln!(out, "{}", now.join("\n"))
            };
            written.or_job("writing")
        }
        What::Status(status) => {
            let state = Running::find(&status.which)?.state()?;
            let written = if status.json {
                writeln!(out, "{state}")
            } else {
                writeln!(out, "{}", text(&state))
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
            let links = Running::links(&survey);
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
                Failure::input(format_args!(
                    "no link '{wanted}' runs in {folder}; there is {}{silent}",
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
        let link = link.clone();
        Ok(Running {
            node,
            link,
            set: OnceCell::new(),
            state: OnceCell::new(),
        })
    }

    /// All running links of this host.
    pub(crate) fn all() -> Result<Vec<Running>, Failure> {
        let node = Node::new("operator").or_input()?;
        let links = Running::links(&node.survey().or_input()?);
        let running = |link| Running {
            node: node.clone(),
            link,
            set: OnceCell::new(),
            state: OnceCell::new(),
        };
        Ok(links.into_iter().map(running).collect())
    }

    /// Names of the links that answered.
    fn links(survey: &Survey) -> BTreeSet<String> {
        let services = survey.services().into_iter();
        let served = services.filter(|s| !s.servers.is_empty());
        served
            .filter_map(|s| name::link_of(&s.service.service).map(str::to_owned))
            .collect()
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.link
    }

    /// Calls one of its services.
    fn call(&self, client: &OnceCell<Client>, service: &str, request: &Value) -> Result<Value, Failure> {
        let doing = "calling the link";
        let client = match client.get() {
            Some(client) => client,
            None => {
                let path = format!("{}{}{service}", name::FOLDER, self.link);
                let schema = self.node.discover_service(&path, PATIENCE).or_input()?;
                let made = self.node.client(&path, &schema).or_job(doing)?;
                made.wait_for_server(PATIENCE).or_job(doing)?;
                client.get_or_init(|| made)
            }
        };
        let request = client.schema().request().value_from_json(request).or_job(doing)?;
        match client.call_value(&request, PATIENCE) {
            Ok(answer) => Ok(answer.to_json(Show::ALL)),
            // The link's own error text.
            Err(ropewalk::CallError::Call(bus::CallError::Rejected { text })) => Err(Failure::input(text)),
            Err(e) => Err(Failure::job(e)),
        }
    }

    /// Changes a topic, and returns the resulting settings.
    pub(crate) fn set(
        &self,
        topic: &str,
        peer: Option<&str>,
        changes: &[String],
    ) -> Result<Vec<String>, Failure> {
        let request = json!({ "topic": topic, "peer": peer.unwrap_or_default(), "changes": changes });
        let answer = self.call(&self.set, name::SET, &request)?;
        let lines = answer["now"].as_array().into_iter().flatten();
        Ok(lines.filter_map(|l| l.as_str()).map(str::to_owned).collect())
    }

    /// Its state, as `ropewalk link FILE --json` prints it.
    pub(crate) fn state(&self) -> Result<Value, Failure> {
        let answer = self.call(&self.state, name::STATE, &json!({}))?;
        serde_json::from_str(answer["json"].as_str().unwrap_or_default()).or_job("reading the link's state")
    }
}

/// Reasons and counts in short: `replaced 3, air 1`.
fn drops<'a>(of: impl IntoIterator<Item = &'a Value>) -> String {
    let mut all = std::collections::BTreeMap::<&str, u64>::new();
    for (reason, count) in of.into_iter().filter_map(Value::as_object).flatten() {
        *all.entry(reason).or_default() += count.as_u64().unwrap_or_default();
    }
    let texts: Vec<String> = all.iter().map(|(r, n)| format!("{r} {n}")).collect();
    texts.join(", ")
}

fn list(v: &Value) -> impl Iterator<Item = &Value> {
    v.as_array().into_iter().flatten()
}

fn word(v: &Value) -> String {
    v.as_str().unwrap_or("?").to_owned()
}

fn count(v: &Value) -> String {
    v.as_u64().map_or_else(|| "–".to_owned(), |n| n.to_string())
}

/// Calls by service and peer, if there are services.
fn services(state: &Value) -> Vec<String> {
    let Some(all) = state["services"].as_array().filter(|a| !a.is_empty()) else {
        return Vec::new();
    };
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
    for s in all {
        let serves = s["role"] == "serve";
        table.row([
            word(&s["here"]),
            format!("{} {}", if serves { "for" } else { "of" }, word(&s["peer"])),
            word(&s["state"]).replace('_', " "),
            count(&s["priority"]),
            count(&s["calls"]),
            count(&s["open"]),
            count(&s["answered"]),
            drops([&s["failed"]]),
        ]);
    }
    table.lines()
}

/// Account of a topic's messages: offered, delivered, the share, in flight and lost. The counts are of one moment, so
/// the first is the sum of the others. Messages that the receiver's subscribers lost, by `receiver`, are added to the
/// text of losses.
fn account(t: &Value, receiver: &Value) -> [String; 5] {
    let a = &t["account"];
    let mut lost = drops([&a["dropped"]]);
    let not_taken = receiver["drops"]["not_taken"].as_u64().unwrap_or(0);
    if not_taken > 0 {
        let comma = if lost.is_empty() { "" } else { "; " };
        lost += &format!("{comma}subscribers there lost {not_taken}");
    }
    let share = delivery(a).map_or_else(|| "–".to_owned(), |d| format!("{:.1}", 100.0 * d));
    [
        count(&a["offered"]),
        count(&a["delivered"]),
        share,
        count(&a["in_flight"]),
        lost,
    ]
}

/// How much of a large message has arrived, if one is in flight.
fn arrived(share: &Value) -> String {
    let share = share.as_f64();
    share.map_or_else(String::new, |s| {
        format!(", {:.0} % of a message there", 100.0 * s)
    })
}

fn text(state: &Value) -> String {
    let mut lines = vec![format!(
        "link {} of {}",
        word(&state["link"]),
        word(&state["host"])
    )];
    for p in list(&state["peers"]) {
        lines.push(format!(
            "peer {}: {}, {} lost, {} topics refused{}",
            word(&p["name"]),
            if p["up"] == true { "up" } else { "down" },
            count(&p["lost"]),
            count(&p["refused_topics"]),
            match p["path_mtu"].as_u64() {
                None | Some(0) => String::new(),
                Some(mtu) => format!(", path MTU {mtu}"),
            },
        ));
        lines.extend(p["unheard"]["text"].as_str().map(str::to_owned));
    }
    for w in list(&state["ways"]).filter(|w| w["host"] != w["over"]) {
        lines.push(format!(
            "peer {}: over {}, {} hops, {} us of air for a full datagram",
            word(&w["host"]),
            word(&w["over"]),
            count(&w["hops"]),
            count(&w["cost_us"]),
        ));
    }
    for host in list(&state["unreachable"]) {
        lines.push(format!("peer {}: no relay reaches it", word(host)));
    }
    for y in list(&state["radio"]["yields_to"]) {
        lines.push(format!(
            "yields the air to {}: {:.0} % of the time",
            word(&y["host"]),
            100.0 * y["share"].as_f64().unwrap_or_default(),
        ));
    }
    let relay = &state["relay"];
    if relay["forwarded"].as_u64() > Some(0) || !drops([&relay["drops"]]).is_empty() {
        let lost = match drops([&relay["drops"]]) {
            none if none.is_empty() => "nothing".into(),
            reasons => reasons,
        };
        let sent = count(&relay["forwarded"]);
        lines.push(format!(
            "over relays: messages sent {sent} times, lost without a path: {lost}"
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
    for t in list(&state["sent"]) {
        let [offered, delivered, share, in_flight, lost] = account(t, &t["at_receiver"]);
        table.row([
            shown_name(t, &state["host"]),
            format!("to {}", other_end(t)),
            format!(
                "{}{}",
                word(&t["state"]).replace('_', " "),
                arrived(&t["bulk"]["arrived"])
            ),
            count(&t["priority"]),
            offered,
            delivered,
            share,
            in_flight,
            lost,
        ]);
    }
    for t in list(&state["received"]) {
        let [offered, delivered, share, in_flight, lost] = account(t, t);
        table.row([
            shown_name(t, &state["host"]),
            format!("from {}", other_end(t)),
            format!("{}{}", received_state(t), arrived(&t["arrived"])),
            count(&t["priority"]),
            offered,
            delivered,
            share,
            in_flight,
            lost,
        ]);
    }
    lines.extend(table.lines());
    lines.extend(services(state));
    let unpublished: Vec<String> = list(&state["unpublished"]).map(word).collect();
    if !unpublished.is_empty() {
        lines.push(format!("nobody publishes {} here yet", unpublished.join(", ")));
    }
    lines.join("\n")
}
