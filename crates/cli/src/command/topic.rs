//! `ropewalk topic`: looking at topics, and publishing by hand.

use super::endpoints::{self, hex, who};
use super::topic_info;
use crate::failure::{Failure, OrFail, Outcome};
use crate::numbers::{self, seconds};
use crate::signals::Signals;
use crate::types::SearchPath;
use bench::table::{Align, Table};
use bus::SubscriberOptions;
use clap::{Args, Subcommand};
use ropewalk::{Message, Node, Subscriber};
use schema::{Show, Template, Value};
use serde_json::json;
use stats::{Drops, Window};
use std::io::{Read, Write};
use std::path::PathBuf;
use std::time::Duration;

/// Lists, shows, measures and publishes topics of this host's bus.
#[derive(Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Topics with their types, publishers and subscribers.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Who publishes and subscribes: queues, losses by reason, memory, refusals.
    Info(topic_info::Options),
    /// Print messages as YAML, or as a line of JSON each.
    Echo(Echo),
    /// Measure how often messages come, and how regularly.
    Hz(Measure),
    /// Measure how many bytes a second come.
    Bw(Measure),
    /// Publish a message written as YAML: ropewalk topic pub /chatter std_msgs/String 'data: hello'
    Pub(Publish),
}

#[derive(Args)]
struct Echo {
    #[command(flatten)]
    topic: Topic,
    /// Stop after so many messages.
    #[arg(short = 'n', long, value_parser = numbers::count)]
    count: Option<u64>,
    /// Show one field only, such as header.stamp or `ranges[3]`.
    #[arg(long)]
    field: Option<String>,
    /// Print a line of JSON for each message.
    #[arg(long)]
    json: bool,
    /// Show arrays in full.
    #[arg(long)]
    full: bool,
}

#[derive(Args)]
struct Measure {
    #[command(flatten)]
    topic: Topic,
    /// Average over so many seconds.
    #[arg(long, default_value_t = 5.0, value_parser = numbers::duration)]
    window: f64,
    /// Stop after so many seconds.
    #[arg(long, value_parser = numbers::duration)]
    duration: Option<f64>,
    /// Print a line of JSON every second.
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct Topic {
    /// The topic.
    topic: String,
    /// Wait so many seconds for somebody to publish it.
    #[arg(long, default_value_t = 10.0, value_parser = seconds)]
    wait: f64,
}

#[derive(Args)]
struct Publish {
    /// The topic.
    topic: String,
    /// The type, such as geometry_msgs/Twist.
    #[arg(value_name = "TYPE")]
    type_name: String,
    /// The message as YAML, or several as `topic echo` prints them; fields left out have their defaults. A time may be `now`, a
    /// header `auto`: the time of publishing.
    #[arg(value_name = "YAML", default_value = "{}", allow_hyphen_values = true)]
    message: String,
    /// Take the messages from a file, or from standard input if it is `-`.
    #[arg(short, long, value_name = "FILE", conflicts_with = "message")]
    file: Option<PathBuf>,
    /// Publish so often a second, until Ctrl-C, several messages in turn; without it publish each once, ten a second.
    #[arg(short, long, value_name = "HZ", value_parser = numbers::rate)]
    rate: Option<f64>,
    /// Stop after so many messages.
    #[arg(short = 'n', long, value_parser = numbers::count)]
    count: Option<u64>,
    /// Wait for a subscriber, so many seconds at most.
    #[arg(long, default_value_t = 3.0, value_parser = seconds)]
    wait: f64,
    #[command(flatten)]
    search: SearchPath,
}

/// Runs one of the commands.
pub(crate) fn run(options: &Options) -> Outcome {
    let signals = Signals::watch().or_job("watching signals")?;
    let node = Node::new("topic").or_input()?;
    match &options.what {
        What::List { json } => list(&node, *json),
        What::Info(info) => topic_info::run(&node, info),
        What::Echo(echo) => run_echo(&node, echo, &signals),
        What::Hz(measure) => run_measure(&node, measure, &signals, false),
        What::Bw(measure) => run_measure(&node, measure, &signals, true),
        What::Pub(publish) => run_publish(&node, publish, &signals),
    }
}

fn list(node: &Node, as_json: bool) -> Outcome {
    let survey = node.survey().or_input()?;
    let topics: Vec<_> = survey.topics.iter().filter(|t| !t.is_of_service()).collect();
    let mut out = crate::screen::stdout();
    if as_json {
        let topics: Vec<_> = (topics.iter())
            .map(|t| {
                json!({ "topic": t.topic.topic, "type": t.topic.type_name, "md5": hex(&t.topic.type_hash),
                        "publishers": endpoints::to_json(&t.publishers),
                        "subscribers": endpoints::to_json(&t.subscribers) })
            })
            .collect();
        let all = json!({ "topics": topics, "silent": endpoints::silent_json(&survey) });
        return writeln!(out, "{all:#}").or_job("writing");
    }
    if let Some(silent) = endpoints::silent(&survey) {
        crate::screen::tell!("{silent}");
    }
    let mut table = Table::new(&[
        ("topic", Align::Left),
        ("type", Align::Left),
        ("publishers", Align::Left),
        ("subscribers", Align::Left),
    ]);
    for t in &topics {
        table.row([
            t.topic.topic.clone(),
            t.topic.type_name.clone(),
            who(&t.publishers),
            who(&t.subscribers),
        ]);
    }
    if topics.is_empty() {
        crate::screen::tell!("no topics in {}", node.bus().config().runtime_dir.display());
        return Ok(());
    }
    writeln!(out, "{}", table.lines().join("\n")).or_job("writing")
}

fn subscribe(node: &Node, topic: &Topic) -> Result<Subscriber, Failure> {
    let schema = node
        .discover(&topic.topic, Duration::from_secs_f64(topic.wait))
        .or_input()?;
    node.subscriber_with(&topic.topic, &schema, SubscriberOptions::default().with_depth(64))
        .or_job("subscribing")
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

fn run_echo(node: &Node, echo: &Echo, signals: &Signals) -> Outcome {
    let subscriber = subscribe(node, &echo.topic)?;
    let show = if echo.full { Show::ALL } else { Show::SHORT };
    let mut left = echo.count.unwrap_or(u64::MAX);
    let mut out = crate::screen::stdout();
    let print = |message: Message| {
        let lost = message.lost();
        if lost.total() > 0 {
            crate::screen::tell!("lost before the next message: {lost}");
        }
        let mut value = message.value().or_job("a message")?;
        if let Some(field) = &echo.field {
            value = value.get(field).or_input()?;
        }
        let text = if echo.json {
            format!("{}\n", value.to_json(show))
        } else {
            let yaml = value.to_yaml(show);
            format!("{}\n---\n", yaml.trim_end())
        };
        left -= 1;
        Ok(out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_ok() && left > 0)
    };
    follow(&subscriber, signals, None, print, || Ok(true))
}

fn run_measure(node: &Node, measure: &Measure, signals: &Signals, bandwidth: bool) -> Outcome {
    let subscriber = subscribe(node, &measure.topic)?;
    let window = std::cell::RefCell::new(Window::new(Duration::from_secs_f64(measure.window), 100_000));
    let mut next = clock::monotonic() + Duration::from_secs(1);
    let mut out = crate::screen::stdout();
    let count = |message: Message| {
        let bytes = message.ros1_len().or_job("a message")? as u64;
        window.borrow_mut().record(clock::monotonic(), bytes);
        Ok(true)
    };
    let tick = || {
        if clock::monotonic() < next {
            return Ok(true);
        }
        next += Duration::from_secs(1);
        let rates = window.borrow_mut().rates(clock::monotonic());
        let drops = subscriber.stats().drops;
        let line = if measure.json {
            rates_json(&rates, &drops)
        } else {
            rates_text(&rates, &drops, bandwidth)
        };
        Ok(writeln!(out, "{line}").is_ok())
    };
    follow(&subscriber, signals, measure.duration, count, tick)
}

fn rates_text(rates: &stats::Rates, drops: &Drops, bandwidth: bool) -> String {
    if rates.messages == 0 {
        return "no messages".into();
    }
    let ms = |ns: f64| ns / 1e6;
    let lost = if drops.total() > 0 {
        format!(", lost: {drops}")
    } else {
        String::new()
    };
    if bandwidth {
        return format!(
            "{:.3} Mbit/s, {} messages of {:.0} bytes ({} to {}){lost}",
            rates.bytes_s * 8.0 / 1e6,
            rates.messages,
            rates.bytes_mean,
            rates.bytes_min,
            rates.bytes_max
        );
    }
    let p = &rates.period;
    format!(
        "{:.3} Hz, period {:.3} ms (min {:.3}, max {:.3}, std {:.3}), {} messages{lost}",
        rates.hz,
        ms(p.mean()),
        ms(p.min() as f64),
        ms(p.max() as f64),
        ms(p.std()),
        rates.messages
    )
}

fn rates_json(rates: &stats::Rates, drops: &Drops) -> String {
    let ms = |ns: f64| ns / 1e6;
    let p = &rates.period;
    json!({
        "rate_hz": rates.hz,
        "period_ms": { "mean": ms(p.mean()), "std": ms(p.std()), "min": ms(p.min() as f64), "max": ms(p.max() as f64) },
        "mbit_s": rates.bytes_s * 8.0 / 1e6,
        "message_bytes": { "mean": rates.bytes_mean, "min": rates.bytes_min, "max": rates.bytes_max },
        "messages": rates.messages,
        "drops": drops,
    })
    .to_string()
}

/// The messages of the command line or of a file.
fn templates(publish: &Publish) -> Result<Vec<Template>, Failure> {
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

fn run_publish(node: &Node, publish: &Publish, signals: &Signals) -> Outcome {
    let schema = publish.search.schema(&publish.type_name)?;
    let templates = templates(publish)?;
    let value = |template: &Template| {
        let now = Duration::from_nanos(clock::realtime().0);
        schema.value_from_template(template, now).or_input()
    };
    // All are checked before the first is published.
    let values: Vec<Value> = templates.iter().map(value).collect::<Result<_, _>>()?;
    let publisher = node.publisher(&publish.topic, &schema).or_input()?;
    let once = publish.rate.is_none();
    if !publisher.wait_for_subscribers(1, Duration::from_secs_f64(publish.wait)) {
        crate::screen::tell!("nobody subscribes to {} yet", publisher.topic());
    }
    let each_once = if once { values.len() as u64 } else { u64::MAX };
    let count = publish.count.unwrap_or(each_once);
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
        if template.is_timed() {
            publisher.publish_value(&value(template)?).or_input()?;
        } else {
            publisher.publish_value(checked).or_input()?;
        }
        due += period;
    }
    // What is queued stays takeable only while this process lives.
    let patience = clock::monotonic() + Duration::from_secs(1);
    while clock::monotonic() < patience
        && publisher
            .stats()
            .subscribers
            .iter()
            .any(|s| s.queued + s.held > 0)
    {
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}
