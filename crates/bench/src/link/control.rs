//! Pound's section VI-G: a control loop over the radio, beside a flow of large messages.

use super::case::leg;
use super::network::{Network, Setting, Topic};
use super::part::plant::{PERIOD, simulate};
use super::tools::{Means, Tools};
use super::{Carrier, Experiment, Options, Part, Row, System};
use crate::flows::Sent;
use crate::flows::play::{Extra, Leg, play_with};
use crate::ipc::error::RunError;
use crate::lab::Source;
use crate::lab::cell::{Params, Target, Timing, Values};
use crate::lab::site::Site;
use serde_json::json;
use std::time::Duration;

const SECONDS: u64 = 4;
/// The circuit's host, from which the large messages go, and the controller's.
const PLANT: &str = "robot";
const CONTROLLER: &str = "base";
const PERIOD_MS: u64 = 200;

/// Ropewalk alone: other systems would need a circuit and a controller of their own.
pub(super) fn rows(options: &Options) -> Vec<Row> {
    if !options.wants(System::Ropewalk) {
        return Vec::new();
    }
    let carriers = options.carriers_of(&[Carrier::Quic]);
    let row = |carrier: &Carrier| {
        let setting = Setting {
            carrier: *carrier,
            rate: "6Mbit/s",
            hops: 1,
            neighbours: &[],
            topics: [(110, 2), (110, 2), (10, 2)]
                .map(|(priority, depth)| Topic {
                    priority,
                    depth,
                    more: "",
                })
                .into(),
        };
        let means = Means::Link(setting.clone(), Source::Periodic);
        let mut params = Params::from([
            ("period_ms".into(), json!(PERIOD.as_millis() as u64)),
            ("seconds".into(), json!(SECONDS)),
        ]);
        means.describe(&mut params);
        Row {
            experiment: Experiment::Control,
            system: System::Ropewalk,
            scenario: "wifi-1hop",
            hops: 1,
            setting: means.shown(),
            params,
            run: Box::new(move |tools, run| measure(tools, &setting, run)),
        }
    };
    carriers.iter().map(row).collect()
}

/// The loop without the flow, then with it, in one lab.
fn measure(tools: &Tools<'_>, setting: &Setting, run: u32) -> Result<(Vec<Part>, Timing), RunError> {
    let site = Site::up(&tools.ground, "wifi-1hop", None)?;
    let samples = SECONDS as usize * 1000 / PERIOD.as_millis() as usize;
    let alone = simulate(samples);
    let (quiet, _) = once(tools, &site, setting, samples, &[])?;
    let offset = 300_000 + u64::from(run) * 7_000;
    let image =
        Sent::lasting("/image", 64_000, PERIOD_MS * 1000, SECONDS).offset(offset % (PERIOD_MS * 1000));
    let (busy, timing) = once(tools, &site, setting, samples, &[leg(image, PLANT, CONTROLLER)])?;
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
    let part = Part {
        check: "Vc of the RLC loop".into(),
        params: Params::new(),
        values,
        targets: vec![Target::within("rms_of_final", 0.0, 0.05)],
        over_time: Vec::new(),
    };
    Ok((vec![part], timing))
}

/// The capacitor's voltage at each sample.
fn once(
    tools: &Tools<'_>,
    site: &Site<'_>,
    setting: &Setting,
    samples: usize,
    flow: &[Leg],
) -> Result<(Vec<f64>, Timing), RunError> {
    // What the links are told of: sizes and rates of the loop's topics mean nothing to them.
    let loops = |topic: &str, from: &str, to: &str| leg(Sent::lasting(topic, 64, 20_000, 1), from, to);
    let mut all = vec![loops("/y", PLANT, CONTROLLER), loops("/u", CONTROLLER, PLANT)];
    all.extend(flow.iter().cloned());
    let network = Network::up(tools, site, &all, setting)?;
    let count = samples.to_string();
    let takes = Duration::from_secs(SECONDS);
    let mut extras = [
        Extra {
            name: "the circuit",
            command: tools.answering(site, ("circuit", PLANT), ["/u", "/y"], &["--samples", &count]),
            takes: Some(takes),
        },
        Extra {
            name: "the controller",
            command: tools.answering(site, ("controller", CONTROLLER), ["/y", "/u"], &[]),
            takes: None,
        },
    ];
    let command =
        |part: crate::flows::play::Part, host: &str, legs: &[&Leg]| tools.our_part(site, part, host, legs);
    let played = play_with("control", site, &tools.sandbox, flow, &command, &mut extras);
    let (played, _) = network.end(played, site.stopped())?;
    let values = played.values.into_iter().flatten().next().unwrap_or_default();
    if values.len() != samples {
        return Err(format!("the circuit told {} of {samples} samples", values.len()).into());
    }
    Ok((values, played.timing))
}

/// The root of the mean square of the difference.
fn rms(one: &[f64], other: &[f64]) -> f64 {
    let squares: f64 = one.iter().zip(other).map(|(a, b)| (a - b).powi(2)).sum();
    (squares / one.len().max(1) as f64).sqrt()
}
