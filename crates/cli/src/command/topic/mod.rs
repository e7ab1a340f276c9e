//! `ropewalk topic`: looking at topics, and publishing by hand.

mod csv;
mod delay;
mod echo;
mod find;
mod info;
mod list;
mod publish;
mod rates;
mod summary;
mod verbose;

use crate::failure::{Failure, OrFail, Outcome};
use crate::numbers::seconds;
use crate::qos;
use crate::signals::Signals;
use clap::{Args, Subcommand};
use ropewalk::{Message, Node, Subscriber};
use schema::Schema;
use std::time::Duration;

/// Lists, shows, measures and publishes topics of this host's bus.
///
///   ropewalk topic list -t
///   ropewalk topic echo /scan --once --no-arr
///   ropewalk topic pub /chatter std_msgs/msg/String 'data: hello' --rate 10
///   ropewalk topic hz /scan --qos-profile sensor_data
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Options {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Topics with their types, publishers and subscribers.
    List(list::Options),
    /// Who publishes and subscribes: queues, losses by reason, memory, refusals.
    Info(info::Options),
    Echo(echo::Options),
    /// Measure how often messages come, and how regularly, of one topic or of several.
    Hz(rates::Options),
    /// Measure how many bytes a second come, of one topic or of several.
    Bw(rates::Options),
    Delay(delay::Options),
    Pub(publish::Options),
    /// Print the type of a topic: ropewalk topic type /scan
    Type(find::Type),
    /// Print the topics of a type: ropewalk topic find sensor_msgs/msg/LaserScan
    Find(find::Find),
}

/// Which topic is subscribed to, and how.
#[derive(Args)]
struct Topic {
    /// The topic.
    topic: String,
    #[command(flatten)]
    how: How,
}

/// How topics are subscribed to.
#[derive(Args)]
struct How {
    /// Wait this many seconds for a publisher.
    #[arg(long, default_value_t = 10.0, value_parser = seconds)]
    wait: f64,
    #[command(flatten)]
    qos: qos::Wanted,
}

/// Runs one of the commands.
pub(crate) fn run(options: &Options) -> Outcome {
    let signals = Signals::watch().or_job("watching signals")?;
    let node = Node::new("topic").or_input()?;
    match &options.what {
        What::List(list) => list::run(&node, list),
        What::Info(info) => info::run(&node, info),
        What::Echo(echo) => echo::run(&node, echo, &signals),
        What::Hz(measure) => rates::run(&node, measure, &signals, false),
        What::Bw(measure) => rates::run(&node, measure, &signals, true),
        What::Delay(delay) => delay::run(&node, delay, &signals),
        What::Pub(publish) => publish::run(&node, publish, &signals),
        What::Type(of) => find::print_type(&node, of),
        What::Find(of) => find::find(&node, of),
    }
}

/// Messages that wait where nothing else is asked for.
const DEPTH: u32 = 64;

/// Subscribes to a topic, as `schema` if it is given, else as its publishers say once there is one.
fn subscribe(node: &Node, topic: &str, how: &How, schema: Option<Schema>) -> Result<Subscriber, Failure> {
    let qos = how.qos.qos()?;
    let schema = match schema {
        Some(schema) => schema,
        None => {
            let timeout = Duration::from_secs_f64(how.wait);
            node.discover(topic, timeout).or_input()?
        }
    };
    let subscriber = node
        .subscriber_with(topic, &schema, qos.subscriber(DEPTH))
        .or_job("subscribing")?;
    if qos.may_not_fit() {
        let there = node.topics().or_input()?;
        let of = there.iter().filter(|t| t.topic.topic == subscriber.topic());
        of.flat_map(|t| qos.unheard(t))
            .for_each(|line| crate::screen::tell!("{line}"));
    }
    Ok(subscriber)
}

/// Hands messages to `f` until it says stop (false), the user stops it, or `limit` is over; `tick` is called
/// about ten times a second. Standard output that is closed (`| head`) is a reason to stop.
fn follow(
    subscriber: &Subscriber,
    signals: &Signals,
    limit: Option<f64>,
    mut f: impl FnMut(Message) -> Result<bool, Failure>,
    mut tick: impl FnMut() -> Result<bool, Failure>,
) -> Outcome {
    let start = clock::monotonic();
    while !signals.stopped() && limit.is_none_or(|l| clock::monotonic().since(start).as_secs_f64() < l) {
        let message = subscriber
            .take_timeout(Duration::from_millis(100))
            .or_job("taking a message")?;
        let go_on = message.map_or(Ok(true), &mut f)? && tick()?;
        if !go_on {
            break;
        }
    }
    Ok(())
}
