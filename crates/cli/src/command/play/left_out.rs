//! Messages of a recording that are not played, counted by reason.

use recording::ReadError;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt;

/// Most faults of one kind that are printed; further ones are only counted.
const REPORTED: u64 = 10;
/// Longest reason kept for a channel, in characters.
const LONGEST: usize = 400;

/// Why a message is not played.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reason {
    /// Its channel has no schema.
    Schemaless,
    /// Its channel has an encoding other than ROS 1's and CDR.
    Encoding,
    /// Its type is unknown, or its definition cannot be read.
    Type,
    /// Its topic's name is invalid in ROS.
    Name,
    /// The bus refuses a publisher of the topic.
    Bus,
    /// It is not a message of its type.
    Content,
    /// There is no memory for it on the bus.
    Memory,
    /// It lies in a damaged part of the file.
    Damage,
}

impl Reason {
    const fn name(self) -> &'static str {
        match self {
            Reason::Schemaless => "schemaless",
            Reason::Encoding => "encoding",
            Reason::Type => "type",
            Reason::Name => "name",
            Reason::Bus => "bus",
            Reason::Content => "content",
            Reason::Memory => "memory",
            Reason::Damage => "damage",
        }
    }
}

/// Why a channel is not played at all.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    pub(crate) reason: Reason,
    /// Explanation for people.
    pub(crate) why: String,
}

impl Refusal {
    pub(crate) fn new(reason: Reason, why: impl fmt::Display) -> Self {
        // A text from the file may be long.
        let why = why.to_string().chars().take(LONGEST).collect();
        Refusal { reason, why }
    }
}

/// Everything that is left out.
#[derive(Debug, Default)]
pub(crate) struct LeftOut {
    messages: BTreeMap<Reason, u64>,
    /// Parts of files that are damaged.
    parts: u64,
    /// Number of faults printed of each kind.
    counted: BTreeMap<(Reason, String), u64>,
}

impl LeftOut {
    /// Prints a fault of a topic or file, unless enough of its kind were printed.
    pub(crate) fn tell(&mut self, reason: Reason, of: &str, why: &str) {
        let counted = self.counted.entry((reason, of.to_owned())).or_default();
        *counted += 1;
        let last = match (reason, *counted) {
            // The reason for leaving out a whole channel is printed once.
            (Reason::Content | Reason::Memory | Reason::Damage, REPORTED) => "; further ones are counted",
            (Reason::Content | Reason::Memory | Reason::Damage, 1..REPORTED) | (_, 1) => "",
            _ => return,
        };
        crate::screen::tell!("left out: {of}: {why}{last}");
    }

    /// Counts a message.
    pub(crate) fn count(&mut self, reason: Reason, messages: u64) {
        let count = self.messages.entry(reason).or_default();
        *count = count.saturating_add(messages);
    }

    /// Counts and prints damage of a file.
    pub(crate) fn damage(&mut self, error: &ReadError) {
        if !error.is_loss() {
            crate::screen::tell!("{error}");
            return;
        }
        self.parts += 1;
        if let ReadError::UnknownChannel { messages, .. }
        | ReadError::Rows { rows: messages, .. }
        | ReadError::Unopened { messages, .. } = error
        {
            self.count(Reason::Damage, *messages);
        }
        self.tell(Reason::Damage, "a damaged part", &error.to_string());
    }

    /// Sets how many messages the index lists in damaged parts.
    pub(crate) fn missing(&mut self, messages: u64) {
        if self.parts > 0 {
            let count = self.messages.entry(Reason::Damage).or_default();
            *count = messages.max(*count);
        }
    }

    /// Whether nothing is left out.
    pub(crate) fn is_empty(&self) -> bool {
        self.parts == 0 && self.messages.values().all(|n| *n == 0)
    }

    /// Messages by reason.
    pub(crate) fn json(&self) -> Value {
        let reasons = self.messages.iter().filter(|(_, n)| **n > 0);
        reasons
            .map(|(reason, n)| (reason.name().to_owned(), json!(n)))
            .collect()
    }

    /// Damaged parts.
    pub(crate) fn parts(&self) -> u64 {
        self.parts
    }
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reasons = self.messages.iter().filter(|(_, n)| **n > 0);
        let mut all: Vec<String> = reasons
            .map(|(reason, n)| format!("{} {n}", reason.name()))
            .collect();
        if self.parts > 0 {
            all.push(format!("damaged parts {}", self.parts));
        }
        if all.is_empty() {
            return f.write_str("none");
        }
        f.write_str(&all.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_counted_by_reason_and_damage_by_what_is_known() {
        let mut left_out = LeftOut::default();
        assert!(left_out.is_empty());
        assert_eq!(left_out.to_string(), "none");
        left_out.missing(5);
        assert!(left_out.is_empty(), "an index may count too many");
        left_out.count(Reason::Type, 2);
        left_out.count(Reason::Content, 1);
        let unknown = ReadError::UnknownChannel {
            path: "x.mcap".into(),
            offset: 1,
            channel: 7,
            messages: 3,
        };
        left_out.damage(&unknown);
        assert_eq!(left_out.json(), json!({ "type": 2, "content": 1, "damage": 3 }));
        left_out.missing(10);
        assert_eq!(
            left_out.to_string(),
            "type 2, content 1, damage 10, damaged parts 1"
        );
        let index = ReadError::Index {
            source: Box::new(unknown),
        };
        left_out.damage(&index);
        assert_eq!(left_out.parts(), 1, "an index is no message");
    }
}
