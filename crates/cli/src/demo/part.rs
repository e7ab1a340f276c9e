//! Body of the demo's processes.

use super::protocol::{AIR_AT_BASE, AIR_AT_ROBOT, BASE, GO, Part, ROBOT, RadioState, Report, Spec};
use super::{publisher, subscriber};
use crate::failure::{Failure, OrFail, Outcome};
use bus::{Bus, BusConfig};
use lab::{LoopbackRadio, Scenario, Tap};
use link::config::{Direction, Order, PeerConfig, RadioConfig, TopicConfig};
use link::{Config, Daemon};
use ropewalk::Node;
use std::io::{BufRead, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Interval at which parts report.
pub(crate) const REPORT_INTERVAL: Duration = Duration::from_millis(250);

/// Requests of the demo, shared by all parts of a process.
pub(crate) struct Wishes {
    pub(crate) stop: AtomicBool,
    state: Mutex<bool>,
    changed: Condvar,
}

impl Wishes {
    /// Blocks until the publisher may start; false if the demo stops instead.
    pub(crate) fn wait_for_go(&self) -> bool {
        let mut go = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while !*go && !self.stop.load(Ordering::Relaxed) {
            go = self.changed.wait(go).unwrap_or_else(PoisonError::into_inner);
        }
        !self.stop.load(Ordering::Relaxed)
    }

    /// Sleeps until the next report is due; false once the demo stops.
    pub(crate) fn pause(&self) -> bool {
        let go = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.stop.load(Ordering::Relaxed) {
            drop(self.changed.wait_timeout(go, REPORT_INTERVAL));
        }
        !self.stop.load(Ordering::Relaxed)
    }

    fn set(&self, go: bool) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        *state |= go;
        if !go {
            self.stop.store(true, Ordering::Relaxed);
        }
        self.changed.notify_all();
    }
}

/// Writes a report for the demo to read.
pub(crate) fn report(report: &Report) {
    if let Ok(line) = serde_json::to_string(report) {
        // The demo may have ended; then the end of input stops this process.
        let _ = writeln!(crate::screen::stdout(), "{line}");
    }
}

/// Runs the parts of one process until the demo closes standard input.
pub(crate) fn run(spec: &str, parts: &[Part]) -> Outcome {
    let spec: Spec = serde_json::from_str(spec).or_input()?;
    let wishes = Arc::new(Wishes {
        stop: AtomicBool::new(false),
        state: Mutex::new(false),
        changed: Condvar::new(),
    });
    let listener = wishes.clone();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            listener.set(line == GO);
        }
        listener.set(false);
    });
    std::thread::scope(|scope| {
        let running: Vec<_> = (parts.iter())
            .map(|part| {
                let (spec, wishes) = (&spec, &wishes);
                scope.spawn(move || {
                    let outcome = run_part(*part, spec, wishes);
                    if let Err(failure) = &outcome {
                        let (message, bad_input) = (failure.to_string(), failure.is_bad_input());
                        report(&Report::Failed {
                            part: *part,
                            message,
                            bad_input,
                        });
                        wishes.set(false);
                    }
                    outcome
                })
            })
            .collect();
        running
            .into_iter()
            .try_for_each(|r| r.join().unwrap_or_else(|_| Err(Failure::job("a part panicked"))))
    })
}

fn run_part(part: Part, spec: &Spec, wishes: &Wishes) -> Outcome {
    match part {
        Part::Publisher => publisher::run(spec, &node(spec, "robot")?, wishes),
        Part::RobotLink => run_link(part, spec, "robot", wishes),
        Part::Radio => run_radio(spec, wishes),
        Part::BaseLink => run_link(part, spec, "base", wishes),
        Part::Subscriber => subscriber::run(spec, &node(spec, "base")?, wishes),
    }
}

fn node(spec: &Spec, host: &str) -> Result<Node, Failure> {
    Node::with_config(host, BusConfig::new(spec.work.join(host))).or_input()
}

fn run_link(part: Part, spec: &Spec, host: &str, wishes: &Wishes) -> Outcome {
    let config = link_config(spec, host);
    let bus = Bus::open(BusConfig::new(spec.work.join(host))).or_input()?;
    let daemon = Daemon::open(config, bus).or_job("starting the link")?;
    let handle = daemon.handle();
    std::thread::scope(|scope| {
        let radio = scope.spawn(move || daemon.run());
        let mut ready = false;
        loop {
            let go_on = wishes.pause() && !radio.is_finished();
            let status = handle.status();
            if !ready && !status.scheduling.is_empty() {
                report(&Report::Ready {
                    part,
                    scheduling: status.scheduling.clone(),
                });
                ready = true;
            }
            let sent = status.sent.iter().map(|t| (&t.stats.name, &t.stats.drops, None));
            let received = status
                .received
                .iter()
                .map(|t| (&t.stats.name, &t.stats.drops, Some(&t.bus_drops)));
            let mut topics = std::collections::BTreeMap::<String, stats::Drops>::new();
            for (name, drops, bus_drops) in sent.chain(received) {
                let all = topics.entry(name.clone()).or_default();
                all.merge(drops);
                bus_drops.into_iter().for_each(|d| all.merge(d));
            }
            report(&Report::Link {
                part,
                connected: status.ready(),
                topics,
            });
            if !go_on {
                break;
            }
        }
        handle.stop();
        radio
            .join()
            .unwrap_or_else(|_| panic!("the link's thread panicked"))
            .or_job("the link")
    })
}

fn link_config(spec: &Spec, host: &str) -> Config {
    let robot = host == "robot";
    let (own, air, peer) = if robot {
        (ROBOT, AIR_AT_ROBOT, "base")
    } else {
        (BASE, AIR_AT_BASE, "robot")
    };
    Config {
        host: host.into(),
        keys: None,
        radio: RadioConfig {
            hops: spec.hops,
            order: if spec.fifo { Order::Fifo } else { Order::Priority },
            ..RadioConfig::udp(spec.address(own), spec.rate)
        },
        relay: None,
        peers: vec![PeerConfig {
            name: peer.into(),
            address: Some(spec.address(air)),
            allow: None,
            namespace: None,
            relay: None,
            memory: None,
        }],
        topics: (spec.topics.iter())
            .map(|(name, plan)| TopicConfig {
                priority: plan.priority,
                depth: Some(plan.depth),
                deadline: plan.deadline.filter(|_| !spec.fifo),
                ..TopicConfig::new(name, if robot { Direction::Out } else { Direction::In })
            })
            .collect(),
        services: Vec::new(),
        ros2: link::config::Ros2::No,
    }
}

fn run_radio(spec: &Spec, wishes: &Wishes) -> Outcome {
    let hops = usize::from(spec.hops);
    let hosts: Vec<String> = (0..=hops).map(|n| format!("h{n}")).collect();
    let scenario = format!(
        "seed: {}\nhosts: [{}]\nmedia:\n  - {{name: wifi, wifi: {{rate: {}bit/s}}}}\n",
        spec.seed,
        hosts.join(", "),
        spec.rate
    );
    let scenario = Scenario::parse(&scenario, "the demo's radio").or_input()?;
    let taps = [
        Tap {
            bind: spec.address(AIR_AT_ROBOT),
            host: spec.address(ROBOT),
            from: 0,
            to: hops,
        },
        Tap {
            bind: spec.address(AIR_AT_BASE),
            host: spec.address(BASE),
            from: hops,
            to: 0,
        },
    ];
    let mut radio = LoopbackRadio::new(&scenario, &taps).or_input()?;
    let scheduling = clock::realtime_thread(30);
    report(&Report::Ready {
        part: Part::Radio,
        scheduling: scheduling.to_string(),
    });
    let start = clock::monotonic();
    let mut due = start;
    let outcome = radio.run(&wishes.stop, |radio| {
        let now = clock::monotonic();
        if now >= due {
            due = now + REPORT_INTERVAL;
            report(&Report::Radio(RadioState {
                delivered: radio.delivered,
                drops: radio.drops.clone(),
                air_percent: 100.0 * radio.busy.as_secs_f64() / now.since(start).as_secs_f64().max(1e-9),
                late_p99_us: radio.lateness.histogram().quantile(0.99) as f64 / 1e3,
                stalls: radio.lateness.stalls(),
                good: radio.lateness.good(),
            }));
        }
    });
    outcome.or_job("the radio")
}
