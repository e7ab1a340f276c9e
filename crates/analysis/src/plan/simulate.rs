//! Simulates a whole system in virtual time.

use super::air::{self, Setting, Stream};
use super::host::HostCosts;
use super::system::{Kind, Medium, Reliability, System, Topic};
use medium::{ChannelConfig, Loss, MediumConfig, Path, Rng, Topology, WireConfig};
use proto::{AirtimeModel, PeerConfig, RadioConfig, TopicConfig};
use stats::{Interval, Moments};
use std::time::Duration;

/// Longest datagrams of the carriers: QUIC's, and plain UDP's.
const IN_QUIC: usize = 1438;
const IN_UDP: usize = 1472;
/// Preamble, header, checksum and gap of Ethernet.
const ETHERNET: u32 = 38;
/// Most stations on one channel that are simulated.
const MOST_STATIONS: usize = 250;

/// Number and duration of runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effort {
    /// Runs, each with another random seed.
    pub runs: u32,
    /// Measured duration of each.
    pub span: Duration,
    /// Seed of the first.
    pub seed: u64,
}

/// Predicted measurements.
#[derive(Clone, Debug, PartialEq)]
pub struct Simulated {
    /// Results of each topic, in the order of the system.
    pub topics: Vec<TopicFigures>,
    /// Share of the time in which each medium is busy.
    pub busy: Vec<f64>,
    /// Share of its processors that messages take, for each host.
    pub processors: Vec<f64>,
}

/// Results of one topic; for a fleet, of all its robots.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TopicFigures {
    /// Share that arrives.
    pub delivery: f64,
    /// Mean delay in ms, including the hosts' part.
    pub mean_ms: f64,
    /// Its 95 % interval over the runs.
    pub mean_interval_ms: Option<Interval>,
    /// Delay within which 99 % of the received messages arrive; for a fleet that of the worst robot.
    pub p99_ms: f64,
    /// The longest delay.
    pub max_ms: f64,
    /// Whether it meets the designer's requirements.
    pub fits: bool,
}

/// Simulates `system`, with all frequencies times `load`, and with `robots` on each radio in place of one robot of a
/// fleet.
///
/// # Errors
/// If the protocol or the medium refuses the system.
pub fn simulate(
    system: &System,
    costs: &HostCosts,
    load: f64,
    robots: usize,
    effort: Effort,
) -> Result<Simulated, String> {
    if robots > MOST_STATIONS {
        return Err(format!(
            "{robots} robots on one channel: at most {MOST_STATIONS} are simulated; no radio carries more"
        ));
    }
    let mut figures = vec![Gathered::default(); system.topics.len()];
    let mut busy = vec![Moments::default(); system.media.len()];
    for run in 0..effort.runs.max(1) {
        let seed = effort.seed + u64::from(run) * 7919;
        for (place, medium) in system.media.iter().enumerate() {
            let topics: Vec<usize> = (0..system.topics.len())
                .filter(|t| system.topics[*t].over == Some(place))
                .collect();
            if topics.is_empty() {
                continue;
            }
            let (setting, of) = setting(system, medium, &topics, load, robots, seed, effort.span);
            let ran = air::run(setting)?;
            busy[place].record(ran.busy);
            for (flow, topic) in ran.flows.iter().zip(of) {
                figures[topic].add(flow);
            }
        }
        for g in &mut figures {
            g.end_of_run();
        }
    }
    let topics = system
        .topics
        .iter()
        .zip(&figures)
        .map(|(t, g)| g.figures(t, costs.delay_ms(t.bytes(), t.over.is_some())));
    let topics = topics.collect();
    Ok(Simulated {
        topics,
        busy: busy.iter().map(Moments::mean).collect(),
        processors: processors(system, costs, load, robots),
    })
}

/// Share of its processors that messages take, for each host.
pub(super) fn processors(system: &System, costs: &HostCosts, load: f64, robots: usize) -> Vec<f64> {
    let mut all = vec![0.0; system.hosts.len()];
    let fleet = system.fleet.as_ref().map(|f| f.host);
    for t in &system.topics {
        let one = costs.load(t.bytes(), t.hz * load, t.over.is_some());
        for host in [t.from, t.to] {
            // A host that talks to all robots handles the messages of all.
            let of_fleet = fleet.is_some_and(|f| f != host && (f == t.from || f == t.to));
            all[host] += one * if of_fleet { robots as f64 } else { 1.0 };
        }
    }
    all
}

/// The setting of one medium, and the topic of each of its streams.
fn setting(
    system: &System,
    medium: &Medium,
    topics: &[usize],
    load: f64,
    robots: usize,
    seed: u64,
    span: Duration,
) -> (Setting, Vec<usize>) {
    let fleet = system.fleet.as_ref().map(|f| f.host);
    let of_fleet = fleet.filter(|f| medium.hosts.contains(f) && robots > 1);
    // The robots of a fleet come after all other hosts.
    let mut stations: Vec<usize> = medium.hosts.clone();
    stations.extend(of_fleet.iter().flat_map(|f| std::iter::repeat_n(*f, robots - 1)));
    let (channel, airtime, hops, places) = channel(medium, stations.len(), seed);
    let mut rng = Rng::new(seed ^ 0x51A7);
    let (mut streams, mut of) = (Vec::new(), Vec::new());
    for place in topics {
        let t = &system.topics[*place];
        let copies: Vec<(usize, usize)> = pairs(&stations, t.from, t.to);
        for (from, to) in copies {
            streams.push(stream(t, from, to, load, &mut rng));
            of.push(*place);
        }
    }
    let recorded = topics.iter().all(|t| !system.topics[*t].times.is_empty());
    let quic = medium.around > 0;
    let setting = Setting {
        channel,
        hosts: places,
        radio: RadioConfig::new(1, airtime),
        peer: PeerConfig {
            hops,
            max_datagram: if quic { IN_QUIC } else { IN_UDP },
            ..PeerConfig::default()
        },
        around: medium.around,
        streams,
        seed,
        // A recording has its own start.
        warm_up: Duration::from_millis(if recorded { 500 } else { 2500 }),
        span,
    };
    (setting, of)
}

/// Pairs of stations that stand for the two hosts: each robot of a fleet with each other host.
fn pairs(stations: &[usize], from: usize, to: usize) -> Vec<(usize, usize)> {
    let of = |host: usize| (0..stations.len()).filter(move |s| stations[*s] == host);
    of(from).flat_map(|f| of(to).map(move |t| (f, t))).collect()
}

fn channel(medium: &Medium, stations: usize, seed: u64) -> (ChannelConfig, AirtimeModel, u32, Vec<usize>) {
    let loss = if medium.loss > 0.0 {
        Loss::Uniform(medium.loss)
    } else {
        Loss::NONE
    };
    match medium.kind {
        Kind::Radio { rate, hops } => {
            let chain = MediumConfig::chain(hops as usize);
            let (hosts, topology, places) = if hops > 1 {
                (hops as usize + 1, Topology::Chain, vec![0, hops as usize])
            } else {
                (stations, Topology::Mesh, (0..stations).collect())
            };
            let config = MediumConfig {
                rate_bits: rate,
                hosts,
                topology,
                loss,
                seed,
                ..chain
            };
            let airtime = AirtimeModel::wifi(rate);
            let airtime = AirtimeModel {
                extra_bytes: airtime.extra_bytes + medium.around as u32,
                ..airtime
            };
            (ChannelConfig::Radio(config), airtime, hops, places)
        }
        Kind::Wire { rate, delay } => {
            let config = WireConfig {
                path: Path::delay(delay),
                loss,
                seed,
                ..WireConfig::ethernet(rate)
            };
            let airtime = AirtimeModel::bytes(rate, medium.around as u32 + 28 + ETHERNET);
            (ChannelConfig::Wire(config), airtime, 1, vec![0, 1])
        }
    }
}

fn stream(t: &Topic, from: usize, to: usize, load: f64, rng: &mut Rng) -> Stream {
    let period = Duration::from_secs_f64(1.0 / (t.hz * load));
    let chance = Duration::from_nanos(rng.below(period.as_nanos() as u64 + 1));
    let times: Vec<Duration> = t.times.iter().map(|at| at.div_f64(load)).collect();
    let phase = match t.phase {
        Some(phase) => phase.div_f64(load),
        None if times.is_empty() => chance,
        None => Duration::ZERO,
    };
    Stream {
        from,
        to,
        config: TopicConfig {
            priority: t.priority,
            depth: t.depth,
            deadline: t.deadline,
            reliability: match t.reliability {
                Reliability::BestEffort => proto::Reliability::BestEffort,
                Reliability::Redundant => proto::Reliability::Redundant,
                Reliability::Reliable => proto::Reliability::Reliable,
            },
            ..TopicConfig::new(&t.name, &t.type_name)
        },
        sizes: t.sizes.clone(),
        times,
        period,
        phase,
        jitter: t.jitter,
    }
}

#[derive(Clone, Default)]
struct Gathered {
    sent: u64,
    received: u64,
    p99: f64,
    max: f64,
    run: Moments,
    weight: f64,
    sum: f64,
    means: Vec<f64>,
    all: (f64, f64),
}

impl Gathered {
    fn add(&mut self, flow: &stats::FlowMetrics) {
        self.sent += flow.sent;
        self.received += flow.received;
        self.p99 = self.p99.max(flow.delay_ms.p99);
        self.max = self.max.max(flow.delay_ms.max);
        self.weight += flow.received as f64;
        self.sum += flow.received as f64 * flow.delay_ms.mean;
        self.run.record(flow.delay_ms.p99);
    }

    fn end_of_run(&mut self) {
        if self.weight > 0.0 {
            self.means.push(self.sum / self.weight);
        }
        self.all = (self.all.0 + self.sum, self.all.1 + self.weight);
        (self.weight, self.sum) = (0.0, 0.0);
    }

    fn figures(&self, topic: &Topic, host_ms: f64) -> TopicFigures {
        // On one host no medium is involved.
        if topic.over.is_none() {
            return TopicFigures {
                delivery: 1.0,
                mean_ms: host_ms,
                mean_interval_ms: None,
                p99_ms: host_ms,
                max_ms: host_ms,
                fits: true,
            };
        }
        let delivery = self.received as f64 / self.sent.max(1) as f64;
        let p99_ms = self.p99 + host_ms;
        let within = topic.within.is_none_or(|w| p99_ms <= w.as_secs_f64() * 1e3);
        TopicFigures {
            delivery,
            mean_ms: self.all.0 / self.all.1.max(1.0) + host_ms,
            mean_interval_ms: Interval::of_runs(&self.means).map(|i| Interval {
                low: i.low + host_ms,
                high: i.high + host_ms,
            }),
            p99_ms,
            max_ms: self.max + host_ms,
            fits: delivery >= topic.delivery && within,
        }
    }
}
