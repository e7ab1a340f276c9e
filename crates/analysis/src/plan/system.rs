//! A system as its designer writes it down.

use medium::{Phy, Standard};
use serde::Deserialize;
use stats::quantity;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// More of anything is a mistake.
const MOST: usize = 256;
/// Largest message, as links take it by default.
const MOST_BYTES: u64 = 64 << 20;

/// What is to be built.
#[derive(Clone, Debug, PartialEq)]
pub struct System {
    /// In the designer's words.
    pub description: String,
    /// By name.
    pub hosts: Vec<String>,
    /// Radios and wires.
    pub media: Vec<Medium>,
    /// What crosses them.
    pub topics: Vec<Topic>,
    /// Many of one host.
    pub fleet: Option<Fleet>,
}

/// A radio or a wire.
#[derive(Clone, Debug, PartialEq)]
pub struct Medium {
    /// By which topics name it.
    pub name: String,
    /// Which hosts it joins; places in [`System::hosts`].
    pub hosts: Vec<usize>,
    /// What it is.
    pub kind: Kind,
    /// Share of frames that are lost: repaired by a radio's retries, gone on a wire.
    pub loss: f64,
    /// Bytes that the carrier adds to each datagram, beside UDP and IP.
    pub around: usize,
}

/// What a medium is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A shared half-duplex channel of 802.11a.
    Radio {
        /// In bit/s.
        rate: u64,
        /// Hops from end to end, all on the one channel.
        hops: u32,
    },
    /// A full-duplex line.
    Wire {
        /// In bit/s.
        rate: u64,
        /// Each way.
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
    /// Who publishes; a place in [`System::hosts`].
    pub from: usize,
    /// Who subscribes.
    pub to: usize,
    /// Over which medium; none: both on one host.
    pub over: Option<usize>,
    /// Sizes of its messages, one after the other and again.
    pub sizes: Vec<u32>,
    /// When its messages come, as recorded: as many as sizes. Empty: evenly.
    pub times: Vec<Duration>,
    /// Messages a second.
    pub hz: f64,
    /// 0 to 127, 127 the most important.
    pub priority: u8,
    /// Newest messages that may wait.
    pub depth: u32,
    /// What is older is dropped.
    pub deadline: Option<Duration>,
    /// When its first message comes, after all have begun; none: by chance.
    pub phase: Option<Duration>,
    /// Each message is up to so much late.
    pub jitter: Duration,
    /// Whether it is repaired.
    pub reliability: Reliability,
    /// Least delivery that is needed.
    pub delivery: f64,
    /// 99 % must come within that.
    pub within: Option<Duration>,
}

/// How hard the link tries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reliability {
    /// What is lost stays lost.
    #[default]
    BestEffort,
    /// Parity goes along.
    Redundant,
    /// Lost parts are sent again.
    Reliable,
}

/// Many robots, each as the named host, over access points.
#[derive(Clone, Debug, PartialEq)]
pub struct Fleet {
    /// Which host stands for each of them.
    pub host: usize,
    /// How many there are.
    pub robots: u32,
    /// Over how many access points, on channels of their own.
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

/// What a recording has of a topic: when each message came, from the recording's start on, and its size.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// Its type.
    pub type_name: String,
    /// Ascending.
    pub messages: Vec<(Duration, u32)>,
}

/// What a system's file speaks of and this crate does not know.
pub trait Known {
    /// Size of the messages of a type, if all have the same.
    ///
    /// # Errors
    /// Why there is none, and what to write.
    fn size(&self, type_name: &str) -> Result<u64, String>;

    /// The topics of a recording, by name.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn recording(&self, file: &str) -> Result<BTreeMap<String, Trace>, String>;
}

/// A system that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct SystemError {
    /// File, and line and column as far as they are known.
    pub place: String,
    /// What is wrong, with the mend.
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
    /// Reads a system; `place` is its file's name.
    ///
    /// # Errors
    /// What is wrong, and what to write.
    pub fn parse(text: &str, place: &str, known: &dyn Known) -> Result<System, SystemError> {
        let written: Written = serde_saphyr::from_str(text).map_err(|e| SystemError {
            place: match e.location() {
                Some(at) => format!("{place}:{}:{}", at.line(), at.column()),
                None => place.to_owned(),
            },
            problem: first_line(&e.without_snippet().to_string()),
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
        return Err("`topics` is empty: nothing is to be carried".into());
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
                return Err("delay: of wires only; a radio's follows from its rate".into());
            }
            Kind::Radio { rate, hops }
        }
        (None, Some(rate)) => {
            let rate = quantity::bit_rate(rate).map_err(|e| format!("wire: {e}"))?;
            if hosts.len() != 2 || m.hops.is_some() {
                return Err("a wire joins two hosts, without hops: write one for each pair".into());
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
                        "several media join {} and {}: say which with `over`",
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
    // As recorded, unless the file says otherwise.
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
        return Err("bytes: give 1 B to 64 MiB, or a list of such".into());
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
    place.ok_or_else(|| format!("'{name}' is none of `{what}`: {}", all.join(", ")))
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
    fn what_is_wrong_is_told_with_the_mend() {
        for (from, to, says) in [
            ("hosts: [robot, base]", "hosts: [robot, robot]", "twice"),
            ("hosts: [robot, base]", "hosts: []", "1 to 256 hosts"),
            ("to: base", "to: moon", "'moon' is none of `hosts`: robot, base"),
            ("radio: 6Mbit/s", "radio: fast", "radio: 'fast'"),
            ("radio: 6Mbit/s", "radio: 6Mbit/s, wire: 1Mbit/s", "either"),
            ("radio: 6Mbit/s", "radio: 6Mbit/s, hops: 0", "hops"),
            ("radio: 6Mbit/s", "radio: 6Mbit/s, delay: 1ms", "of wires only"),
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
        assert!(parse("").is_err());
    }
}
