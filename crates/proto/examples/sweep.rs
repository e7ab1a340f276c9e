//! Measures in virtual time what each constant of the policy does: every scenario is run with the constant at other
//! values and compared, seed by seed, with the chosen one.
//!
//! ```text
//! cargo run --release -p ropewalk-proto --features sweep --example sweep -- [--seeds N] [--factors 0.5,2]
//!     [--scenario TEXT]... [NAME[=FACTOR]...]
//! ```
//!
//! `--scenario` selects those whose names contain the text, or one of several. With `--figures` it prints the scenarios' figures with the
//! chosen values, and sweeps nothing. With `--write FILE` it writes the figures of every seed; with `--against FILE` it
//! compares this build's with those of the build that wrote them.
//!
//! A line is one figure that a value changes by more than 1 % and by more than four standard errors. A constant without
//! such a line could as well have the other values, as far as these scenarios can tell; a constant marked `unused` left
//! every figure of the first seeds as it was to the last digit.
#![allow(dead_code, unused_imports, reason = "the scenarios of the tests")]

#[path = "../tests/radios/common/mod.rs"]
mod common;
#[path = "../tests/radios/lateness.rs"]
mod lateness;
#[path = "../tests/radios/recording.rs"]
mod recording;
#[path = "../tests/radios/sharing.rs"]
mod sharing;

use common::mesh::Mesh;
use common::team::Team;
use common::{Setup, World, beside_images, fixed, ms, pound, topic};
use lateness::late;
use medium::{Delay, Loss, MediumConfig, Path};
use proto::{AirtimeModel, Reliability, Tuning};
use recording::recording;
use sharing::{CLOCKS, RUN, end, robots, three_equals, twists, two_robots, wifi};
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

fn rated(bits: u64) -> Setup {
    Setup::rated_cable(
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

/// A joystick against video that fills the air in the other direction.
fn joystick(seed: u64, auto: bool, (mbit_s, period, bytes): (u64, Duration, u32)) -> Figures {
    let medium = MediumConfig {
        rate_bits: mbit_s * 1_000_000,
        ..wifi(seed)
    };
    let mut t = Team::new(2, medium, &[(0, 1)], &CLOCKS, |c| c.auto_rate = auto);
    let strays = Duration::from_micros(300);
    t.stream((0, 1), topic("/joy", 120, 2), 64, period, strays, RUN);
    let video = topic("/video", 10, 2);
    t.stream((1, 0), video, bytes, ms(100), Duration::ZERO, RUN);
    t.run_until(end());
    of_team(&t, &["joystick", "video"])
}

/// A laser beside images while something about the medium changes.
fn changing(setup: Setup, image_period: u64, change: &[fn(&mut World)]) -> Figures {
    let mut w = setup.build();
    let run = ms(6_000) * change.len() as u32;
    w.source(0, topic("/laser", 100, 5), ms(20), run, fixed(50, 950));
    let image = topic("/image", 10, 2);
    w.source(0, image, ms(image_period), run, fixed(50, 63_950));
    for change in change {
        change(&mut w);
        w.run(ms(6_000));
    }
    w.run(ms(3_000));
    figures(&[("laser", w.metrics(0)), ("image", w.metrics(1))])
}

fn rate<const MBIT_S: u64>(w: &mut World) {
    w.medium
        .set_rate(w.now, Some(MBIT_S * 1_000_000))
        .expect("a rate");
}

fn delay<const MS: u64>(w: &mut World) {
    w.medium.set_path(w.now, Path::delay(ms(MS))).expect("a path");
}

/// Three hops over relays of Ropewalk.
fn relays(seed: u64) -> Figures {
    let mut m = Mesh::new(4, &[(0, 1), (1, 2), (2, 3)], &[1, 2], &[3], seed);
    m.source(0, &[3], topic("/laser", 100, 5), ms(20), RUN, 1_000);
    m.source(0, &[3], topic("/image", 10, 2), ms(500), RUN, 64_000);
    m.run(RUN + ms(3_000));
    let of = |source: usize| {
        let source = &m.sources[source];
        m.nodes[3].sink.flows[&source.key].metrics(source.offered, &stats::Drops::default())
    };
    figures(&[("laser", of(0)), ("image", of(1))])
}

fn quick_cable() -> Setup {
    let near = Path::delay(Delay::Fixed(Duration::from_micros(100)));
    Setup {
        auto: false,
        airtime: Some(AirtimeModel::bytes(100_000_000, 66)),
        ..Setup::cable(100_000_000, near)
    }
}

/// A joystick of 100 Hz beside images, in the same direction.
fn over_hops(setup: Setup, image_period: u64) -> Figures {
    let w = beside_images(setup, topic("/joy", 100, 5), (10, 14, 50), image_period, 12);
    figures(&[("joystick", w.metrics(0)), ("image", w.metrics(1))])
}

/// Mbit/s, the period of the joystick, and the bytes of an image of the video.
const AT_6: (u64, Duration, u32) = (6, ms(10), 64_000);
const AT_54: (u64, Duration, u32) = (54, ms(3), 400_000);

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
    ("cable", |seed| of_pound(rated(20_000_000).seed(seed), 30)),
    ("cable, auto", |seed| {
        of_pound(auto(rated(20_000_000).seed(seed)), 30)
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
            ..rated(1_000_000_000)
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
    ("joystick", |seed| joystick(seed, false, AT_6)),
    ("joystick, auto", |seed| joystick(seed, true, AT_6)),
    ("joystick at 54 Mbit/s", |seed| joystick(seed, false, AT_54)),
    ("robots", |seed| {
        let names = [
            "joystick 1",
            "joystick 2",
            "laser 1",
            "laser 2",
            "laser 3",
            "image",
        ];
        of_team(&robots(seed, ms(1)), &names)
    }),
    ("relays", relays),
    ("recording", |seed| {
        let w = recording(Setup::hops(1).seed(seed));
        figures(&[
            ("scan", w.metrics(0)),
            ("tf", w.metrics(1)),
            ("camera", w.metrics(2)),
        ])
    }),
    ("late processors", |seed| {
        of_pound(late(Setup::hops(1)).seed(seed), 150)
    }),
    ("late processors, 2 hops, auto", |seed| {
        of_pound(auto(late(Setup::hops(2))).seed(seed), 300)
    }),
    ("late processors, cable of 100 Mbit/s", |seed| {
        of_pound(late(quick_cable()).seed(seed), 7)
    }),
    ("6, 2, 1, 6 Mbit/s, auto", |seed| {
        let setup = auto(Setup::hops(1).seed(seed));
        changing(setup, 150, &[rate::<6>, rate::<2>, rate::<1>, rate::<6>])
    }),
    ("6, 1, 1, 6 Mbit/s, 6 set", |seed| {
        let setup = Setup::hops(1).seed(seed);
        changing(setup, 150, &[rate::<6>, rate::<1>, rate::<1>, rate::<6>])
    }),
    ("far, then farther", |seed| {
        let setup = Setup::path(ms(20), Loss::NONE).seed(seed);
        let steps: [fn(&mut World); 5] = [delay::<20>, delay::<80>, delay::<80>, delay::<80>, delay::<20>];
        changing(setup, 30, &steps)
    }),
    ("twists", |seed| {
        of_team(
            &twists(seed, Reliability::Reliable, |_| ()),
            &["twist", "answer", "file", "ask"],
        )
    }),
];

/// The figures of every scenario and seed.
fn measure(scenarios: &[Scenario], seeds: u64) -> Vec<Vec<Figures>> {
    let of_all = |(_, run): &Scenario| (1..=seeds).map(run).collect();
    scenarios.iter().map(of_all).collect()
}

/// The same with other values. Where the first seeds show no difference, the others are not run.
fn measure_against(scenarios: &[Scenario], chosen: &[Vec<Figures>]) -> Vec<Vec<Figures>> {
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
    let runs = scenarios.iter().map(|(_, run)| run);
    runs.zip(chosen).map(of_scenario).collect()
}

/// One figure of one seed a line: scenario, seed, figure, value.
fn as_table(scenarios: &[Scenario], chosen: &[Vec<Figures>]) -> String {
    let mut table = String::new();
    for ((name, _), seeds) in scenarios.iter().zip(chosen) {
        for (seed, figures) in seeds.iter().enumerate() {
            for (figure, value) in figures {
                table += &format!("{name}\t{seed}\t{figure}\t{value}\n");
            }
        }
    }
    table
}

/// The figures of a table for these scenarios and seeds; empty where it has none.
fn from_table(table: &str, scenarios: &[Scenario], seeds: u64) -> Vec<Vec<Figures>> {
    let of_seed = |name: &str, seed: u64| -> Figures {
        let start = format!("{name}\t{seed}\t");
        let lines = table.lines().filter_map(|line| line.strip_prefix(&start));
        let figures = lines.filter_map(|line| line.split_once('\t'));
        figures
            .filter_map(|(figure, value)| Some((figure.to_owned(), value.parse().ok()?)))
            .collect()
    };
    let of_all = |(name, _): &Scenario| (0..seeds).map(|seed| of_seed(name, seed)).collect();
    scenarios.iter().map(of_all).collect()
}

fn print_figures(scenarios: &[Scenario], chosen: &[Vec<Figures>]) {
    for ((name, _), seeds) in scenarios.iter().zip(chosen) {
        println!("{name}");
        for (i, (figure, _)) in seeds[0].iter().enumerate() {
            let mean = seeds.iter().map(|f| f[i].1).sum::<f64>() / seeds.len() as f64;
            println!("    {figure} {mean:.2}");
        }
    }
}

/// What a value changes.
fn compare(scenarios: &[Scenario], with: &[Vec<Figures>], chosen: &[Vec<Figures>]) -> Vec<String> {
    let mut lines = Vec::new();
    for ((name, _), (with, chosen)) in scenarios.iter().zip(with.iter().zip(chosen)) {
        if chosen.iter().any(Vec::is_empty) {
            lines.push(format!("{name}: not in the table"));
            continue;
        }
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
    /// Constants, with a factor of their own.
    values: Vec<(String, Option<f64>)>,
    scenarios: Vec<Scenario>,
    figures: bool,
    write: Option<String>,
    against: Option<String>,
}

fn factor(text: &str) -> Result<f64, String> {
    text.parse().map_err(|e| format!("{text}: {e}"))
}

fn options() -> Result<Options, String> {
    let mut options = Options {
        seeds: 32,
        factors: vec![0.25, 4.0],
        values: Vec::new(),
        scenarios: SCENARIOS.to_vec(),
        figures: false,
        write: None,
        against: None,
    };
    let (mut arguments, mut texts) = (std::env::args().skip(1), Vec::<String>::new());
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        match argument.as_str() {
            "--seeds" => options.seeds = value()?.parse().map_err(|e| format!("--seeds: {e}"))?,
            "--factors" => options.factors = value()?.split(',').map(factor).collect::<Result<_, _>>()?,
            "--scenario" => texts.push(value()?),
            "--figures" => options.figures = true,
            "--write" => options.write = Some(value()?),
            "--against" => options.against = Some(value()?),
            argument => {
                let (name, by) = match argument.split_once('=') {
                    Some((name, by)) => (name, Some(factor(by)?)),
                    None => (argument, None),
                };
                if !Tuning::NAMES.contains(&name) {
                    return Err(format!(
                        "no constant {name}: there are {}",
                        Tuning::NAMES.join(", ")
                    ));
                }
                options.values.push((name.to_owned(), by));
            }
        }
    }
    let selected = |name: &str| texts.is_empty() || texts.iter().any(|text| name.contains(text));
    options.scenarios.retain(|(name, _)| selected(name));
    if options.seeds < 2 {
        return Err("--seeds must be 2 or more, for a standard error".into());
    }
    if options.values.is_empty() {
        options.values = Tuning::NAMES
            .iter()
            .map(|name| ((*name).to_owned(), None))
            .collect();
    }
    Ok(options)
}

/// Prints or writes what the options ask for besides a sweep; returns false if they ask for the sweep.
fn without_sweep(options: &Options, chosen: &[Vec<Figures>]) -> std::io::Result<bool> {
    let scenarios = &options.scenarios;
    if options.figures {
        print_figures(scenarios, chosen);
    }
    if let Some(file) = &options.write {
        std::fs::write(file, as_table(scenarios, chosen))?;
    }
    if let Some(file) = &options.against {
        let before = from_table(&std::fs::read_to_string(file)?, scenarios, options.seeds);
        match chosen == before {
            true => println!("the same"),
            false => compare(scenarios, chosen, &before)
                .iter()
                .for_each(|line| println!("{line}")),
        }
    }
    Ok(options.figures || options.write.is_some() || options.against.is_some())
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(error) => {
            eprintln!("sweep: {error}");
            return ExitCode::FAILURE;
        }
    };
    let chosen = measure(&options.scenarios, options.seeds);
    match without_sweep(&options, &chosen) {
        Ok(false) => sweep(&options, &chosen),
        Ok(true) => (),
        Err(error) => {
            eprintln!("sweep: {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn sweep(options: &Options, chosen: &[Vec<Figures>]) {
    let factors = |by: Option<f64>| by.map_or(options.factors.clone(), |by| vec![by]);
    let work: Vec<(&str, f64)> = options
        .values
        .iter()
        .flat_map(|(name, by)| factors(*by).into_iter().map(move |by| (name.as_str(), by)))
        .collect();
    let scenarios = &options.scenarios;
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
                    let lines = match std::panic::catch_unwind(|| measure_against(scenarios, chosen)) {
                        Err(_) => vec!["a check of the scenarios failed".to_owned()],
                        Ok(with) if with == chosen => vec!["unused".to_owned()],
                        Ok(with) => compare(scenarios, &with, chosen),
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
}
