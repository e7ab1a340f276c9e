//! `ropewalk record`: topics of the bus into an MCAP file.

use crate::failure::{Failure, OrFail, Outcome};
use crate::signals::Signals;
use bus::SubscriberOptions;
use clap::Args;
use recording::{Channel, ChannelId, Writer};
use ropewalk::{Node, Subscriber};
use schema::Flavour;
use serde_json::json;
use stats::Drops;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

/// How often new topics are looked for.
const DISCOVERY: Duration = Duration::from_millis(500);

/// Records topics of this host's bus into an MCAP file, until Ctrl-C or --duration.
///
/// Messages are stored as ROS 1 writes them (CDR for types of ROS 2), stamped with the time of publishing.
/// A recording that is cut off (power, kill) can be read up to its last chunk.
#[derive(Args)]
pub(crate) struct Options {
    /// The file to write; an existing one is kept unless --force.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Record these topics (may be repeated); without it all of them, also those that come later.
    #[arg(long, value_name = "TOPIC")]
    topic: Vec<String>,
    /// Stop after so many seconds.
    #[arg(long)]
    duration: Option<f64>,
    /// How chunks are compressed.
    #[arg(long, value_enum, default_value_t = Compression::Lz4)]
    compression: Compression,
    /// Replace an existing file.
    #[arg(long)]
    force: bool,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Compression {
    None,
    Lz4,
    Zstd,
}

struct Topic {
    subscriber: Subscriber,
    channel: ChannelId,
    ros2: bool,
}

/// Records.
pub(crate) fn run(options: &Options) -> Outcome {
    let signals = Signals::watch().or_job("watching signals")?;
    let node = Node::new("record").or_input()?;
    let compression = match options.compression {
        Compression::None => recording::write::Compression::None,
        Compression::Lz4 => recording::write::Compression::Lz4,
        Compression::Zstd => recording::write::Compression::Zstd,
    };
    let write = recording::write::Options {
        compression,
        overwrite: options.force,
        ..recording::write::Options::default()
    };
    let mut writer = Writer::create(&options.file, &write).or_input()?;
    let wait_set = node.wait_set().or_job("subscribing")?;
    let mut topics: Vec<Topic> = Vec::new();
    let (start, mut next_look, mut messages) = (clock::monotonic(), clock::monotonic(), 0u64);
    let over = |now: stats::Time| {
        options
            .duration
            .is_some_and(|d| now.since(start).as_secs_f64() >= d)
    };
    while !signals.stopped() && !over(clock::monotonic()) {
        if clock::monotonic() >= next_look {
            look(&node, &wait_set, options, &mut topics, &mut writer)?;
            next_look = clock::monotonic() + DISCOVERY;
        }
        wait_set
            .wait(Duration::from_millis(100))
            .or_job("waiting for messages")?;
        for topic in &topics {
            while let Some(message) = topic.subscriber.take().or_job("taking a message")? {
                let data = if topic.ros2 { message.cdr() } else { message.ros1() };
                match data {
                    Ok(data) => {
                        writer
                            .write(topic.channel, clock::realtime(), message.stamp(), &data)
                            .or_job("writing")?;
                        messages += 1;
                    }
                    Err(error) => {
                        crate::screen::tell!("{}: left out a message: {error}", topic.subscriber.topic())
                    }
                }
            }
        }
        if std::io::stderr().is_terminal() {
            crate::screen::draw(&format!("\r{messages} messages on {} topics ", topics.len()));
        }
    }
    writer.finish().or_job("finishing the file")?;
    if std::io::stderr().is_terminal() {
        crate::screen::draw("\r\x1b[K");
    }
    let mut drops = Drops::default();
    for topic in &topics {
        drops.merge(&topic.subscriber.stats().drops);
    }
    if options.json {
        crate::screen::say!(
            "{}",
            json!({ "messages": messages, "topics": topics.len(), "drops": drops })
        );
    } else {
        crate::screen::say!(
            "recorded {messages} messages on {} topics to {}",
            topics.len(),
            options.file.display()
        );
    }
    if drops.total() > 0 {
        return Err(Failure::lost(format_args!(
            "the recording lacks messages: {drops}"
        )));
    }
    Ok(())
}

fn look(
    node: &Node,
    wait_set: &bus::WaitSet,
    options: &Options,
    topics: &mut Vec<Topic>,
    writer: &mut Writer,
) -> Outcome {
    for info in node.topics().or_job("asking the bus")? {
        let name = &info.topic.topic;
        let wanted = options.topic.is_empty() || options.topic.contains(name);
        if !wanted || info.publishers.is_empty() || topics.iter().any(|t| t.subscriber.topic() == *name) {
            continue;
        }
        let schema = match node.schema_of(&info) {
            Ok(schema) => schema,
            Err(error) => {
                tracing::warn!("{error}");
                continue;
            }
        };
        let ros2 = schema.flavour() == Flavour::Ros2;
        let mut channel = Channel::ros1(name, schema.name(), &schema.md5_hex(), &schema.definition());
        if ros2 {
            channel.type_name = schema.ros2_name();
            channel.encoding = recording::Encoding::Cdr;
            channel.definition_encoding = "ros2msg".into();
            channel.md5 = None;
        }
        let channel = writer.add_channel(&channel).or_job("writing")?;
        let queue = SubscriberOptions::default()
            .with_depth(1024)
            .with_wait_set(wait_set);
        let subscriber = node.subscriber_with(name, &schema, queue).or_job("subscribing")?;
        topics.push(Topic {
            subscriber,
            channel,
            ros2,
        });
    }
    Ok(())
}
