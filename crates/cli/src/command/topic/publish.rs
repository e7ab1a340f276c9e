//! `ropewalk topic pub`.

use crate::failure::{Failure, OrFail, Outcome};
use crate::numbers::{self, seconds};
use crate::qos;
use crate::signals::Signals;
use crate::types::SearchPath;
use bus::Published;
use clap::Args;
use ropewalk::{Node, Publisher};
use schema::{Template, Value, did_you_mean, nearest};
use std::cell::Cell;
use std::fmt;
use std::io::Read;
use std::path::PathBuf;
use std::time::Duration;

/// Publish a message given as YAML
///
///   ropewalk topic pub /chatter std_msgs/String 'data: hello'
///   ropewalk topic pub /cmd_vel geometry_msgs/msg/Twist \
///     '{linear: {x: 0.5}}' --rate 10
///   ropewalk topic pub /name std_msgs/msg/String 'data: lab' --keep-alive 60 \
///     --qos-durability transient_local
///   ropewalk topic echo /scan -n 100 --full >scans.yaml
///   ropewalk topic pub /scan sensor_msgs/LaserScan --file scans.yaml --rate 10
///
/// package/msg/Type names a ROS 2 type, package/Type a ROS 1 type;
/// subscribers of either receive both.
///
/// If nobody received a message, the exit code is 3.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Options {
    /// The topic.
    topic: String,
    /// The type, such as geometry_msgs/Twist.
    #[arg(value_name = "TYPE")]
    type_name: String,
    /// The message as YAML, or several as `topic echo` prints them; missing fields have their defaults. A time may be
    /// `now`, and a header `auto`: both become the time of publishing.
    #[arg(value_name = "YAML", default_value = "{}", allow_hyphen_values = true)]
    message: String,
    /// Read the messages from this file, or from standard input if it is `-`.
    #[arg(short, long, value_name = "FILE", conflicts_with = "message")]
    file: Option<PathBuf>,
    /// Publish at this rate until Ctrl-C, several messages in turn (default: publish each once, at 10 Hz).
    #[arg(short, long, value_name = "HZ", value_parser = numbers::rate)]
    rate: Option<f64>,
    /// Stop after this many messages.
    #[arg(
        short = 'n',
        long,
        visible_alias = "times",
        visible_short_alias = 't',
        value_parser = numbers::count
    )]
    count: Option<u64>,
    /// Publish one message and exit.
    #[arg(short = '1', long, conflicts_with = "count")]
    once: bool,
    /// Wait at most this many seconds for subscribers. [default: 3]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    wait: Option<f64>,
    /// Wait for this many subscribers, without limit unless --wait is given.
    #[arg(short = 'w', long, value_name = "N")]
    wait_matching_subscriptions: Option<usize>,
    /// Stay this many seconds after the last message, so that late subscribers get the kept messages
    /// (--qos-durability).
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    keep_alive: Option<f64>,
    #[command(flatten)]
    search: SearchPath,
    #[command(flatten)]
    qos: qos::Wanted,
}

/// Default wait for a subscriber, in seconds.
const WAIT: f64 = 3.0;

/// The messages of the command line or of a file.
fn templates(publish: &Options) -> Result<Vec<Template>, Failure> {
    let Some(file) = &publish.file else {
        return Template::all(&publish.message).or_input();
    };
    let bad = |error: &dyn std::fmt::Display| Failure::input(format_args!("{}: {error}", file.display()));
    let text = if file.as_os_str() == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(file)
    };
    let text = text.map_err(|error| bad(&error))?;
    Template::all(&text).map_err(|error| bad(&error))
}

pub(super) fn run(node: &Node, publish: &Options, signals: &Signals) -> Outcome {
    let qos = publish.qos.qos()?;
    let schema = publish.search.schema_as_written(&publish.type_name, node)?;
    let templates = templates(publish)?;
    let value = |template: &Template| {
        let now = Duration::from_nanos(clock::realtime().0);
        schema.value_from_template(template, now).or_input()
    };
    // All messages are checked before the first is published.
    let values: Vec<Value> = templates.iter().map(value).collect::<Result<_, _>>()?;
    let publisher = node
        .dynamic_publisher_with(&publish.topic, &schema, qos.publisher())
        .or_input()?;
    wait(&publisher, publish, signals);
    let each_once = if publish.rate.is_none() {
        values.len() as u64
    } else {
        u64::MAX
    };
    let count = if publish.once {
        1
    } else {
        publish.count.unwrap_or(each_once)
    };
    let mut sent = Sent::default();
    let period = Duration::from_secs_f64(1.0 / publish.rate.unwrap_or(10.0));
    let mut due = clock::monotonic();
    for (template, checked) in templates
        .iter()
        .zip(&values)
        .cycle()
        .take(usize::try_from(count).unwrap_or(usize::MAX))
    {
        if !clock::sleep_until(due, Duration::ZERO, || signals.stopped()).or_job("waiting")? {
            break;
        }
        let done = if template.is_timed() {
            publisher.publish_value(&value(template)?).or_input()?
        } else {
            publisher.publish_value(checked).or_input()?
        };
        sent.count(done);
        due += period;
    }
    let until = clock::monotonic() + Duration::from_secs_f64(publish.keep_alive.unwrap_or(0.0));
    if publish.keep_alive.is_none() && publish.rate.is_none() && qos.is_durable() {
        crate::screen::tell!(
            "late subscribers get the message only while this command runs: --keep-alive SECONDS"
        );
    }
    // Late subscribers of a durable publisher receive what it keeps.
    let late = Cell::new(false);
    let look = || {
        late.set(late.get() || (qos.is_durable() && publisher.wait_for_subscribers(1, Duration::ZERO)));
        signals.stopped()
    };
    clock::sleep_until(until, Duration::ZERO, look).or_job("waiting")?;
    // Queued messages can only be taken while this process lives.
    let patience = clock::monotonic() + Duration::from_secs(1);
    let is_queued = || {
        publisher
            .stats()
            .subscribers
            .iter()
            .any(|s| s.queued + s.held > 0)
    };
    while clock::monotonic() < patience && is_queued() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let is_unheard = sent.is_unheard() && !late.get();
    let sum = match is_unheard {
        true => format!("{sent}: {}", why_unheard(node, &publisher)),
        false => sent.to_string(),
    };
    match (signals.stopped(), is_unheard) {
        (true, _) => crate::screen::tell!("{sum}"),
        (false, true) => return Err(Failure::lost(sum)),
        (false, false) => {}
    }
    Ok(())
}

/// What was published.
#[derive(Default)]
struct Sent {
    messages: u64,
    /// Of these, messages without a subscriber.
    unheard: u64,
}

impl Sent {
    fn count(&mut self, done: Published) {
        self.messages += 1;
        self.unheard += u64::from(done.queued_to == 0);
    }

    fn is_unheard(&self) -> bool {
        self.messages > 0 && self.unheard == self.messages
    }
}

impl fmt::Display for Sent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.messages == 1 { "" } else { "s" };
        write!(f, "published {} message{plural}", self.messages)?;
        match self.unheard {
            0 => Ok(()),
            _ if self.is_unheard() => f.write_str(", which nobody received"),
            n => write!(f, ", {n} of them without a subscriber"),
        }
    }
}

/// Why no subscriber received the messages, as far as the bus shows it.
fn why_unheard(node: &Node, publisher: &Publisher) -> String {
    let (topic, own) = (publisher.topic(), publisher.schema().name());
    let topics = node.topics().unwrap_or_default();
    let heard = topics
        .iter()
        .filter(|t| !t.subscribers.is_empty() && !t.is_of_service());
    let (same, others): (Vec<_>, Vec<_>) = heard.partition(|t| t.topic.topic == topic);
    match same.first().map(|t| t.topic.type_name.as_str()) {
        Some(ty) if ty != own => format!("the subscribers of {topic} take {ty}, not {own}"),
        Some(_) => format!("`ropewalk topic info {topic}` shows why its subscribers are not connected"),
        None => {
            let near = nearest(topic, others.iter().map(|t| t.topic.topic.as_str()));
            format!(
                "no subscriber to {topic}{}; --wait SECONDS waits longer",
                did_you_mean(near)
            )
        }
    }
}

/// Waits for subscribers, as the options say.
fn wait(publisher: &Publisher, publish: &Options, signals: &Signals) {
    let wanted = publish.wait_matching_subscriptions.unwrap_or(1);
    let is_endless = publish.wait.is_none() && publish.wait_matching_subscriptions.is_some();
    let until = clock::monotonic() + Duration::from_secs_f64(publish.wait.unwrap_or(WAIT));
    while !signals.stopped() {
        let left = match is_endless {
            true => Duration::from_millis(100),
            false => until.since(clock::monotonic()).min(Duration::from_millis(100)),
        };
        if publisher.wait_for_subscribers(wanted, left) {
            return;
        }
        if !is_endless && clock::monotonic() >= until {
            let topic = publisher.topic();
            match publish.wait_matching_subscriptions {
                None => crate::screen::tell!("no subscriber to {topic} yet"),
                Some(n) => crate::screen::tell!("fewer than {n} subscribers to {topic} so far"),
            }
            return;
        }
    }
}
