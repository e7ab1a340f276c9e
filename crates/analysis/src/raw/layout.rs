//! The meaning of third-party rows, described by a small YAML file.

use super::pattern::Pattern;
use serde::Deserialize;
use std::fmt;
use std::time::Duration;

/// How to read folders, files and rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    /// Location of the files, and fields in their paths.
    pub files: Pattern,
    /// Contents of each column.
    pub columns: Vec<Column>,
    /// Separator between columns.
    pub separator: char,
    /// Unit of both times.
    pub unit: Unit,
    /// Size of a message.
    pub payload_bytes: u64,
    /// Messages that each sender sends.
    pub messages: u32,
    /// Number of the first message.
    pub first_id: u32,
    /// Time from the last sent message until the log closes: later answers have no row.
    pub closes_after: Duration,
    /// Messages of each sender that are dropped at the start.
    pub warm_up: u32,
    /// Which of the nodes send.
    pub senders: Senders,
    /// Measured system, unless the path states it.
    pub system: String,
    /// Medium, unless the path states it.
    pub medium: String,
    /// Number of hosts, unless the path states it.
    pub hosts: u32,
}

/// A column of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Column {
    /// The message's number.
    Id,
    /// Time of sending.
    #[serde(alias = "sent_ns")]
    Sent,
    /// Time at which the answer arrived.
    #[serde(alias = "recv_ns", alias = "recv")]
    Received,
    /// Another value.
    #[serde(rename = "-")]
    Other,
}

/// Unit of times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Nanoseconds.
    #[default]
    Ns,
    /// Microseconds.
    Us,
    /// Milliseconds.
    Ms,
    /// Seconds.
    S,
}

impl Unit {
    pub(super) fn nanoseconds(self) -> i64 {
        match self {
            Unit::Ns => 1,
            Unit::Us => 1_000,
            Unit::Ms => 1_000_000,
            Unit::S => 1_000_000_000,
        }
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unit::Ns => "ns",
            Unit::Us => "us",
            Unit::Ms => "ms",
            Unit::S => "s",
        })
    }
}

/// Number of senders of a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Senders {
    /// One per file.
    #[default]
    Files,
    /// Half of the nodes; a sender without a file lost all its messages.
    Half,
    /// All nodes; a sender without a file lost all its messages.
    All,
}

/// A layout that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct LayoutError {
    /// File, line and column if known.
    pub place: String,
    /// What is wrong, and how to fix it.
    pub problem: String,
}

/// Format of the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    files: String,
    #[serde(default = "columns")]
    columns: Vec<Column>,
    #[serde(default = "comma")]
    separator: char,
    #[serde(default)]
    unit: Unit,
    payload_bytes: u64,
    messages: u32,
    #[serde(default)]
    first_id: u32,
    #[serde(default = "five_seconds")]
    closes_after: String,
    #[serde(default)]
    warm_up: u32,
    #[serde(default)]
    senders: Senders,
    #[serde(default = "foreign")]
    system: String,
    #[serde(default = "unknown")]
    medium: String,
    #[serde(default = "two")]
    hosts: u32,
}

fn columns() -> Vec<Column> {
    vec![Column::Id, Column::Sent, Column::Received]
}

fn comma() -> char {
    ','
}

fn five_seconds() -> String {
    "5s".into()
}

fn foreign() -> String {
    "foreign".into()
}

fn unknown() -> String {
    "unknown".into()
}

fn two() -> u32 {
    2
}

impl Layout {
    /// Parses a layout; `place` is its file's name.
    ///
    /// # Errors
    /// What is wrong, where, and what to write.
    pub fn parse(text: &str, place: &str) -> Result<Layout, LayoutError> {
        let w: Written = serde_saphyr::from_str(text).map_err(|e| LayoutError {
            place: match e.location() {
                Some(at) => format!("{place}:{}:{}", at.line(), at.column()),
                None => place.to_owned(),
            },
            problem: schema::with_suggestion(&first_line(&e.without_snippet().to_string())),
        })?;
        let bad = |problem: String| LayoutError {
            place: place.to_owned(),
            problem,
        };
        for (column, name) in [
            (Column::Id, "id"),
            (Column::Sent, "sent"),
            (Column::Received, "received"),
        ] {
            if w.columns.iter().filter(|c| **c == column).count() != 1 {
                return Err(bad(format!("`columns` must name {name} once; others are \"-\"")));
            }
        }
        if w.columns.len() > 64 {
            return Err(bad("`columns`: at most 64".into()));
        }
        if !(1..=10_000_000).contains(&w.messages) {
            return Err(bad(
                "`messages`: give the number that each sender sends, 1 to 10000000".into(),
            ));
        }
        if w.warm_up >= w.messages {
            return Err(bad(
                "`warm_up` leaves no messages: give less than `messages`".into()
            ));
        }
        if w.payload_bytes == 0 || w.payload_bytes > u64::from(u32::MAX) {
            return Err(bad("`payload_bytes`: give 1 to 4294967295".into()));
        }
        if !(1..=1024).contains(&w.hosts) {
            return Err(bad("`hosts`: give 1 to 1024".into()));
        }
        let closes_after =
            stats::quantity::duration(&w.closes_after).map_err(|e| bad(format!("`closes_after`: {e}")))?;
        Ok(Layout {
            files: Pattern::parse(&w.files).map_err(|e| bad(format!("`files`: {e}")))?,
            columns: w.columns,
            separator: w.separator,
            unit: w.unit,
            payload_bytes: w.payload_bytes,
            messages: w.messages,
            first_id: w.first_id,
            closes_after,
            warm_up: w.warm_up,
            senders: w.senders,
            system: w.system,
            medium: w.medium,
            hosts: w.hosts,
        })
    }
}

fn first_line(text: &str) -> String {
    let first = text.lines().next().unwrap_or_default();
    first.split(" at line ").next().unwrap_or(first).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_those_of_the_thesis() {
        let layout = Layout::parse(
            "files: \"{hz}/*\"\npayload_bytes: 4250\nmessages: 1195\n",
            "a.yaml",
        );
        let layout = layout.expect("a layout");
        assert_eq!(layout.columns, columns());
        assert_eq!((layout.closes_after, layout.warm_up), (Duration::from_secs(5), 0));
    }

    #[test]
    fn errors_state_the_place() {
        let good = "files: \"{hz}/*\"\npayload_bytes: 4250\nmessages: 1195\n";
        for (bad, says) in [
            ("".to_owned(), "a.yaml"),
            ("files: [".to_owned(), "a.yaml:"),
            (good.replace("messages", "mesages"), "mesages"),
            (good.replace("1195", "0"), "1 to 10000000"),
            (good.replace("4250", "0"), "payload_bytes"),
            (good.replace("{hz}", "{herz}"), "not a field"),
            (format!("{good}columns: [id, sent]\n"), "must name received once"),
            (
                format!("{good}columns: [id, sent, received, sent]\n"),
                "must name sent once",
            ),
            (format!("{good}closes_after: soon\n"), "closes_after"),
            (format!("{good}warm_up: 1195\n"), "leaves no messages"),
            (format!("{good}unit: h\n"), "a.yaml:4"),
            (format!("{good}hosts: 0\n"), "hosts"),
        ] {
            let error = Layout::parse(&bad, "a.yaml").expect_err("refused").to_string();
            assert!(
                error.contains(says) && error.starts_with("a.yaml"),
                "{bad}: {error}"
            );
        }
    }
}
