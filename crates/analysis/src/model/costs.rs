//! The cost model of a round trip, and its predictions.

use super::network::{Network, Share, packet};
use super::{Params, SUSTAINED, Varied};
use serde::{Deserialize, Serialize};

/// Cost of a round trip by its size, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Costs {
    /// Independent of its size.
    pub per_message_s: f64,
    /// Per byte of payload.
    pub per_byte_s: f64,
    /// Additional cost over sockets.
    pub sockets_s: f64,
    /// Additional cost per byte over sockets.
    pub sockets_per_byte_s: f64,
    /// Additional cost for the part of a packet that it fills, up to a whole packet: small messages share packets.
    #[serde(default)]
    pub packet_s: f64,
}

/// Number of costs.
pub(super) const COSTS: usize = 5;

impl Costs {
    /// Cost of a message of this size.
    pub fn of(&self, bytes: u64, network: Network) -> f64 {
        let columns = Costs::columns(bytes, network);
        self.all().iter().zip(columns).map(|(cost, by)| cost * by).sum()
    }

    /// Factors of the costs, in the order of [`Costs::all`].
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

    /// From values in the same order.
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

/// The resource that is exhausted first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// A sender or its peer is always busy.
    Process,
    /// The processors are always busy.
    Machine,
    /// The wire or the air is always busy.
    Medium,
}

impl Limit {
    /// Name for people.
    pub fn name(self) -> &'static str {
        match self {
            Limit::Process => "one process",
            Limit::Machine => "the processors",
            Limit::Medium => "the medium",
        }
    }
}

/// Calibrated model of a machine and a system on it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Model {
    /// Time for which a round trip keeps the busiest process busy.
    pub process: Costs,
    /// Time for which a round trip keeps all processors of a machine busy.
    pub machine: Costs,
    /// Exponent by which the cost of a round trip grows with the number of processes, which evict each other's cache
    /// lines.
    pub contention: f64,
    /// Additional cost to wake processes, multiplied by the share of the time in which processors are idle: a process
    /// that waits for a processor need not be woken.
    pub wake_s: f64,
    /// Share of a machine that each process uses even when idle.
    pub idle_node: f64,
    /// Factor between the time for which wires are occupied and the closed form.
    pub wire: f64,
    /// The same for radios: acknowledgements of the transport, collisions.
    pub radio: f64,
    /// Share of a message's time on a wire that it spends in packets shared with other messages; it fills packets alone
    /// for the rest.
    pub wire_together: f64,
    /// The same for radios.
    pub radio_together: f64,
    /// Round trip of two processes on idle machines, without the medium.
    pub delay: Costs,
    /// Number of effective processors, if the calibration shows it.
    pub processors: Option<f64>,
    /// Assumptions in place of measurements.
    pub assumed: Vec<String>,
    /// Median error of a knee that was left out of the fit, if there were enough knees.
    pub error: Option<f64>,
    /// Number of knees and cells in the calibration.
    pub cells: usize,
}

/// Prediction for a setting.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Prediction {
    /// Mean round trip in ms; none if it grows without limit.
    pub mean_ms: Option<f64>,
    /// Load of the busiest resource; above 1 it is overloaded.
    pub load: f64,
    /// The busiest resource.
    pub limit: Limit,
    /// Whether the setting works.
    pub sustained: bool,
}

/// Shortest run in seconds for which queues and overload are predicted: shorter runs end before queues grow.
const SHORTEST_RUN: f64 = 1.0;

impl Model {
    /// Predicts a setting.
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

    /// Round trips a second that the setting carries when `varied` grows; none if the model has no limit.
    pub fn knee(&self, params: &Params, varied: Varied) -> Option<f64> {
        let grown = |factor: f64| {
            let mut p = params.clone();
            match varied {
                Varied::Hz => p.hz = factor,
                Varied::Nodes => {
                    // In fractions of a node, so that the result changes smoothly.
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

    /// The busiest resource, and its load.
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

    /// Loads of process, machine and medium.
    pub(super) fn loads(&self, p: &Point) -> [f64; 3] {
        let process = p.rate * self.process.of(p.bytes, p.network) / p.senders / p.share;
        [process, self.machine_load(p), p.rate * self.occupied(p)]
    }

    /// Load of a machine. A process that waits for a processor has several messages by the time it runs, so the cost of
    /// wake-ups decreases with the idle time. Solves load = rate · (trip + wake · (1 - load)) + idle.
    fn machine_load(&self, p: &Point) -> f64 {
        let of = |seconds: f64| seconds / p.share / p.machines;
        let awake = of(p.rate * self.awake(p) + self.idle_node * p.nodes);
        let wakes = of(p.rate * self.waking(p));
        if awake >= 1.0 {
            return awake;
        }
        (awake + wakes) / (1.0 + wakes)
    }

    /// Cost of a round trip among running processes.
    fn awake(&self, p: &Point) -> f64 {
        self.machine.of(p.bytes, p.network) * self.contended(p)
    }

    /// Additional cost if all processes sleep.
    fn waking(&self, p: &Point) -> f64 {
        self.wake_s * self.contended(p)
    }

    /// Cost of a round trip on a machine with this load.
    fn trip(&self, p: &Point, load: f64) -> f64 {
        self.awake(p) + self.waking(p) * (1.0 - load).clamp(0.0, 1.0)
    }

    /// Factor of the cost compared with two processes.
    pub(super) fn contended(&self, p: &Point) -> f64 {
        (p.nodes / 2.0).max(1.0).powf(self.contention)
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

    /// Mean round trip in seconds; infinite for an overload of unknown duration.
    fn mean_of(&self, p: &Point) -> f64 {
        let loads = self.loads(p);
        let busiest = loads.iter().fold(0.0f64, |a, b| a.max(*b));
        self.idle_delay(p) + self.waiting(p) + overload(busiest, p)
    }

    /// Round trip without other load.
    fn idle_delay(&self, p: &Point) -> f64 {
        self.delay.of(p.bytes, p.network) * self.contended(p) + 2.0 * self.one_way(p)
    }

    /// One way over the idle medium, in seconds.
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

    /// Waiting time behind other messages: a queue with constant service time (Pollaczek 1930) as long as it is short.
    /// Senders are periodic, so the queue cannot exceed what their phases allow: √(πn/8) services at full load (the
    /// Brownian bridge of n·D/D/1).
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
            // A smooth minimum of both bounds.
            service * random * most / (random + most)
        });
        (1.0 - 1.0 / n) * each.sum::<f64>()
    }
}

/// Contribution of overload to the mean of a run: the queue grows linearly until the end.
fn overload(load: f64, p: &Point) -> f64 {
    match p.trips {
        _ if load <= 1.0 => 0.0,
        Some(trips) => (load - 1.0) * (trips / p.rate).max(SHORTEST_RUN) / 2.0,
        None => f64::INFINITY,
    }
}

/// Overload of a run at its measured knee: see [`overload`].
pub(super) fn overload_at_knee(rate: f64, trips: Option<f64>) -> f64 {
    let run = trips.map(|t| (t / rate).max(SHORTEST_RUN));
    1.0 + run.map_or(0.0, |run| 2.0 * SUSTAINED.mean_ms / 1e3 / run)
}

/// A setting in the form that the model uses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    pub(super) rate: f64,
    pub(super) senders: f64,
    pub(super) nodes: f64,
    pub(super) bytes: u64,
    pub(super) network: Network,
    pub(super) share: f64,
    pub(super) machines: f64,
    /// Number of wires that carry at once, each in both directions: behind a switch each sending host has its own.
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

    /// Number of processors of each machine that this time per round trip keeps busy.
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
