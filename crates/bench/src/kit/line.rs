//! Output of peers: the lines of the contract, and nothing else.

use super::processes::Says;
use serde::Deserialize;
use stats::Time;
use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read};

/// One line of a peer.
#[derive(Debug, PartialEq)]
pub(crate) enum Line {
    /// Connected, or subscribed.
    Ready,
    /// The message with the last number arrived.
    Done,
    /// A publisher's result.
    Published(Published),
    /// A subscriber's result.
    Received(Received),
    /// The result of round trips.
    RoundTrips(RoundTrips),
}

/// The publisher's messages after the warm-up.
#[derive(Debug, Default, PartialEq, Deserialize)]
pub(crate) struct Published {
    pub(crate) published: u64,
    pub(crate) refused: u64,
    pub(crate) publish_ns: Vec<u64>,
}

/// The subscriber's messages after the warm-up.
#[derive(Debug, Default, PartialEq, Deserialize)]
pub(crate) struct Received {
    pub(crate) received: u64,
    pub(crate) latency_ns: Vec<u64>,
    pub(crate) sequence: Vec<u64>,
}

/// Round trips after the warm-up.
#[derive(Debug, Default, PartialEq, Deserialize)]
pub(crate) struct RoundTrips {
    pub(crate) round_trip_ns: Vec<u64>,
}

/// Number of messages of a run, by which every line is checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Count {
    pub(crate) warmup: u64,
    pub(crate) messages: u64,
}

impl Count {
    /// Maximum length of a valid line, in bytes: two numbers of 20 digits for each message.
    fn longest(self) -> u64 {
        self.messages * 2 * 24 + 4096
    }
}

/// Output of one peer.
#[derive(Debug, Default)]
pub(crate) struct Spoken {
    /// Number of `ready` lines.
    pub(crate) ready: u32,
    /// Time of each `done` line.
    pub(crate) done: Vec<Time>,
    pub(crate) published: Option<(Time, Published)>,
    pub(crate) received: Vec<Received>,
    pub(crate) round_trips: Option<(Time, RoundTrips)>,
}

impl Says for Spoken {
    type Rule = Count;
    type Line = Line;

    fn longest(count: Count) -> u64 {
        count.longest()
    }

    fn parse(text: &str, count: Count) -> Result<Line, String> {
        Line::parse(text, count)
    }

    fn hear(&mut self, at: Time, line: Line) {
        match line {
            Line::Ready => self.ready += 1,
            Line::Done => self.done.push(at),
            Line::Published(result) => self.published = Some((at, result)),
            Line::Received(result) => self.received.push(result),
            Line::RoundTrips(result) => self.round_trips = Some((at, result)),
        }
    }
}

impl Line {
    fn parse(text: &str, count: Count) -> Result<Line, String> {
        let text = text.trim();
        let line = match text {
            "ready" => Line::Ready,
            "done" => Line::Done,
            _ => Self::result(text).ok_or_else(|| format!("it printed {:?}", shorten(text)))?,
        };
        line.check(count)?;
        Ok(line)
    }

    fn result(text: &str) -> Option<Line> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Any {
            Published(Published),
            Received(Received),
            RoundTrips(RoundTrips),
        }
        Some(match serde_json::from_str(text).ok()? {
            Any::Published(p) => Line::Published(p),
            Any::Received(r) => Line::Received(r),
            Any::RoundTrips(r) => Line::RoundTrips(r),
        })
    }

    fn check(&self, count: Count) -> Result<(), String> {
        let many = |what: &str, n: usize, of: u64| {
            if n as u64 == of {
                Ok(())
            } else {
                Err(format!("it gave {n} numbers of {what}, but {of} were due"))
            }
        };
        match self {
            Line::Ready | Line::Done => Ok(()),
            Line::Published(p) => {
                let sent = p
                    .published
                    .checked_add(p.refused)
                    .filter(|n| *n <= count.messages);
                sent.ok_or_else(|| {
                    format!(
                        "it published {} and refused {} of {} messages",
                        p.published, p.refused, count.messages
                    )
                })?;
                // A program may also report the cost of refused calls.
                let n = p.publish_ns.len() as u64;
                if (p.published..=p.published + p.refused).contains(&n) {
                    return Ok(());
                }
                many("publish_ns", p.publish_ns.len(), p.published)
            }
            Line::Received(r) => {
                many("latency_ns", r.latency_ns.len(), r.received)?;
                many("sequence", r.sequence.len(), r.received)?;
                let sent = count.warmup..count.warmup + count.messages;
                let mut seen = HashSet::with_capacity(r.sequence.len());
                for s in &r.sequence {
                    if !sent.contains(s) {
                        return Err(format!("it received message {s}, which was never sent"));
                    }
                    if !seen.insert(s) {
                        return Err(format!("it received message {s} twice"));
                    }
                }
                Ok(())
            }
            Line::RoundTrips(r) => many("round_trip_ns", r.round_trip_ns.len(), count.messages),
        }
    }
}

/// Reads lines and passes each to `say` until `say` returns false, a line is invalid, or the stream ends. No line takes
/// more memory than a valid one can need.
pub(crate) fn read<S: Says>(
    stream: impl Read,
    rule: S::Rule,
    mut say: impl FnMut(Result<S::Line, String>) -> bool,
) {
    let mut stream = BufReader::new(stream);
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        let limit = S::longest(rule);
        match (&mut stream).take(limit).read_until(b'\n', &mut bytes) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let line = if bytes.len() as u64 == limit && !bytes.ends_with(b"\n") {
            Err(format!("it printed a line of more than {limit} bytes"))
        } else {
            let text =
                std::str::from_utf8(&bytes).map_err(|_| "it printed bytes that are not text".to_owned());
            text.and_then(|t| S::parse(t, rule))
        };
        let bad = line.is_err();
        if !say(line) || bad {
            return;
        }
    }
}

/// Returns the first characters, for an error message.
pub(crate) fn shorten(text: &str) -> String {
    let mut short: String = text.chars().take(120).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNT: Count = Count {
        warmup: 2,
        messages: 3,
    };

    fn all(text: &[u8]) -> Vec<Result<Line, String>> {
        let mut lines = vec![];
        read::<Spoken>(text, COUNT, |line| {
            lines.push(line);
            true
        });
        lines
    }

    fn wrong(text: &str) -> String {
        all(text.as_bytes()).pop().expect("a line").expect_err(text)
    }

    #[test]
    fn the_lines_of_the_contract_are_understood() {
        let text = b"ready\n{\"published\": 2, \"refused\": 1, \"publish_ns\": [5, 6]}\ndone\n\
                     {\"received\": 1, \"latency_ns\": [9], \"sequence\": [4]}\n{\"round_trip_ns\": [1,2,3]}";
        let lines: Vec<Line> = all(text).into_iter().map(|l| l.expect("right")).collect();
        assert_eq!(lines.len(), 5);
        assert_eq!(lines[0], Line::Ready);
        assert!(matches!(&lines[1], Line::Published(p) if p.publish_ns == [5, 6]));
        assert!(matches!(&lines[3], Line::Received(r) if r.sequence == [4]));
    }

    #[test]
    fn invalid_lines_are_refused_by_name() {
        assert!(wrong("hello\n").contains("hello"));
        assert!(wrong("{\"received\": 1}\n").contains("received"));
        assert!(wrong("{\"published\": 9, \"refused\": 0, \"publish_ns\": []}\n").contains("of 3 messages"));
        assert!(wrong("{\"published\": 2, \"refused\": 0, \"publish_ns\": [1]}\n").contains("2 were due"));
        let received = |n: u32, sequence: &str| {
            let zeros = vec!["0"; n as usize].join(",");
            wrong(&format!(
                "{{\"received\":{n},\"latency_ns\":[{zeros}],\"sequence\":[{sequence}]}}\n"
            ))
        };
        assert!(received(1, "1").contains("never sent"));
        assert!(received(1, "5").contains("never sent"));
        assert!(received(2, "3,3").contains("twice"));
        assert!(received(2, "3").contains("1 numbers of sequence"));
        assert!(wrong("{\"round_trip_ns\": [1]}\n").contains("3 were due"));
        let max = u64::MAX;
        assert!(
            wrong(&format!(
                "{{\"published\": {max}, \"refused\": {max}, \"publish_ns\": []}}\n"
            ))
            .contains("of 3")
        );
    }

    #[test]
    fn endless_and_binary_output_ends_the_reading() {
        assert!(
            all(&vec![b'x'; 100_000])[0]
                .as_ref()
                .expect_err("too long")
                .contains("more than")
        );
        let lines = all(b"\xff\xfe\nready\n");
        assert_eq!(lines.len(), 1);
        assert!(lines[0].as_ref().expect_err("binary").contains("not text"));
    }
}
