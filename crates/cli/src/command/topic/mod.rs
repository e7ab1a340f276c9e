//! `ropewalk topic`: shows topics, and publishes by hand.

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

use crate::command::waiting::SILENCE;
use crate::failure::{Failure, OrFail, Outcome};
use crate::numbers::seconds;
use crate::qos;
use crate::signals::Signals;
use clap::{Args, Subcommand};
use ropewalk::{Message, Node, NodeError, Subscriber};
use schema::{Schema, did_you_mean};
use std::time::Duration;

/// List, show, measure and publish topics of this host's bus
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
    /// List topics with their types, publishers and subscribers.
    List(list::Options),
    /// Print the publishers and subscribers of a topic: queues, losses by reason, memory, refusals.
    Info(info::Options),
    Echo(echo::Options),
    /// Measure the rate and the regularity of messages, for one or more topics.
    Hz(rates::Options),
    /// Measure the bandwidth in bytes a second, for one or more topics.
    Bw(rates::Options),
    Delay(delay::Options),
    Pub(publish::Options),
    /// Print the type of a topic: ropewalk topic type /scan
    Type(find::Type),
    /// Print the topics of a type: ropewalk topic find sensor_msgs/msg/LaserScan
    Find(find::Find),
}

/// A topic, and how to subscribe to it.
#[derive(Args)]
struct Topic {
    /// The topic.
    topic: String,
    #[command(flatten)]
    how: How,
}

/// How to subscribe.
#[derive(Args)]
struct How {
    /// Wait this many seconds for a publisher.
    #[arg(long, default_value_t = 10.0, value_parser = seconds)]
    wait: f64,
    #[command(flatten)]
    qos: qos::Wanted,
}

/// Runs the subcommand.
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

/// Default queue depth.
const DEPTH: u32 = 64;

/// Subscribes to a topic, with `schema` if it is given, else with the type of its first publisher.
fn subscribe(node: &Node, topic: &str, how: &How, schema: Option<Schema>) -> Result<Subscriber, Failure> {
    let qos = how.qos.qos()?;
    let schema = match schema {
        Some(schema) => schema,
        None => discover(node, topic, Duration::from_secs_f64(how.wait)).or_input()?,
    };
    let subscriber = node
        .dynamic_subscriber_with(topic, &schema, qos.subscriber(DEPTH))
        .or_job("subscribing")?;
    if qos.may_not_fit() {
        let there = node.topics().or_input()?;
        let of = there.iter().filter(|t| t.topic.topic == subscriber.topic());
        of.flat_map(|t| qos.unheard(t))
            .for_each(|line| crate::screen::tell!("{line}"));
    }
    Ok(subscriber)
}

/// Discovers the type of a topic; says what it waits for, if that takes long.
fn discover(node: &Node, topic: &str, timeout: Duration) -> Result<Schema, NodeError> {
    let Some(rest) = timeout.checked_sub(SILENCE).filter(|rest| !rest.is_zero()) else {
        return node.discover(topic, timeout);
    };
    match node.discover(topic, SILENCE) {
        Err(NodeError::NoPublisher { topic, near, .. }) => {
            let near = did_you_mean(near.as_deref());
            crate::screen::tell!("nobody publishes {topic} yet{near}: waiting {rest:?} more");
            node.discover(&topic, rest).map_err(|error| match error {
                NodeError::NoPublisher { topic, near, .. } => NodeError::NoPublisher {
                    topic,
                    near,
                    waited: timeout,
                },
                error => error,
            })
        }
        found => found,
    }
}

/// Passes messages to `f` until it returns false, the user stops it, or `limit` is over; calls `tick` about ten times a
/// second. Closed standard output (`| head`) also stops it.
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
            .take_or_warn(Duration::from_millis(100), |text| crate::screen::tell!("{text}"))
            .or_job("taking a message")?;
        let go_on = message.map_or(Ok(true), &mut f)? && tick()?;
        if !go_on {
            break;
        }
    }
    Ok(())
}
