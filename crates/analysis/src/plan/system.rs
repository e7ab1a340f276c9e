//! A system in its designer's notation.

use medium::{Phy, Standard};
use serde::Deserialize;
use stats::quantity;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Most items of a kind.
const MOST: usize = 256;
/// Largest message that links accept by default.
const MOST_BYTES: u64 = 64 << 20;

/// The system to build.
#[derive(Clone, Debug, PartialEq)]
pub struct System {
    /// Description by the designer.
    pub description: String,
    /// Names of the hosts.
    pub hosts: Vec<String>,
    /// Radios and wires.
    pub media: Vec<Medium>,
    /// Topics between the hosts.
    pub topics: Vec<Topic>,
    /// Multiplies one host.
    pub fleet: Option<Fleet>,
}

/// A radio or a wire.
#[derive(Clone, Debug, PartialEq)]
pub struct Medium {
    /// Name used by topics.
    pub name: String,
    /// Hosts that it connects, as indices into [`System::hosts`].
    pub hosts: Vec<usize>,
    /// Kind of the medium.
    pub kind: Kind,
    /// Share of lost frames: a radio retransmits them, a wire does not.
    pub loss: f64,
    /// Bytes that the carrier adds to each datagram, in addition to UDP and IP.
    pub around: usize,
}

/// Kind of a medium.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A shared half-duplex channel of 802.11a.
    Radio {
        /// In bit/s.
        rate: u64,
        /// Hops from end to end, all on the same channel.
        hops: u32,
    },
    /// A full-duplex link.
    Wire {
        /// In bit/s.
        rate: u64,
        /// Delay, each way.
        delay: Duration,
    },
}

/// A topic.
#[derive(Clone, Debug, PartialEq)]
pub struct Topic {
    /// Its name.
    pub name: String,
    /// Its type, if given.
    pub type_name: String,
    /// The publisher's host, as an index into [`System::hosts`].
    pub from: usize,
    /// The subscriber's host.
    pub to: usize,
    /// Medium; none if both are on one host.
    pub over: Option<usize>,
    /// Sizes of its messages, used in turn.
    pub sizes: Vec<u32>,
    /// Times of its messages, as recorded, one per size. Empty: evenly spaced.
    pub times: Vec<Duration>,
    /// Messages a second.
    pub hz: f64,
    /// Priority from 0 to 127; 127 is the most important.
    pub priority: u8,
    /// Queue depth; the newest messages stay.
    pub depth: u32,
    /// Older messages are dropped.
    pub deadline: Option<Duration>,
    /// Time of its first message after all hosts have started; none: random.
    pub phase: Option<Duration>,
    /// Each message is late by up to this duration.
    pub jitter: Duration,
    /// Whether losses are repaired.
    pub reliability: Reliability,
    /// Least delivery ratio required.
    pub delivery: f64,
    /// Delay within which 99 % have to arrive.
    pub within: Option<Duration>,
}

/// Repair of losses by the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reliability {
    /// A lost message stays lost.
    #[default]
    BestEffort,
    /// Parity is sent along.
    Redundant,
    /// Lost parts are retransmitted.
    Reliable,
}

/// Many robots, each like the named host, over access points.
#[derive(Clone, Debug, PartialEq)]
pub struct Fleet {
    /// The host that stands for each robot.
    pub host: usize,
    /// Number of robots.
    pub robots: u32,
    /// Number of access points, on separate channels.
    pub access_points: u32,
}

impl Topic {
    /// Mean size of its messages.
    pub fn bytes(&self) -> f64 {
        self.sizes.iter().map(|s| f64::from(*s)).sum::<f64>() / self.sizes.len().max(1) as f64
    }

    /// Payload a second.
    pub fn bytes_per_s(&self) -> f64 {
        self.bytes() * self.hz
    }
}

/// A topic in a recording: the time of each message since the start of the recording, and its size.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// Its type.
    pub type_name: String,
    /// In ascending order.
    pub messages: Vec<(Duration, u32)>,
}

/// External information that a system's file refers to.
pub trait Known {
    /// Size of the messages of a type, if all have the same.
    ///
    /// # Errors
    /// Why the size is unknown, and what to write.
    fn size(&self, type_name: &str) -> Result<u64, String>;

    /// The topics of a recording, by name.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn recording(&self, file: &str) -> Result<BTreeMap<String, Trace>, String>;
}

/// A system that cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct SystemError {
    /// File, and line and column if known.
    pub place: String,
    /// What is wrong, and how to fix it.
    pub problem: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    description: String,
    recording: Option<String>,
    hosts: Vec<String>,
    #[serde(default)]
    media: Vec<WrittenMedium>,
    topics: Vec<WrittenTopic>,
    fleet: Option<WrittenFleet>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenMedium {
    name: String,
    hosts: Option<Vec<String>>,
    radio: Option<String>,
    wire: Option<String>,
    hops: Option<u32>,
    delay: Option<String>,
    loss: Option<String>,
    #[serde(default)]
    carrier: Carrier,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Carrier {
    #[default]
    Quic,
    Udp,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenTopic {
    name: String,
    #[serde(rename = "type", default)]
    type_name: String,
    from: String,
    to: String,
    over: Option<String>,
    bytes: Option<Bytes>,
    hz: Option<f64>,
    #[serde(default)]
    priority: u8,
    #[serde(default = "one")]
    depth: u32,
    deadline: Option<String>,
    phase: Option<String>,
    jitter: Option<String>,
    #[serde(default)]
    reliability: Reliability,
    #[serde(default = "most_of_all")]
    delivery: f64,
    within: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Bytes {
    Number(u64),
    Text(String),
    Cycle(Vec<u64>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenFleet {
    host: String,
    robots: u32,
    #[serde(default = "one")]
    access_points: u32,
}

fn one() -> u32 {
    1
}

fn most_of_all() -> f64 {
    0.99
}

impl System {
    /// Parses a system; `place` is its file's name.
    ///
    /// # Errors
    /// What is wrong, and what to write.
    pub fn parse(text: &str, place: &str, known: &dyn Known) -> Result<System, SystemError> {
        let written: Written = serde_saphyr::from_str(text).map_err(|e| SystemError {
            place: match e.location() {
                Some(at) => format!("{place}:{}:{}", at.line(), at.column()),
                None => place.to_owned(),
            },
            problem: schema::with_suggestion(&first_line(&e.without_snippet().to_string())),
        })?;
        check(written, known).map_err(|problem| SystemError {
            place: place.to_owned(),
            problem,
        })
    }
}

fn check(w: Written, known: &dyn Known) -> Result<System, String> {
    if w.hosts.is_empty() || w.hosts.len() > MOST || w.media.len() > MOST || w.topics.len() > MOST {
        return Err(format!("give 1 to {MOST} hosts, media and topics"));
    }
    unique("hosts", w.hosts.iter())?;
    unique("media", w.media.iter().map(|m| &m.name))?;
    unique("topics", w.topics.iter().map(|t| &t.name))?;
    if w.topics.is_empty() {
        return Err("`topics` is empty: list at least one topic".into());
    }
    let host = |name: &str| find(&w.hosts, name, "hosts");
    let media = w
        .media
        .iter()
        .map(|m| medium(m, &w.hosts).map_err(|e| format!("media {}: {e}", m.name)));
    let media: Vec<Medium> = media.collect::<Result<_, _>>()?;
    let traces = match &w.recording {
        Some(file) => known
            .recording(file)
            .map_err(|e| format!("recording {file}: {e}"))?,
        None => BTreeMap::new(),
    };
    let mut topics = Vec::new();
    for t in &w.topics {
        topics.push(
            topic(t, &host, &media, traces.get(&t.name), known)
                .map_err(|e| format!("topic {}: {e}", t.name))?,
        );
    }
    let fleet = w.fleet.map(|f| {
        if !(1..=100_000).contains(&f.robots) || !(1..=100_000).contains(&f.access_points) {
            return Err("fleet: give 1 to 100000 robots and access points".to_owned());
        }
        let host = host(&f.host).map_err(|e| format!("fleet: {e}"))?;
        let mut wires = media.iter().filter(|m| matches!(m.kind, Kind::Wire { .. }));
        if let Some(wire) = wires.find(|m| m.hosts.contains(&host)) {
            return Err(format!(
                "fleet: {} is a wire, which joins two hosts: give the robots a `radio`",
                wire.name
            ));
        }
        Ok(Fleet {
            host,
            robots: f.robots,
            access_points: f.access_points.min(f.robots),
        })
    });
    Ok(System {
        description: w.description,
        hosts: w.hosts,
        media,
        topics,
        fleet: fleet.transpose()?,
    })
}

fn medium(m: &WrittenMedium, all: &[String]) -> Result<Medium, String> {
    let hosts = match &m.hosts {
        None => (0..all.len()).collect(),
        Some(names) => {
            unique("hosts", names.iter())?;
            let places = names.iter().map(|h| find(all, h, "hosts"));
            places.collect::<Result<Vec<_>, _>>()?
        }
    };
    if hosts.len() < 2 {
        return Err("it joins two hosts or more".into());
    }
    let quantity = |text: &Option<String>| text.as_deref().map(quantity::duration).transpose();
    let delay = quantity(&m.delay).map_err(|e| format!("delay: {e}"))?;
    let kind = match (&m.radio, &m.wire) {
        (Some(rate), None) => {
            let rate = quantity::bit_rate(rate).map_err(|e| format!("radio: {e}"))?;
            Phy::of(Standard::A, rate, &[]).map_err(|e| format!("radio: {e}"))?;
            let hops = m.hops.unwrap_or(1);
            if !(1..=8).contains(&hops) || (hops > 1 && hosts.len() > 2) {
                return Err("hops: give 1 to 8; more than 1 between two hosts only".into());
            }
            if delay.is_some() {
                return Err("delay: only wires have one; the delay of a radio follows from its rate".into());
            }
            Kind::Radio { rate, hops }
        }
        (None, Some(rate)) => {
            let rate = quantity::bit_rate(rate).map_err(|e| format!("wire: {e}"))?;
            if hosts.len() != 2 || m.hops.is_some() {
                return Err("a wire joins two hosts, without hops: write one wire for each pair".into());
            }
            let delay = delay.unwrap_or_default();
            if delay > Duration::from_secs(60) {
                return Err("delay: at most 60s".into());
            }
            Kind::Wire { rate, delay }
        }
        _ => return Err("give either `radio: 6Mbit/s` or `wire: 100Mbit/s`".into()),
    };
    let loss = m
        .loss
        .as_deref()
        .map_or(Ok(0.0), |t| quantity::share(t).map_err(|e| format!("loss: {e}")))?;
    Ok(Medium {
        name: m.name.clone(),
        hosts,
        kind,
        loss,
        around: match m.carrier {
            Carrier::Quic => 24,
            Carrier::Udp => 0,
        },
    })
}

fn topic(
    t: &WrittenTopic,
    host: &dyn Fn(&str) -> Result<usize, String>,
    media: &[Medium],
    trace: Option<&Trace>,
    known: &dyn Known,
) -> Result<Topic, String> {
    if t.name.is_empty() || t.name.len() > proto::MAX_NAME {
        return Err(format!("the name has 1 to {} bytes", proto::MAX_NAME));
    }
    let (from, to) = (host(&t.from)?, host(&t.to)?);
    let joins = |m: &Medium| from != to && m.hosts.contains(&from) && m.hosts.contains(&to);
    let over = match &t.over {
        _ if from == to => None,
        Some(name) => {
            let place = media.iter().position(|m| m.name == *name);
            let place = place.ok_or_else(|| format!("over: there is no medium {name}"))?;
            if !joins(&media[place]) {
                return Err(format!("over: {name} does not join {} and {}", t.from, t.to));
            }
            Some(place)
        }
        None => {
            let all: Vec<usize> = (0..media.len()).filter(|m| joins(&media[*m])).collect();
            match all[..] {
                [one] => Some(one),
                [] => return Err(format!("no medium joins {} and {}", t.from, t.to)),
                _ => {
                    return Err(format!(
                        "several media join {} and {}: choose one with `over`",
                        t.from, t.to
                    ));
                }
            }
        }
    };
    let cycle = match &t.bytes {
        Some(Bytes::Number(n)) => vec![*n],
        Some(Bytes::Text(text)) => vec![quantity::bytes(text).map_err(|e| format!("bytes: {e}"))?],
        Some(Bytes::Cycle(all)) => all.clone(),
        None if trace.is_some() => trace.map_or(Vec::new(), |t| {
            t.messages.iter().map(|(_, bytes)| u64::from(*bytes)).collect()
        }),
        None if t.type_name.is_empty() => return Err("give `bytes`, or a `type` of fixed size".into()),
        None => vec![known.size(&t.type_name)?],
    };
    // As recorded, unless the file states otherwise.
    let times: Vec<Duration> = match (trace, t.hz, &t.bytes) {
        (Some(trace), None, None) => trace.messages.iter().map(|(at, _)| *at).collect(),
        _ => Vec::new(),
    };
    let hz = match (t.hz, trace) {
        (Some(hz), _) => hz,
        (None, Some(trace)) => rate(trace).ok_or("the recording has too few messages: give `hz`")?,
        (None, None) => return Err("give `hz`, or a `recording` that has the topic".into()),
    };
    if cycle.is_empty() || cycle.len() > 1_000_000 || cycle.iter().any(|b| *b == 0 || *b > MOST_BYTES) {
        return Err("bytes: give 1 B to 64 MiB, or a list of such sizes".into());
    }
    if !(0.001..=1e5).contains(&hz) {
        return Err("hz: give 0.001 to 100000".into());
    }
    if t.priority > proto::MAX_PRIORITY {
        return Err(format!("priority: give 0 to {}", proto::MAX_PRIORITY));
    }
    if !(1..=proto::MAX_DEPTH).contains(&t.depth) {
        return Err(format!("depth: give 1 to {}", proto::MAX_DEPTH));
    }
    if !(0.0..=1.0).contains(&t.delivery) {
        return Err("delivery: give a share from 0 to 1".into());
    }
    let duration = |name: &str, text: &Option<String>| {
        let value = text.as_deref().map(quantity::duration).transpose();
        value.map_err(|e| format!("{name}: {e}"))
    };
    Ok(Topic {
        name: t.name.clone(),
        type_name: match trace {
            Some(trace) if t.type_name.is_empty() => trace.type_name.clone(),
            _ => t.type_name.clone(),
        },
        from,
        to,
        over,
        sizes: cycle.iter().map(|b| *b as u32).collect(),
        times,
        hz,
        priority: t.priority,
        depth: t.depth,
        deadline: duration("deadline", &t.deadline)?.filter(|d| !d.is_zero()),
        phase: duration("phase", &t.phase)?,
        jitter: duration("jitter", &t.jitter)?.unwrap_or_default(),
        reliability: t.reliability,
        delivery: t.delivery,
        within: duration("within", &t.within)?,
    })
}

/// Messages a second.
fn rate(trace: &Trace) -> Option<f64> {
    let (first, last) = (trace.messages.first()?.0, trace.messages.last()?.0);
    let span = last.checked_sub(first)?.as_secs_f64();
    (span > 0.0).then(|| (trace.messages.len() - 1) as f64 / span)
}

fn find(all: &[String], name: &str, what: &str) -> Result<usize, String> {
    let place = all.iter().position(|h| h == name);
    place.ok_or_else(|| format!("'{name}' is not one of `{what}`: {}", all.join(", ")))
}

fn unique<'a>(what: &str, mut names: impl Iterator<Item = &'a String>) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    match names.find(|n| n.is_empty() || !seen.insert(*n)) {
        None => Ok(()),
        Some(name) => Err(format!("`{what}` has '{name}' twice, or one without a name")),
    }
}

fn first_line(text: &str) -> String {
    let first = text.lines().next().unwrap_or_default();
    first.split(" at line ").next().unwrap_or(first).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "hosts: [robot, base]\nmedia:\n  - {name: wifi, radio: 6Mbit/s}\ntopics:\n  - {name: /scan, \
                        from: robot, to: base, bytes: 2631, hz: 30}\n";

    struct Ours;

    impl Known for Ours {
        fn size(&self, type_name: &str) -> Result<u64, String> {
            match type_name {
                "std_msgs/Int32" => Ok(4),
                other => Err(format!("{other} has messages of several sizes: give `bytes`")),
            }
        }

        fn recording(&self, file: &str) -> Result<BTreeMap<String, Trace>, String> {
            let messages = (0..11).map(|i| (Duration::from_millis(100 * i), 7)).collect();
            let trace = Trace {
                type_name: "a/B".into(),
                messages,
            };
            match file {
                "drive.bag" => Ok(BTreeMap::from([("/scan".into(), trace)])),
                _ => Err("there is no such file".into()),
            }
        }
    }

    fn parse(text: &str) -> Result<System, SystemError> {
        System::parse(text, "s.yaml", &Ours)
    }

    #[test]
    fn a_system_is_read() {
        let system = parse(GOOD).expect("a system");
        assert_eq!(system.topics[0].over, Some(0));
        assert_eq!(
            system.media[0].kind,
            Kind::Radio {
                rate: 6_000_000,
                hops: 1
            }
        );
        let text = GOOD
            .replace("bytes: 2631", "type: std_msgs/Int32")
            .replace("hz: 30", "hz: 30, deadline: 13ms, reliability: reliable");
        let topic = &parse(&text).expect("a system").topics[0];
        assert_eq!(
            (topic.sizes[0], topic.deadline, topic.reliability),
            (4, Some(Duration::from_millis(13)), Reliability::Reliable)
        );
        let cycle = parse(&GOOD.replace("2631", "[1000, 93, 93]")).expect("a system");
        assert_eq!(cycle.topics[0].sizes.len(), 3);
        let recorded = GOOD.replace("bytes: 2631, hz: 30", "priority: 3");
        let recorded = parse(&format!("recording: drive.bag\n{recorded}")).expect("a system");
        let topic = &recorded.topics[0];
        assert_eq!((topic.times.len(), topic.sizes[3], topic.hz), (11, 7, 10.0));
        let sized = parse(&GOOD.replace("2631", "77kB")).expect("a system");
        assert_eq!(sized.topics[0].sizes, [77_000]);
    }

    #[test]
    fn errors_state_the_fix() {
        for (from, to, says) in [
            ("hosts: [robot, base]", "hosts: [robot, robot]", "twice"),
            ("hosts: [robot, base]", "hosts: []", "1 to 256 hosts"),
            (
                "to: base",
                "to: moon",
                "'moon' is not one of `hosts`: robot, base",
            ),
            ("radio: 6Mbit/s", "radio: fast", "radio: 'fast'"),
            ("radio: 6Mbit/s", "radio: 6Mbit/s, wire: 1Mbit/s", "either"),
            ("radio: 6Mbit/s", "radio: 6Mbit/s, hops: 0", "hops"),
            (
                "radio: 6Mbit/s",
                "radio: 6Mbit/s, delay: 1ms",
                "only wires have one",
            ),
            ("radio: 6Mbit/s", "radio: 6Mbit/s, loss: 2", "loss"),
            ("bytes: 2631", "bytes: 0", "1 B to 64 MiB"),
            ("bytes: 2631", "bytes: []", "1 B to 64 MiB"),
            ("bytes: 2631", "type: a/B", "several sizes"),
            ("bytes: 2631, ", "", "give `bytes`"),
            (", hz: 30", "", "give `hz`"),
            ("topics:", "recording: x.bag\ntopics:", "no such file"),
            ("hz: 30", "hz: 0", "hz"),
            ("hz: 30", "hz: .nan", "hz"),
            ("hz: 30", "hz: 30, priority: 200", "priority"),
            ("hz: 30", "hz: 30, depth: 0", "depth"),
            ("hz: 30", "hz: 30, over: lan", "no medium lan"),
            ("hz: 30", "hz: 30, color: red", "color"),
            ("topics:", "fleet: {host: robot, robots: 0}\ntopics:", "fleet"),
        ] {
            let text = GOOD.replace(from, to);
            assert_ne!(text, GOOD);
            let error = parse(&text).expect_err(&text).to_string();
            assert!(
                error.starts_with("s.yaml") && error.contains(says),
                "{text}{error}"
            );
        }
        let wired = GOOD.replace("radio: 6Mbit/s", "wire: 1Gbit/s");
        let fleet = format!("fleet: {{host: robot, robots: 50}}\n{wired}");
        let error = parse(&fleet).expect_err(&fleet).to_string();
        assert!(error.contains("give the robots a `radio`"), "{error}");
        assert!(parse("").is_err());
    }
}
