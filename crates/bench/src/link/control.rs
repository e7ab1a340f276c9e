//! Pound's section VI-G: a control loop over the radio, together with a flow of large messages.

use super::case::leg;
use super::network::{Network, Setting, Topic};
use super::part::plant::{PERIOD, simulate};
use super::tools::{Means, Tools};
use super::zenoh::Protocol;
use super::{Experiment, Options, Row, System, systems};
use crate::flows::Sent;
use crate::flows::play::{Extra, Leg, Part, Played, flow_arguments, play_with};
use crate::kit::cell::{Params, Target, Timing, Values};
use crate::kit::error::RunError;
use crate::kit::roscpp::{Source, Transport};
use crate::kit::site::Site;
use serde_json::json;
use std::process::Command;
use std::time::Duration;

const SECONDS: u64 = 4;
/// The circuit's host, which also sends the large messages, and the controller's host.
const PLANT: &str = "robot";
const CONTROLLER: &str = "base";
const PERIOD_MS: u64 = 200;

/// Priorities of the loop's topics and of the images.
const LOOP: u8 = 110;
const IMAGE: u8 = 10;
const SAMPLE: &str = "/y";
const DRIVE: &str = "/u";

/// Returns a row for each system: circuit and controller are processes of that system.
pub(super) fn rows(options: &Options) -> Vec<Row> {
    let topics: Vec<Topic> = [(LOOP, 2), (LOOP, 2), (IMAGE, 2)]
        .map(|(priority, depth)| Topic {
            priority,
            depth,
            more: "",
        })
        .into();
    let of_system = |system: System| -> Vec<Means> {
        match (system.transport(), system.protocol()) {
            (Some(transport), _) => vec![Means::Ros(transport, Source::Periodic)],
            (_, Some(protocol)) => vec![Means::Zenoh(protocol, topics[2..].to_vec())],
            (None, None) if system != System::Ropewalk => Vec::new(),
            (None, None) => {
                let carriers = options.carriers_of(Experiment::Control);
                let setting = |carrier| Setting {
                    carrier,
                    rate: "6Mbit/s",
                    hops: 1,
                    neighbours: &[],
                    yields: true,
                    topics: topics.clone(),
                    called: &[],
                };
                let each = carriers.into_iter();
                each.map(|c| Means::links(setting(c))).collect()
            }
        }
    };
    let wanted = systems().filter(|s| options.wants(*s));
    let all = wanted.flat_map(|s| of_system(s).into_iter().map(move |m| (s, m)));
    all.map(|(system, means)| row(system, means)).collect()
}

fn row(system: System, means: Means) -> Row {
    let mut params = Params::from([
        ("period_ms".into(), json!(PERIOD.as_millis() as u64)),
        ("seconds".into(), json!(SECONDS)),
    ]);
    means.describe(&mut params);
    Row {
        beside: Vec::new(),
        experiment: Experiment::Control,
        system,
        scenario: "wifi-1hop",
        hops: 1,
        setting: means.shown(),
        params,
        run: Box::new(move |tools, run| measure(tools, &means, run)),
    }
}

/// Measures the loop without the flow, then with it, in one lab.
fn measure(tools: &Tools<'_>, means: &Means, run: u32) -> Result<(Vec<super::Part>, Timing), RunError> {
    let site = Site::up(&tools.ground, "wifi-1hop", None)?;
    let samples = SECONDS as usize * 1000 / PERIOD.as_millis() as usize;
    let alone = simulate(samples);
    let (quiet, _) = once(tools, &site, means, samples, &[])?;
    let offset = 300_000 + u64::from(run) * 7_000;
    let image =
        Sent::lasting("/image", 64_000, PERIOD_MS * 1000, SECONDS).offset(offset % (PERIOD_MS * 1000));
    let (busy, timing) = once(tools, &site, means, samples, &[leg(image, PLANT, CONTROLLER)])?;
    let last = alone.last().copied().unwrap_or(f64::NAN);
    let values = Values::from([
        ("rms_of_final", rms(&busy, &quiet) / last),
        ("rms_to_simulation", rms(&busy, &alone) / last),
        ("rms_to_simulation_without_flow", rms(&quiet, &alone) / last),
        ("overshoot", busy.iter().copied().fold(0.0, f64::max) / last - 1.0),
        (
            "overshoot_of_simulation",
            alone.iter().copied().fold(0.0, f64::max) / last - 1.0,
        ),
    ]);
    let part = super::Part {
        check: "Vc of the RLC loop".into(),
        system: None,
        params: Params::new(),
        values,
        targets: vec![Target::within("rms_of_final", 0.0, 0.05)],
        over_time: Vec::new(),
    };
    Ok((vec![part], timing))
}

/// Returns the capacitor's voltage at each sample.
fn once(
    tools: &Tools<'_>,
    site: &Site<'_>,
    means: &Means,
    samples: usize,
    flow: &[Leg],
) -> Result<(Vec<f64>, Timing), RunError> {
    let played = match means {
        Means::Link(setting, ..) => by_link(tools, site, setting, samples, flow)?,
        Means::Ros(transport, _) => by_ros(tools, site, *transport, samples, flow)?,
        Means::Zenoh(protocol, topics) => by_zenoh(tools, site, (*protocol, topics), samples, flow)?,
        Means::Fastdds => return Err("the control loop is not available for Fast DDS".to_owned().into()),
    };
    let values = played.values.into_iter().flatten().next().unwrap_or_default();
    if values.len() != samples {
        return Err(format!("the circuit reported {} of {samples} samples", values.len()).into());
    }
    Ok((values, played.timing))
}

fn extras([circuit, controller]: [Command; 2]) -> [Extra; 2] {
    [
        Extra {
            name: "the circuit",
            command: circuit,
            takes: Some(Duration::from_secs(SECONDS)),
        },
        Extra {
            name: "the controller",
            command: controller,
            takes: None,
        },
    ]
}

fn by_link(
    tools: &Tools<'_>,
    site: &Site<'_>,
    setting: &Setting,
    samples: usize,
    flow: &[Leg],
) -> Result<Played, RunError> {
    // For the links' configuration, which ignores sizes and rates of the loop's topics.
    let loops = |topic: &str, from: &str, to: &str| leg(Sent::lasting(topic, 64, 20_000, 1), from, to);
    let mut all = vec![loops(SAMPLE, PLANT, CONTROLLER), loops(DRIVE, CONTROLLER, PLANT)];
    all.extend(flow.iter().cloned());
    let network = Network::up(tools, site, &all, setting)?;
    let count = samples.to_string();
    let mut extras = extras([
        tools.answering(site, ("circuit", PLANT), [DRIVE, SAMPLE], &["--samples", &count]),
        tools.answering(site, ("controller", CONTROLLER), [SAMPLE, DRIVE], &[]),
    ]);
    let command = |part: Part, host: &str, legs: &[&Leg]| tools.our_part(site, part, host, legs);
    let played = play_with("control", site, &tools.sandbox, flow, &command, &mut extras);
    Ok(network.end(played, site.stopped())?.0)
}

fn by_ros(
    tools: &Tools<'_>,
    site: &Site<'_>,
    transport: Transport,
    samples: usize,
    flow: &[Leg],
) -> Result<Played, RunError> {
    let ros = tools.ros()?;
    let (master, _roscore) = ros.roscore(site, PLANT)?;
    // The paper's UDP/NOD: small messages by UDPROS.
    let (small, large) = match transport {
        Transport::Mixed => (Transport::Udpros, Transport::Nodelay),
        one => (one, one),
    };
    let (circuit, controller) = words(samples);
    let end = |what: &str, host: &str, words: &[String]| {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        ros.command(site, host, &master, (what, small), &words)
    };
    let mut extras = extras([
        end("circuit", PLANT, &circuit),
        end("controller", CONTROLLER, &controller),
    ]);
    let command = |part: Part, host: &str, legs: &[&Leg]| {
        let words = flow_arguments(legs);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        ros.command(site, host, &master, (part.name(), large), &words)
    };
    play_with("control", site, &tools.sandbox, flow, &command, &mut extras)
}

fn by_zenoh(
    tools: &Tools<'_>,
    site: &Site<'_>,
    (protocol, topics): (Protocol, &[Topic]),
    samples: usize,
    flow: &[Leg],
) -> Result<Played, RunError> {
    let zenoh = tools.zenoh()?;
    let (circuit, controller) = words(samples);
    let ends = [
        ("circuit", PLANT, circuit),
        ("controller", CONTROLLER, controller),
    ];
    let mut extras = extras(zenoh.control(tools, (protocol, LOOP), site, ends)?);
    zenoh.play(tools, "control", (protocol, topics), site, flow, &mut extras)
}

/// Arguments of other systems' circuit and controller.
fn words(samples: usize) -> (Vec<String>, Vec<String>) {
    let ends = |input: &str, output: &str| ["--input", input, "--output", output].map(str::to_owned).to_vec();
    let mut circuit = ends(DRIVE, SAMPLE);
    circuit.extend(["--samples".into(), samples.to_string()]);
    (circuit, ends(SAMPLE, DRIVE))
}

/// Returns the root mean square of the difference.
fn rms(one: &[f64], other: &[f64]) -> f64 {
    let squares: f64 = one.iter().zip(other).map(|(a, b)| (a - b).powi(2)).sum();
    (squares / one.len().max(1) as f64).sqrt()
}
