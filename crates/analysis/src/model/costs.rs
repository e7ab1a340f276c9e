//! The model: what a round trip costs, and what follows.

use super::network::{Network, Share, packet};
use super::{Params, SUSTAINED, Varied};
use serde::{Deserialize, Serialize};

/// What a round trip costs by its size, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Costs {
    /// Whatever its size.
    pub per_message_s: f64,
    /// For each byte of payload.
    pub per_byte_s: f64,
    /// In addition where sockets carry it.
    pub sockets_s: f64,
    /// In addition for each byte that sockets carry.
    pub sockets_per_byte_s: f64,
    /// In addition for the part of a packet that it fills, up to a whole one: small messages share packets.
    #[serde(default)]
    pub packet_s: f64,
}

/// Costs there are.
pub(super) const COSTS: usize = 5;

impl Costs {
    /// Of a message of so many bytes.
    pub fn of(&self, bytes: u64, network: Network) -> f64 {
        let columns = Costs::columns(bytes, network);
        self.all().iter().zip(columns).map(|(cost, by)| cost * by).sum()
    }

    /// What each of them goes by, in the order of [`Costs::all`].
    pub(super) fn columns(bytes: u64, network: Network) -> [f64; COSTS] {
        let sockets = f64::from(u8::from(network.is_sockets()));
        let size = bytes as f64;
        [1.0, size, sockets, sockets * size, sockets * packet(size)]
    }

    pub(super) fn all(&self) -> [f64; COSTS] {
        [
            self.per_message_s,
            self.per_byte_s,
            self.sockets_s,
            self.sockets_per_byte_s,
            self.packet_s,
        ]
    }

    /// From the same order.
    pub(super) fn from_all(all: &[f64]) -> Costs {
        Costs {
            per_message_s: all[0],
            per_byte_s: all[1],
            sockets_s: all[2],
            sockets_per_byte_s: all[3],
            packet_s: all[4],
        }
    }
}

/// What is exhausted first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// A sender or its peer is busy all the time.
    Process,
    /// The processors are.
    Machine,
    /// The wire or the air is.
    Medium,
}

impl Limit {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Limit::Process => "one process",
            Limit::Machine => "the processors",
            Limit::Medium => "the medium",
        }
    }
}

/// A machine and a system on it, calibrated.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Model {
    /// For how long a round trip keeps the busiest process busy.
    pub process: Costs,
    /// For how long it keeps all processors of a machine busy.
    pub machine: Costs,
    /// A round trip grows with this power of the number of processes: what they take from each other's caches.
    pub crowd: f64,
    /// In addition for waking processes, which those that wait for a processor need not be: with the share of the time in
    /// which processors are free.
    pub wake_s: f64,
    /// Share of a machine that each process takes even while it does nothing.
    pub idle_node: f64,
    /// By so much longer than the closed form wires are occupied.
    pub wire: f64,
    /// The same of radios: acknowledgements of the transport, collisions.
    pub radio: f64,
    /// How much of what a message takes on a wire it takes as a part of packets that it shares with others; the rest alone.
    pub wire_together: f64,
    /// The same of radios.
    pub radio_together: f64,
    /// The round trip on idle machines, beside the medium, for two processes.
    pub delay: Costs,
    /// Processors that are really there, if the calibration tells.
    pub processors: Option<f64>,
    /// What was not measured but assumed.
    pub assumed: Vec<String>,
    /// Median error of a knee that was left out of the fit, if there were enough.
    pub error: Option<f64>,
    /// Knees and cells of the calibration.
    pub cells: usize,
}

/// What the model says of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Prediction {
    /// Mean round trip in ms; none if it grows without end.
    pub mean_ms: Option<f64>,
    /// How busy what is busiest would be; above 1 it cannot follow.
    pub load: f64,
    /// What that is.
    pub limit: Limit,
    /// Whether it works.
    pub sustained: bool,
}

/// Queues and overload are told for runs of at least so many seconds: shorter ones end before they grow.
const SHORTEST_RUN: f64 = 1.0;

impl Model {
    /// What a setting would be like.
    pub fn predict(&self, params: &Params) -> Prediction {
        let (limit, load) = self.load(params);
        let mean = self.mean(params);
        Prediction {
            mean_ms: mean.is_finite().then_some(mean * 1e3),
            load,
            limit,
            sustained: mean * 1e3 <= SUSTAINED.mean_ms,
        }
    }

    /// How many round trips a second the setting carries if what is varied grows; none if the model knows no limit.
    pub fn knee(&self, params: &Params, varied: Varied) -> Option<f64> {
        let grown = |factor: f64| {
            let mut p = params.clone();
            match varied {
                Varied::Hz => p.hz = factor,
                Varied::Nodes => {
                    // In parts of a node, so that the answer moves evenly.
                    return self.mean_of(&Point::of(&p).times(factor));
                }
            }
            self.mean_of(&Point::of(&p))
        };
        let (mut low, mut high) = (1e-6f64, 1e9f64);
        let most = SUSTAINED.mean_ms / 1e3;
        if grown(low) > most {
            return Some(0.0);
        }
        if grown(high) <= most {
            return None;
        }
        for _ in 0..100 {
            let middle = (low * high).sqrt();
            if grown(middle) <= most {
                low = middle;
            } else {
                high = middle;
            }
        }
        let rate = match varied {
            Varied::Hz => f64::from(params.senders) * low * params.copies(),
            Varied::Nodes => params.rate() * low,
        };
        Some(rate)
    }

    /// What is busiest, and how much.
    pub fn load(&self, params: &Params) -> (Limit, f64) {
        let loads = self.loads(&Point::of(params));
        let all = [Limit::Process, Limit::Machine, Limit::Medium]
            .into_iter()
            .zip(loads);
        all.fold(
            (Limit::Process, 0.0),
            |best, one| if one.1 > best.1 { one } else { best },
        )
    }

    /// Of process, machine and medium.
    pub(super) fn loads(&self, p: &Point) -> [f64; 3] {
        let process = p.rate * self.process.of(p.bytes, p.network) / p.senders / p.share;
        [process, self.machine_load(p), p.rate * self.occupied(p)]
    }

    /// Who waits for a processor has more than one message when it gets it, so that waking goes with the time that is
    /// left: of load = rate · (trip + wake · (1 - load)) + idle, the load.
    fn machine_load(&self, p: &Point) -> f64 {
        let of = |seconds: f64| seconds / p.share / p.machines;
        let awake = of(p.rate * self.awake(p) + self.idle_node * p.nodes);
        let wakes = of(p.rate * self.waking(p));
        if awake >= 1.0 {
            return awake;
        }
        (awake + wakes) / (1.0 + wakes)
    }

    /// A round trip among processes that are awake.
    fn awake(&self, p: &Point) -> f64 {
        self.machine.of(p.bytes, p.network) * self.crowded(p)
    }

    /// What is added if all who take part sleep.
    fn waking(&self, p: &Point) -> f64 {
        self.wake_s * self.crowded(p)
    }

    /// A round trip where the machine has so much to do.
    fn trip(&self, p: &Point, load: f64) -> f64 {
        self.awake(p) + self.waking(p) * (1.0 - load).clamp(0.0, 1.0)
    }

    /// By so much dearer than for two.
    pub(super) fn crowded(&self, p: &Point) -> f64 {
        (p.nodes / 2.0).max(1.0).powf(self.crowd)
    }

    pub(super) fn occupied(&self, p: &Point) -> f64 {
        let (lines, together) = match p.network.share() {
            Some(Share::Wire) => (p.lines, self.wire_together),
            Some(Share::Radio) => (1.0, self.radio_together),
            None => return 0.0,
        };
        let (alone, shared) = (p.network.occupied(p.bytes), p.network.occupied_together(p.bytes));
        (alone + (shared - alone) * together) * self.factor(p) / lines
    }

    fn mean(&self, params: &Params) -> f64 {
        self.mean_of(&Point::of(params))
    }

    /// In seconds; infinite where it cannot follow and nobody knows for how long it must.
    fn mean_of(&self, p: &Point) -> f64 {
        let loads = self.loads(p);
        let busiest = loads.iter().fold(0.0f64, |a, b| a.max(*b));
        self.idle_delay(p) + self.waiting(p) + overload(busiest, p)
    }

    /// The round trip when nothing else goes on.
    fn idle_delay(&self, p: &Point) -> f64 {
        self.delay.of(p.bytes, p.network) * self.crowded(p) + 2.0 * self.one_way(p)
    }

    /// Over the idle medium, in seconds.
    pub(super) fn one_way(&self, p: &Point) -> f64 {
        p.network.one_way(p.bytes) * self.factor(p)
    }

    fn factor(&self, p: &Point) -> f64 {
        match p.network.share() {
            Some(Share::Wire) => self.wire,
            Some(Share::Radio) => self.radio,
            None => 1.0,
        }
    }

    /// Behind others: by the queue of constant service (Pollaczek 1930) as long as it is short. Senders are periodic, so
    /// that it cannot grow beyond what their phases make of it: √(πn/8) services at full load (the Brownian bridge of
    /// n·D/D/1).
    pub(super) fn waiting(&self, p: &Point) -> f64 {
        let loads = self.loads(p);
        let services = [
            self.process.of(p.bytes, p.network),
            self.trip(p, loads[1]),
            self.occupied(p),
        ];
        let n = p.senders.max(1.0);
        let most = (std::f64::consts::PI * n / 8.0).sqrt();
        let each = loads.iter().zip(services).map(|(load, service)| {
            let load = load.min(1.0);
            let random = load / (2.0 * (1.0 - load).max(1e-9));
            // Both bounds at once, and neither at its full where they meet.
            service * random * most / (random + most)
        });
        (1.0 - 1.0 / n) * each.sum::<f64>()
    }
}

/// What overload adds to the mean of a run: the queue grows evenly until its end.
fn overload(load: f64, p: &Point) -> f64 {
    match p.trips {
        _ if load <= 1.0 => 0.0,
        Some(trips) => (load - 1.0) * (trips / p.rate).max(SHORTEST_RUN) / 2.0,
        None => f64::INFINITY,
    }
}

/// How much more than it can carry a run is offered at its measured knee: see [`overload`].
pub(super) fn overload_at_knee(rate: f64, trips: Option<f64>) -> f64 {
    let run = trips.map(|t| (t / rate).max(SHORTEST_RUN));
    1.0 + run.map_or(0.0, |run| 2.0 * SUSTAINED.mean_ms / 1e3 / run)
}

/// A setting as the model reckons with it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    pub(super) rate: f64,
    pub(super) senders: f64,
    pub(super) nodes: f64,
    pub(super) bytes: u64,
    pub(super) network: Network,
    pub(super) share: f64,
    pub(super) machines: f64,
    /// Wires that carry at once, each in both directions: through a switch each sending host has its own.
    pub(super) lines: f64,
    pub(super) trips: Option<f64>,
}

impl Point {
    pub(super) fn of(params: &Params) -> Point {
        Point {
            rate: params.rate(),
            senders: f64::from(params.senders.max(1)),
            nodes: f64::from(params.nodes),
            bytes: params.bytes,
            network: Network::named(&params.medium),
            share: params.share(),
            machines: f64::from(params.machines.max(1)),
            lines: params.lines(),
            trips: params.trips(),
        }
    }

    /// Processors of each machine that so much time for a round trip keeps busy.
    pub(super) fn busy(&self, cpu_s: f64) -> f64 {
        cpu_s * self.rate / self.share / self.machines
    }

    fn times(self, factor: f64) -> Point {
        Point {
            rate: self.rate * factor,
            senders: self.senders * factor,
            nodes: self.nodes * factor,
            trips: self.trips.map(|t| t * factor),
            ..self
        }
    }
}
