//! A machine with known costs, simulated event by event: processes that take turns on processors, and a medium between
//! them.
#![allow(unreachable_pub, dead_code)]

use analysis::model::{Knee, Network, Params, SUSTAINED, Sample, Varied};
use analysis::raw::{self, Error, Outcome};
use std::collections::{BinaryHeap, VecDeque};
use std::path::Path;

/// Analyzes raw data, as `ropewalk bench analyze DIR` does.
pub fn analyze(dir: &Path) -> Result<Outcome, Error> {
    let options = raw::Options {
        dir: dir.to_owned(),
        layout: None,
        json: Default::default(),
        csv: None,
        figure: None,
    };
    raw::run(&options, &|| false)
}

/// True costs, in µs and µs a byte.
#[derive(Clone, Copy)]
pub struct Truth {
    pub processors: usize,
    pub send: f64,
    pub receive: f64,
    pub per_byte: f64,
    pub sockets: f64,
    pub sockets_per_byte: f64,
    pub wake: f64,
    /// Exponent by which each job grows with the number of processes.
    pub contention: f64,
    /// Work of every idle process each 10 ms.
    pub tick: f64,
    /// Factor of the closed form.
    pub wire: f64,
    pub radio: f64,
}

#[derive(Clone, Copy, PartialEq)]
enum Step {
    Send,
    Answer,
    Receive,
    Tick,
}

#[derive(Clone, Copy, PartialEq)]
struct Job {
    step: Step,
    trip: usize,
}

#[derive(Clone, Copy, PartialEq)]
enum What {
    Arrives(usize, Job),
    Ends(usize, Job),
}

#[derive(PartialEq)]
struct Event(f64, u64, What);

impl Eq for Event {}
impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Event {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        other.0.total_cmp(&self.0).then(other.1.cmp(&self.1))
    }
}

#[derive(Default)]
struct Process {
    queue: VecDeque<Job>,
    running: bool,
    woken: bool,
}

struct Machine<'a> {
    truth: &'a Truth,
    bytes: f64,
    sockets: bool,
    nodes: f64,
    processes: Vec<Process>,
    ready: VecDeque<usize>,
    idle: usize,
    events: BinaryHeap<Event>,
    order: u64,
    busy: f64,
    wakes: u64,
}

impl Machine<'_> {
    fn at(&mut self, time: f64, what: What) {
        self.order += 1;
        self.events.push(Event(time, self.order, what));
    }

    fn start(&mut self, now: f64) {
        while self.idle > 0
            && let Some(p) = self.ready.pop_front()
        {
            let process = &mut self.processes[p];
            let Some(job) = process.queue.pop_front() else {
                continue;
            };
            let t = self.truth;
            let byte = t.per_byte + if self.sockets { t.sockets_per_byte } else { 0.0 };
            let socket = if self.sockets { t.sockets } else { 0.0 };
            let once = byte * self.bytes + socket;
            let work = match job.step {
                Step::Send => t.send + once,
                Step::Receive => t.receive + once,
                Step::Answer => t.send + t.receive + 2.0 * once,
                Step::Tick => t.tick,
            };
            let woken = f64::from(u8::from(process.woken)) * t.wake;
            (process.running, process.woken) = (true, false);
            let work = (work + woken) * (self.nodes / 2.0).powf(t.contention) / 1e6;
            self.idle -= 1;
            self.busy += work;
            self.at(now + work, What::Ends(p, job));
        }
    }
}

/// One run: delivery (complete, unless the log closes earlier), mean round trip, processor time per round trip.
pub fn run(truth: &Truth, params: &Params, seconds: f64, seed: u64) -> Sample {
    let senders = params.senders as usize;
    let network = Network::named(&params.medium);
    let messages = ((params.hz * seconds) as usize).clamp(20, 400_000 / senders.max(1));
    let mut m = Machine {
        truth,
        bytes: params.bytes as f64,
        sockets: network.is_sockets(),
        nodes: f64::from(params.nodes),
        processes: (0..2 * senders).map(|_| Process::default()).collect(),
        ready: VecDeque::new(),
        idle: truth.processors,
        events: BinaryHeap::new(),
        order: 0,
        busy: 0.0,
        wakes: 0,
    };
    let mut state = seed;
    let mut uniform = move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let phases: Vec<f64> = (0..senders).map(|_| uniform() / params.hz).collect();
    let sent = |trip: usize| phases[trip % senders] + (trip / senders) as f64 / params.hz;
    for (s, phase) in phases.iter().enumerate() {
        m.at(
            *phase,
            What::Arrives(
                2 * s,
                Job {
                    step: Step::Send,
                    trip: s,
                },
            ),
        );
    }
    let tick = Job {
        step: Step::Tick,
        trip: 0,
    };
    for p in 0..2 * senders {
        if truth.tick > 0.0 {
            let at = uniform() * 0.01;
            m.at(at, What::Arrives(p, tick));
        }
    }
    let trips = messages * senders;
    let closes = messages as f64 / params.hz + 5.0;
    let factor = if matches!(network, Network::Radio { .. }) {
        truth.radio
    } else {
        truth.wire
    };
    let one_way = network.one_way(params.bytes) * factor;
    let half_duplex = matches!(network, Network::Radio { .. });
    let mut free = [0.0f64; 2];
    let (mut rtt, mut received) = (0.0, 0usize);
    while let Some(Event(now, _, what)) = m.events.pop() {
        if now > closes || received == trips {
            break;
        }
        match what {
            What::Arrives(p, job) => {
                let next = job.trip + senders;
                if job.step == Step::Send && next < trips {
                    let job = Job {
                        step: Step::Send,
                        trip: next,
                    };
                    m.at(sent(next), What::Arrives(p, job));
                }
                if job.step == Step::Tick {
                    m.at(now + 0.01, What::Arrives(p, tick));
                }
                let process = &mut m.processes[p];
                if process.queue.is_empty() && !process.running {
                    process.woken = job.step != Step::Tick;
                    m.wakes += 1;
                    m.ready.push_back(p);
                }
                m.processes[p].queue.push_back(job);
            }
            What::Ends(p, job) => {
                m.idle += 1;
                m.processes[p].running = false;
                if !m.processes[p].queue.is_empty() {
                    m.ready.push_back(p);
                }
                let (to, step, line) = match job.step {
                    Step::Send => (p + 1, Step::Answer, 0),
                    Step::Answer => (p - 1, Step::Receive, 1),
                    Step::Receive => {
                        rtt += now - sent(job.trip);
                        received += 1;
                        m.start(now);
                        continue;
                    }
                    Step::Tick => {
                        m.start(now);
                        continue;
                    }
                };
                let line = if half_duplex { 0 } else { line };
                let start = free[line].max(now);
                free[line] = start + one_way;
                let job = Job { step, trip: job.trip };
                let arrives = free[line];
                m.at(arrives, What::Arrives(to, job));
            }
        }
        m.start(now);
    }
    let delivery = received as f64 / trips as f64;
    let mean_ms = (received > 0).then(|| rtt / received as f64 * 1e3);
    let mut params = params.clone();
    params.messages = messages as u32;
    Sample {
        delivery,
        mean_ms,
        cpu_us: Some(m.busy / received.max(1) as f64 * 1e6),
        switches: Some(m.wakes as f64 / received.max(1) as f64),
        sustained: SUSTAINED.holds(delivery, mean_ms),
        params,
    }
}

/// The knee of the sweep over the frequency, to 5 %, with the cells on the way.
pub fn sweep(truth: &Truth, params: &Params, seconds: f64, samples: &mut Vec<Sample>) -> Option<Knee> {
    let mut one = |hz: f64| {
        let sample = run(truth, &Params { hz, ..params.clone() }, seconds, 7);
        samples.push(sample.clone());
        sample
    };
    let mut low = one(1.0);
    if !low.sustained {
        return None;
    }
    let mut high = low.clone();
    while high.sustained {
        low = high;
        high = one(low.params.hz * 4.0);
    }
    while high.params.hz / low.params.hz > 1.05 {
        let middle = one((high.params.hz * low.params.hz).sqrt());
        if middle.sustained {
            low = middle;
        } else {
            high = middle;
        }
    }
    let mut params = low.params.clone();
    params.hz = (low.params.hz * high.params.hz).sqrt();
    Some(Knee {
        ends: None,
        varied: Varied::Hz,
        sustained: low.params.rate(),
        broken: high.params.rate(),
        cpu_us: low.cpu_us,
        params,
    })
}
