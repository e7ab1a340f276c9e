//! The points and searches of each experiment (the thesis' chapters 3 and 4).

use super::point::{IMAGE, Point, SCAN, TEXT};
use super::{Medium, Options, Topology};
use std::time::Duration;

/// Messages of the thesis' text, of its recorded scans and of its recorded images.
const TEXTS: u32 = 1000;
const SCANS: u32 = 1195;
const IMAGES: u32 = 1792;
/// Minimum and maximum number of messages of a sender: more do not improve the result and fill disks.
const LEAST: u32 = 10;
const MOST: u32 = 1_000_000;
/// A quick profile has no point with more messages per second, of all senders: the searches cover these.
const QUICK_LOAD: f64 = 10_000.0;

/// Bounds of a search, in Hz of each sender.
const LOWEST: f64 = 1.0;
const HIGHEST: f64 = 1_000_000.0;

/// Everything that is to be measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Plan {
    pub(super) points: Vec<Point>,
    pub(super) runs: Vec<u32>,
    pub(super) sweeps: Vec<Sweep>,
}

/// A search for the highest rate of a setting, for each of several numbers of nodes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sweep {
    /// The search begins at its rate.
    pub(super) base: Point,
    pub(super) nodes: Vec<u32>,
    /// Bounds of the search, in Hz.
    pub(super) within: [f64; 2],
    pub(super) lasts: Duration,
}

impl Sweep {
    /// Returns a probe at a rate.
    pub(super) fn probe(&self, nodes: u32, hz: f64) -> Point {
        let messages = (hz * self.lasts.as_secs_f64()).round() as u32;
        Point {
            nodes,
            // Equal rates have equal names.
            hz: (hz * 100.0).round() / 100.0,
            messages: messages.clamp(2 * LEAST, MOST),
            ..self.base.clone()
        }
    }
}

impl Plan {
    /// Returns whether it limits processors to a share.
    pub(super) fn has_shares(&self) -> bool {
        let sweeps = self.sweeps.iter().map(|s| &s.base);
        self.points.iter().chain(sweeps).any(|p| p.cpu_share < 1.0)
    }

    /// Removes points that need such shares.
    pub(super) fn without_shares(mut self) -> Plan {
        let kept: Vec<_> = self
            .points
            .into_iter()
            .zip(self.runs)
            .filter(|(p, _)| p.cpu_share >= 1.0)
            .collect();
        (self.points, self.runs) = kept.into_iter().unzip();
        self.sweeps.retain(|s| s.base.cpu_share >= 1.0);
        self
    }

    /// The same for machines that cables join.
    pub(super) fn wired(mut self) -> Plan {
        let bases = self.sweeps.iter_mut().map(|s| &mut s.base);
        for point in self.points.iter_mut().chain(bases) {
            if point.medium == Medium::Machines && point.hosts > 1 {
                point.medium = Medium::MachinesWired;
            }
        }
        self
    }
}

/// One experiment, before the user's selection.
struct Shape {
    payloads: Vec<(u64, Vec<f64>, u32)>,
    nodes: Vec<u32>,
    media: Vec<Medium>,
    hosts: Vec<u32>,
    cpu: Vec<u32>,
    warm: Vec<bool>,
    topology: Topology,
    /// Whether nodes are counted per host.
    each_host: bool,
    runs: u32,
    /// Numbers of nodes of the searches.
    knees: Vec<u32>,
    /// Maximum time for which a sender sends.
    quick: Duration,
}

/// Returns the plan for the options.
pub(super) fn plan(options: &Options) -> Plan {
    let mut plan = Plan::default();
    let mut experiments = options.experiment.clone();
    experiments.dedup();
    for experiment in experiments {
        add(experiment, options, &mut plan);
    }
    plan
}

fn add(experiment: u32, options: &Options, plan: &mut Plan) {
    let shape = shape(experiment, options.quick).wanted(options);
    let runs = options.runs.unwrap_or(if options.quick { 2 } else { shape.runs });
    for medium in &shape.media {
        for hosts in shape.hosts_on(*medium) {
            for (bytes, rates, messages) in &shape.payloads {
                for (cpu, warm) in shape
                    .cpu
                    .iter()
                    .flat_map(|c| shape.warm.iter().map(move |w| (*c, *w)))
                {
                    let base = Point {
                        experiment,
                        hosts,
                        nodes: 2,
                        hz: 1.0,
                        bytes: *bytes,
                        medium: *medium,
                        cpu_share: f64::from(cpu) / 100.0,
                        topology: shape.topology,
                        messages: *messages,
                        warm,
                    };
                    for nodes in shape
                        .nodes
                        .iter()
                        .map(|n| shape.on(*n, hosts))
                        .filter(|_| !options.knees_only)
                    {
                        for hz in rates {
                            let point = Point {
                                nodes,
                                hz: *hz,
                                ..base.clone()
                            };
                            if options.quick
                                && options.hz.is_empty()
                                && point.messages_per_s() > QUICK_LOAD.max(*hz)
                            {
                                continue;
                            }
                            let messages =
                                options
                                    .messages
                                    .unwrap_or(shape.messages(options.quick, *hz, *messages));
                            plan.points.push(Point { messages, ..point });
                            plan.runs.push(runs);
                        }
                    }
                    if !options.no_knees && !warm {
                        plan.sweeps.push(Sweep {
                            base: Point {
                                hz: start(*medium),
                                ..base
                            },
                            nodes: shape.knees.iter().map(|n| shape.on(*n, hosts)).collect(),
                            within: [
                                LOWEST,
                                options.hz.iter().copied().reduce(f64::max).unwrap_or(HIGHEST),
                            ],
                            lasts: Duration::from_secs(if options.quick { 2 } else { 5 }),
                        });
                    }
                }
            }
        }
    }
}

/// Returns where a search begins.
fn start(medium: Medium) -> f64 {
    match medium {
        Medium::Host => 1000.0,
        Medium::Veth | Medium::Mbit100 | Medium::Machines | Medium::MachinesWired => 200.0,
        Medium::Wifi6 | Medium::Wifi24 | Medium::Wifi54 => 20.0,
    }
}

fn steps(from: u32, to: u32, by: usize) -> Vec<f64> {
    (from..=to).step_by(by).map(f64::from).collect()
}

fn shape(experiment: u32, quick: bool) -> Shape {
    use Medium::{Host, Machines, Mbit100, Veth, Wifi6, Wifi24};
    let pick = |full: Vec<f64>, short: &[f64]| if quick { short.to_vec() } else { full };
    let text = |rates| vec![(TEXT, rates, TEXTS)];
    let clocked = || pick(steps(200, 2000, 200), &[200.0, 1000.0, 2000.0]);
    let images = |short: &[f64]| pick(steps(10, 60, 10), short);
    let cpu = || if quick { vec![100, 50] } else { vec![100, 75, 50] };
    let one = Shape {
        payloads: Vec::new(),
        nodes: vec![2],
        media: vec![Host],
        hosts: vec![2],
        cpu: vec![100],
        warm: vec![false],
        topology: Topology::Pairs,
        each_host: false,
        runs: 3,
        knees: vec![2],
        quick: Duration::from_secs(2),
    };
    match experiment {
        1 => Shape {
            payloads: text(pick(
                vec![3.0, 5.0, 10.0, 50.0, 100.0, 1e3, 1e4, 1e5, 1e6],
                &[10.0, 100.0, 1e3, 1e4, 1e5],
            )),
            runs: 1,
            ..one
        },
        2 => Shape {
            payloads: text(pick(vec![1e3, 4e3, 7e3, 1e4], &[1e3, 1e4])),
            warm: vec![false, true],
            runs: 5,
            ..one
        },
        3 => Shape {
            payloads: text(clocked()),
            cpu: cpu(),
            ..one
        },
        4 => Shape {
            payloads: text(clocked()),
            media: vec![Mbit100, Wifi24],
            ..one
        },
        5 => Shape {
            payloads: vec![(SCAN, clocked(), SCANS), (IMAGE, images(&[10.0, 60.0]), IMAGES)],
            cpu: cpu(),
            ..one
        },
        6 => {
            let mut all = steps(200, 2000, 200);
            all.extend(steps(100, 600, 50));
            all.sort_by(f64::total_cmp);
            all.dedup();
            let rates = pick(all, &[50.0, 200.0, 1000.0]);
            Shape {
                payloads: vec![(SCAN, rates, SCANS), (IMAGE, images(&[1.0, 10.0]), IMAGES)],
                media: vec![Wifi24, Wifi6],
                ..one
            }
        }
        7 | 8 => Shape {
            payloads: vec![(
                SCAN,
                pick(vec![1.0, 10.0, 20.0, 100.0, 200.0, 300.0], &[1.0, 100.0]),
                SCANS,
            )],
            nodes: if quick {
                vec![2, 16, 256]
            } else {
                (1..=8).map(|i| 1 << i).collect()
            },
            media: if experiment == 8 {
                vec![Machines]
            } else {
                vec![Host, Veth, Mbit100]
            },
            knees: if quick { vec![2, 8] } else { vec![2, 4, 8, 16, 32] },
            quick: Duration::from_secs(5),
            ..one
        },
        _ => Shape {
            payloads: vec![(
                SCAN,
                pick(vec![1.0, 10.0, 20.0, 50.0, 100.0], &[10.0, 50.0]),
                SCANS,
            )],
            each_host: true,
            nodes: if quick { vec![1, 2] } else { vec![1, 2, 4] },
            media: vec![Mbit100, Wifi24],
            hosts: if quick { vec![2, 4] } else { vec![2, 4, 6, 8] },
            topology: Topology::Full,
            knees: vec![1],
            ..one
        },
    }
}

impl Shape {
    /// Applies the user's selection.
    fn wanted(mut self, options: &Options) -> Shape {
        if !options.media.is_empty() {
            self.media.clone_from(&options.media);
        }
        if options.machines > 0 {
            if options.media.is_empty() {
                self.media = vec![Medium::Machines];
            }
            self.hosts.retain(|n| self.each_host && *n <= options.machines);
            if self.hosts.is_empty() {
                self.hosts.push(options.machines);
            }
        }
        if !options.hosts.is_empty() {
            self.hosts.clone_from(&options.hosts);
        }
        if !options.nodes.is_empty() {
            self.nodes.clone_from(&options.nodes);
            self.knees.clone_from(&options.nodes);
        }
        if !options.cpu.is_empty() {
            self.cpu.clone_from(&options.cpu);
        }
        if let Some(topology) = options.topology {
            self.topology = topology;
        }
        if !options.bytes.is_empty() {
            let rates = self.payloads.first().map(|p| p.1.clone()).unwrap_or_default();
            let like = |bytes: &u64| {
                let known = self.payloads.iter().find(|p| p.0 == *bytes);
                known.cloned().unwrap_or((*bytes, rates.clone(), SCANS))
            };
            self.payloads = options.bytes.iter().map(like).collect();
        }
        if !options.hz.is_empty() {
            self.payloads.iter_mut().for_each(|p| p.1.clone_from(&options.hz));
        }
        self
    }

    fn hosts_on(&self, medium: Medium) -> Vec<u32> {
        if medium == Medium::Host {
            vec![1]
        } else {
            self.hosts.clone()
        }
    }

    /// Returns the number of nodes of all hosts.
    fn on(&self, nodes: u32, hosts: u32) -> u32 {
        if self.each_host {
            (nodes * hosts).max(2)
        } else {
            nodes.max(hosts)
        }
    }

    fn messages(&self, quick: bool, hz: f64, messages: u32) -> u32 {
        if !quick {
            return messages;
        }
        ((hz * self.quick.as_secs_f64()) as u32).clamp(LEAST, messages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(experiment: u32, change: impl FnOnce(&mut Options)) -> Plan {
        let mut options = Options::new(experiment);
        change(&mut options);
        plan(&options)
    }

    #[test]
    fn full_profiles_are_the_thesis() {
        let one = of(1, |_| {});
        let rates: Vec<f64> = one.points.iter().map(|p| p.hz).collect();
        assert_eq!(rates, [3.0, 5.0, 10.0, 50.0, 100.0, 1e3, 1e4, 1e5, 1e6]);
        assert!(
            one.points
                .iter()
                .all(|p| (p.bytes, p.messages, p.nodes) == (11, 1000, 2))
        );
        assert_eq!(
            (one.runs[0], of(2, |_| {}).runs[0], of(3, |_| {}).points.len()),
            (1, 5, 30)
        );
        let five = of(5, |_| {});
        assert_eq!(five.points.len(), 3 * (10 + 6));
        let seven = of(7, |o| o.media = vec![Medium::Veth]);
        assert_eq!(seven.points.len(), 8 * 6);
        assert!(
            seven
                .points
                .iter()
                .all(|p| (p.hosts, p.messages, p.bytes) == (2, 1195, 4250))
        );
        let nine = of(9, |o| o.media = vec![Medium::Wifi24]);
        assert!(nine.points.iter().all(|p| p.topology == Topology::Full));
        let most = nine.points.iter().map(|p| (p.hosts, p.nodes)).max();
        assert_eq!((nine.points.len(), most), (4 * 3 * 5, Some((8, 32))));
    }

    #[test]
    fn every_experiment_has_a_short_profile_with_searches() {
        for experiment in 1..=9 {
            let (full, quick) = (of(experiment, |_| {}), of(experiment, |o| o.quick = true));
            assert!(
                !quick.points.is_empty() && !quick.sweeps.is_empty(),
                "{experiment}"
            );
            let lasts = |p: &Plan| p.points.iter().map(|p| p.lasts().as_secs_f64()).sum::<f64>();
            assert!(lasts(&quick) < lasts(&full).max(60.0), "{experiment}");
            assert_eq!(quick.points.len(), quick.runs.len());
        }
        let seven = of(7, |o| o.quick = true);
        assert!(seven.points.iter().any(|p| (p.nodes, p.hz) == (256, 1.0)));
    }

    #[test]
    fn shares_of_processors_can_be_left_out() {
        let five = of(5, |_| {});
        let (points, runs) = (five.points.len(), five.runs.len());
        assert!(five.has_shares() && points == runs);
        let rest = five.without_shares();
        assert!(
            !rest.has_shares() && rest.points.len() == points / 3 && rest.runs.len() == rest.points.len()
        );
        assert_eq!(rest.sweeps.len(), 2);
    }

    #[test]
    fn any_experiment_takes_place_on_the_machines_that_are_there() {
        for (experiment, machines, hosts) in [(1, 2, 2), (7, 1, 1), (8, 4, 4), (9, 6, 6)] {
            let plan = of(experiment, |o| o.machines = machines);
            let all = plan.points.iter().chain(plan.sweeps.iter().map(|s| &s.base));
            assert!(
                all.clone()
                    .all(|p| p.medium == Medium::Machines && p.check().is_ok()),
                "{experiment}"
            );
            assert_eq!(all.map(|p| p.hosts).max(), Some(hosts), "{experiment}");
            let wired = plan.wired();
            let mut all = wired.points.iter().chain(wired.sweeps.iter().map(|s| &s.base));
            assert!(
                all.all(|p| (p.medium == Medium::MachinesWired) == (hosts > 1)),
                "{experiment}"
            );
        }
        let nine = of(9, |o| {
            (o.machines, o.hosts, o.media) = (6, vec![2], vec![Medium::MachinesWired]);
        });
        let wired = |p: &Point| (p.hosts, p.medium) == (2, Medium::MachinesWired);
        assert!(nine.points.iter().all(wired));
    }

    #[test]
    fn wishes_replace_the_experiments_points() {
        let plan = of(7, |o| {
            o.media = vec![Medium::Host];
            o.nodes = vec![4];
            o.hz = vec![20.0, 40.0];
            o.bytes = vec![1000];
            o.messages = Some(30);
            o.runs = Some(4);
            o.no_knees = true;
        });
        assert_eq!(
            (plan.points.len(), plan.sweeps.len(), &plan.runs[..]),
            (2, 0, &[4, 4][..])
        );
        let point = &plan.points[1];
        assert_eq!(
            (point.nodes, point.hz, point.bytes, point.messages),
            (4, 40.0, 1000, 30)
        );
        let only = of(7, |o| o.knees_only = true);
        assert!(only.points.is_empty() && !only.sweeps.is_empty());
        assert_eq!(only.sweeps[0].within, [1.0, HIGHEST]);
        let probe = only.sweeps[0].probe(8, 1234.567);
        assert_eq!((probe.nodes, probe.hz, probe.messages), (8, 1234.57, 6173));
    }
}
