//! `ropewalk topic echo`.

use super::summary::{self, Left};
use super::{Topic, csv, follow, subscribe};
use crate::failure::{Failure, OrFail, Outcome};
use crate::numbers;
use crate::signals::Signals;
use crate::types::SearchPath;
use clap::Args;
use ropewalk::{Message, Node};
use schema::{Show, Value};
use std::io::Write;

/// Print messages as YAML, as JSON lines, or as comma-separated values
///
///   ropewalk topic echo /scan --once --no-arr
///   ropewalk topic echo /odom --field pose.pose.position --csv
///   ropewalk topic echo /map --qos-durability transient_local --once
///   ropewalk topic echo /chatter std_msgs/msg/String   # no publisher needed
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Options {
    #[command(flatten)]
    topic: Topic,
    /// Type of the topic (default: the first publisher's).
    #[arg(value_name = "TYPE")]
    type_name: Option<String>,
    /// Stop after this many messages.
    #[arg(short = 'n', long, value_parser = numbers::count)]
    count: Option<u64>,
    /// Stop after the first message.
    #[arg(long, short = '1', conflicts_with = "count")]
    once: bool,
    /// Print only one field, such as header.stamp or `ranges[3]`.
    #[arg(long)]
    field: Option<String>,
    /// Print a line of JSON for each message.
    #[arg(long)]
    json: bool,
    /// Print a line of comma-separated values for each message, arrays in full.
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Show arrays in full.
    #[arg(long, short = 'f', visible_alias = "full-length")]
    full: bool,
    /// Show at most this many elements of an array.
    #[arg(long, short = 'l', value_name = "N", conflicts_with = "full")]
    truncate_length: Option<usize>,
    /// Show the type and length of arrays instead of their elements.
    #[arg(long, alias = "noarr")]
    no_arr: bool,
    /// Show the length of strings instead of their text.
    #[arg(long, alias = "nostr")]
    no_str: bool,
    /// Stop after this many seconds.
    #[arg(long, visible_alias = "timeout", value_name = "SECONDS", value_parser = numbers::duration)]
    duration: Option<f64>,
    #[command(flatten)]
    search: SearchPath,
}

pub(super) fn run(node: &Node, echo: &Options, signals: &Signals) -> Outcome {
    let written = echo.type_name.as_ref();
    if let Some(second) = written.filter(|name| name.starts_with('/')) {
        return Err(Failure::input(format_args!(
            "{second} is a second topic, and echo prints one: run `ropewalk topic echo {second}` in another terminal, \
             or record both"
        )));
    }
    let schema = written
        .map(|name| echo.search.schema_as_written(name, node))
        .transpose()?;
    let subscriber = subscribe(node, &echo.topic.topic, &echo.topic.how, schema)?;
    let mut left = if echo.once {
        1
    } else {
        echo.count.unwrap_or(u64::MAX)
    };
    let mut out = crate::screen::stdout();
    let print = |message: Message| {
        let lost = message.lost();
        if lost.total() > 0 {
            crate::screen::tell!("lost before the next message: {lost}");
        }
        let text = echo.text(&message)?;
        left -= 1;
        Ok(out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_ok() && left > 0)
    };
    follow(&subscriber, signals, echo.duration, print, || Ok(true))
}

impl Options {
    fn show(&self) -> Show {
        match (self.full, self.truncate_length) {
            (true, _) => Show::ALL,
            (_, Some(max_array)) => Show { max_array },
            _ => Show::SHORT,
        }
    }

    fn text(&self, message: &Message) -> Result<String, Failure> {
        let mut value = message.value().or_job("a message")?;
        if let Some(field) = &self.field {
            value = value.get(field).or_input()?;
        }
        Ok(self.shown(&value))
    }

    fn shown(&self, value: &Value) -> String {
        let left = Left {
            arrays: self.no_arr,
            strings: self.no_str,
        };
        let show = self.show();
        if self.csv {
            return format!("{}\n", csv::line(value, left));
        }
        if self.json {
            let json = match left.is_any() {
                true => summary::json(value, left, show),
                false => value.to_json(show),
            };
            return format!("{json}\n");
        }
        let yaml = match left.is_any() {
            true => summary::yaml(value, left, show),
            false => value.to_yaml(show),
        };
        format!("{}\n---\n", yaml.trim_end())
    }
}
