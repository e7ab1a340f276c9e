//! Measures in virtual time what each constant of the policy does: every scenario is run with the constant at other
//! values and compared, seed by seed, with the chosen one.
//!
//! ```text
//! cargo run --release -p ropewalk-proto --features sweep --example sweep -- [--seeds N] [--factors 0.5,2] [NAME...]
//! ```
//!
//! With `--figures` it prints the scenarios' figures with the chosen values, and sweeps nothing.
//!
//! A line is one figure that a value changes by more than 1 % and by more than four standard errors. A constant without
//! such a line could as well have the other values, as far as these scenarios can tell; a constant marked `unused` left
//! every figure of the first seeds as it was to the last digit.
#![allow(dead_code, unused_imports, reason = "the scenarios of the tests")]

#[path = "../tests/radios/common/mod.rs"]
mod common;
#[path = "../tests/radios/sharing.rs"]
mod sharing;

use common::team::Team;
use common::{Setup, beside_images, ms, pound, topic};
use medium::{Delay, Loss};
use proto::{Reliability, Tuning};
use sharing::{CLOCKS, RUN, end, three_equals, twists, two_robots, wifi};
use stats::FlowMetrics;
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Least change that a line reports, and least ratio to its standard error.
const LEAST_CHANGE: f64 = 0.01;
const LEAST_RATIO: f64 = 4.0;

/// Seeds that show whether a value makes any difference.
const FIRST: usize = 2;

type Figures = Vec<(String, f64)>;
type Scenario = (&'static str, fn(u64) -> Figures);

fn figures(flows: &[(&str, FlowMetrics)]) -> Figures {
    let mut all = Vec::new();
    for (name, m) in flows {
        all.push((format!("{name} mean delay"), m.delay_ms.mean));
        all.push((format!("{name} p99 delay"), m.delay_ms.p99));
        all.push((format!("{name} losses + 1"), 1.0 + (m.sent - m.received) as f64));
        all.push((format!("{name} Mbit/s"), m.mbit_s));
    }
    all
}

fn of_pound(setup: Setup, period: u64) -> Figures {
    let w = pound(setup, period, 12);
    figures(&[("laser", w.metrics(0)), ("image", w.metrics(1))])
}

fn auto(setup: Setup) -> Setup {
    Setup { auto: true, ..setup }
}

fn wire(bits: u64) -> Setup {
    Setup::wire(
        bits,
        Delay::Uniform {
            min: ms(1),
            max: ms(3),
        },
    )
}

fn of_team(t: &Team, names: &[&str]) -> Figures {
    let flows: Vec<_> = names
        .iter()
        .enumerate()
        .map(|(i, name)| (*name, t.metrics(i)))
        .collect();
    figures(&flows)
}

fn equals(seed: u64, auto: bool) -> Figures {
    let names = ["laser 1", "bulk 1", "laser 2", "bulk 2", "laser 3", "bulk 3"];
    of_team(&three_equals(seed, auto), &names)
}

/// A joystick against video in the other direction.
fn joystick(seed: u64, auto: bool) -> Figures {
    let mut t = Team::new(2, wifi(seed), &[(0, 1)], &CLOCKS, |c| c.auto_rate = auto);
    t.stream(
        (0, 1),
        topic("/joy", 120, 2),
        64,
        ms(10),
        Duration::from_micros(300),
        RUN,
    );
    t.stream(
        (1, 0),
        topic("/video", 10, 2),
        64_000,
        ms(100),
        Duration::ZERO,
        RUN,
    );
    t.run_until(end());
    of_team(&t, &["joystick", "video"])
}

/// A joystick of 100 Hz beside images, in the same direction.
fn over_hops(setup: Setup, image_period: u64) -> Figures {
    let w = beside_images(setup, topic("/joy", 100, 5), (10, 14, 50), image_period, 12);
    figures(&[("joystick", w.metrics(0)), ("image", w.metrics(1))])
}

const SCENARIOS: &[Scenario] = &[
    ("1 hop", |seed| of_pound(Setup::hops(1).seed(seed), 150)),
    ("2 hops", |seed| of_pound(Setup::hops(2).seed(seed), 300)),
    ("3 hops", |seed| of_pound(Setup::hops(3).seed(seed), 450)),
    ("2 hops, joystick", |seed| {
        over_hops(Setup::hops(2).seed(seed), 500)
    }),
    ("3 hops, joystick", |seed| {
        over_hops(Setup::hops(3).seed(seed), 1_000)
    }),
    ("1 hop, auto", |seed| {
        of_pound(auto(Setup::hops(1).seed(seed)), 150)
    }),
    ("2 hops, auto", |seed| {
        of_pound(auto(Setup::hops(2).seed(seed)), 300)
    }),
    ("1 hop, frames lost", |seed| {
        of_pound(Setup::hops(1).seed(seed).loss(Loss::Uniform(0.1), 50), 150)
    }),
    ("1 hop, auto, frames lost", |seed| {
        of_pound(auto(Setup::hops(1).seed(seed).loss(Loss::Uniform(0.1), 50)), 150)
    }),
    ("far, packets lost", |seed| {
        of_pound(Setup::path(ms(30), Loss::Uniform(0.05)).seed(seed), 30)
    }),
    ("cable", |seed| of_pound(wire(20_000_000).seed(seed), 30)),
    ("cable, auto", |seed| {
        of_pound(auto(wire(20_000_000).seed(seed)), 30)
    }),
    ("3 hops, auto", |seed| {
        of_pound(auto(Setup::hops(3).seed(seed)), 450)
    }),
    ("cable of 20 Mbit/s, auto", |seed| {
        let path = medium::Path::delay(Delay::Fixed(ms(1)));
        of_pound(Setup::cable(20_000_000, path).seed(seed), 60)
    }),
    ("cable of 100 Mbit/s, auto", |seed| {
        let path = medium::Path::delay(Delay::Fixed(Duration::from_micros(100)));
        of_pound(Setup::cable(100_000_000, path).seed(seed), 10)
    }),
    ("far cable, jitter, auto", |seed| {
        let path = medium::Path::delay(Delay::Uniform {
            min: ms(20),
            max: ms(30),
        });
        of_pound(Setup::cable(20_000_000, path).seed(seed), 80)
    }),
    ("far slow cable, auto", |seed| {
        let path = medium::Path::delay(Delay::Fixed(ms(50)));
        of_pound(Setup::cable(4_000_000, path).seed(seed), 300)
    }),
    ("cable without a rate", |seed| {
        let setup = Setup {
            unrated: 16,
            ..wire(1_000_000_000)
        };
        of_pound(setup.seed(seed), 30)
    }),
    ("second robot", |seed| {
        of_team(&two_robots(seed, true, true, |_| ()), &["laser", "image", "bulk"])
    }),
    ("second robot, auto", |seed| {
        of_team(
            &two_robots(seed, true, true, |c| c.auto_rate = true),
            &["laser", "image", "bulk"],
        )
    }),
    ("equals", |seed| equals(seed, false)),
    ("equals, auto", |seed| equals(seed, true)),
    ("joystick", |seed| joystick(seed, false)),
    ("joystick, auto", |seed| joystick(seed, true)),
    ("twists", |seed| {
        of_team(
            &twists(seed, Reliability::Reliable, |_| ()),
            &["twist", "answer", "file", "ask"],
        )
    }),
];

/// The figures of every scenario and seed.
fn measure(seeds: u64) -> Vec<Vec<Figures>> {
    SCENARIOS
        .iter()
        .map(|(_, run)| (1..=seeds).map(run).collect())
        .collect()
}

/// The same with other values. Where the first seeds show no difference, the others are not run.
fn measure_against(chosen: &[Vec<Figures>]) -> Vec<Vec<Figures>> {
    let of_scenario = |(run, chosen): (&fn(u64) -> Figures, &Vec<Figures>)| {
        let run = |seed: usize| run(seed as u64 + 1);
        let mut with: Vec<Figures> = (0..FIRST.min(chosen.len())).map(run).collect();
        match chosen.starts_with(&with) {
            true => chosen.clone(),
            false => {
                with.extend((with.len()..chosen.len()).map(run));
                with
            }
        }
    };
    let runs = SCENARIOS.iter().map(|(_, run)| run);
    runs.zip(chosen).map(of_scenario).collect()
}

fn print_figures(chosen: &[Vec<Figures>]) {
    for ((name, _), seeds) in SCENARIOS.iter().zip(chosen) {
        println!("{name}");
        for (i, (figure, _)) in seeds[0].iter().enumerate() {
            let mean = seeds.iter().map(|f| f[i].1).sum::<f64>() / seeds.len() as f64;
            println!("    {figure} {mean:.2}");
        }
    }
}

/// What a value changes.
fn compare(with: &[Vec<Figures>], chosen: &[Vec<Figures>]) -> Vec<String> {
    let mut lines = Vec::new();
    for ((name, _), (with, chosen)) in SCENARIOS.iter().zip(with.iter().zip(chosen)) {
        for (i, (figure, _)) in chosen[0].iter().enumerate() {
            let changes: Vec<f64> = with
                .iter()
                .zip(chosen)
                .map(|(w, c)| (w[i].1.max(1e-9) / c[i].1.max(1e-9)).ln())
                .collect();
            let n = changes.len() as f64;
            let mean = changes.iter().sum::<f64>() / n;
            let error = (changes.iter().map(|c| (c - mean).powi(2)).sum::<f64>() / (n - 1.0) / n).sqrt();
            if mean.abs() > LEAST_CHANGE && mean.abs() > LEAST_RATIO * error {
                let before = chosen.iter().map(|c| c[i].1).sum::<f64>() / n;
                lines.push(format!(
                    "{name}: {figure} {:+.1} % (± {:.1}) of {before:.2}",
                    100.0 * mean.exp_m1(),
                    100.0 * error
                ));
            }
        }
    }
    lines
}

struct Options {
    seeds: u64,
    factors: Vec<f64>,
    names: Vec<String>,
    figures: bool,
}

fn options() -> Result<Options, String> {
    let mut options = Options {
        seeds: 32,
        factors: vec![0.25, 4.0],
        names: Vec::new(),
        figures: false,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        match argument.as_str() {
            "--seeds" => options.seeds = value()?.parse().map_err(|e| format!("--seeds: {e}"))?,
            "--factors" => {
                let factors = value()?;
                let parsed: Result<_, _> = factors.split(',').map(str::parse).collect();
                options.factors = parsed.map_err(|e| format!("--factors: {e}"))?;
            }
            "--figures" => options.figures = true,
            name if Tuning::NAMES.contains(&name) => options.names.push(name.to_owned()),
            name => {
                return Err(format!(
                    "no constant {name}: there are {}",
                    Tuning::NAMES.join(", ")
                ));
            }
        }
    }
    if options.seeds < 2 {
        return Err("--seeds must be 2 or more, for a standard error".into());
    }
    if options.names.is_empty() {
        options.names = Tuning::NAMES.iter().map(|name| (*name).to_owned()).collect();
    }
    Ok(options)
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(error) => {
            eprintln!("sweep: {error}");
            return ExitCode::FAILURE;
        }
    };
    let chosen = measure(options.seeds);
    if options.figures {
        print_figures(&chosen);
        return ExitCode::SUCCESS;
    }
    let work: Vec<(&str, f64)> = options
        .names
        .iter()
        .flat_map(|name| options.factors.iter().map(move |factor| (name.as_str(), *factor)))
        .collect();
    // One line of output for each value, in order, as soon as those before it are done.
    let (next, done) = (
        AtomicUsize::new(0),
        Mutex::new((0, BTreeMap::<usize, String>::new())),
    );
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    let Some((name, factor)) = work.get(i) else { return };
                    let Some((tuning, value)) = Tuning::CHOSEN.varied(name, *factor) else {
                        return;
                    };
                    // Radios of a thread keep a reference. A few hundred bytes for each value.
                    Box::leak(Box::new(tuning)).apply();
                    let lines = match std::panic::catch_unwind(|| measure_against(&chosen)) {
                        Err(_) => vec!["a check of the scenarios failed".to_owned()],
                        Ok(with) if with == chosen => vec!["unused".to_owned()],
                        Ok(with) => compare(&with, &chosen),
                    };
                    let mut text = format!("{name} = {value}\n");
                    lines.iter().for_each(|line| text += &format!("    {line}\n"));
                    let mut done = done.lock().expect("no panic");
                    let (at, waiting) = &mut *done;
                    waiting.insert(i, text);
                    while let Some(text) = waiting.remove(at) {
                        print!("{text}");
                        *at += 1;
                    }
                }
            });
        }
    });
    ExitCode::SUCCESS
}
