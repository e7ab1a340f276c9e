//! Laser and image over the shipped scenarios: with the rate found by the links beside the rate set.

use super::case::{Seen, leg};
use super::network::Setting;
use super::options::Rate;
use super::tools::{Means, Tools};
use super::{CarrierKind, Experiment, Options, Part, Row, System, pound};
use crate::flows::play::Leg;
use crate::flows::{IMAGE, IMAGE_BYTES, LASER, LASER_BYTES, LASER_US, Sent, phase_us};
use crate::kit::cell::{Params, Target, Timing};
use crate::kit::error::RunError;
use crate::kit::roscpp::Source;
use crate::kit::site::Site;
use serde_json::json;

/// A scenario whose medium stays the same while it runs.
#[derive(Clone, Copy)]
struct Place {
    scenario: &'static str,
    hops: u32,
    /// What an expert configures.
    set: &'static str,
    ends: [&'static str; 2],
    /// Period of the images, which fill about two thirds of what the medium carries.
    image_us: u64,
}

const PLACES: [Place; 12] = [
    wifi("wifi-1hop", 1, "6Mbit/s", ["robot", "base"], 150_000),
    wifi("wifi-2hops", 2, "6Mbit/s", ["robot", "base"], 300_000),
    wifi("wifi-chain-4", 3, "6Mbit/s", ["h1", "h4"], 500_000),
    wifi("wifi-ap", 2, "24Mbit/s", ["robot1", "base"], 100_000),
    cable("ethernet", FAST, ["robot", "base"], 8_000),
    cable("loss-20", FAST, ["robot", "controller"], 8_000),
    cable("delay-2000-one-way", FAST, ["robot", "controller"], 8_000),
    cable("delay-1000-each-way", FAST, ["robot", "controller"], 8_000),
    cable("remote-default", SLOW, ["robot", "controller"], 75_000),
    cable("remote-loss-20", SLOW, ["robot", "controller"], 75_000),
    cable("remote-loss-20-rtt-2s", SLOW, ["robot", "controller"], 75_000),
    cable("remote-delay-2000", SLOW, ["robot", "controller"], 75_000),
];
const FAST: &str = "100Mbit/s, medium: wire";
const SLOW: &str = "10.45Mbit/s, medium: wire";

const fn wifi(
    scenario: &'static str,
    hops: u32,
    set: &'static str,
    ends: [&'static str; 2],
    image_us: u64,
) -> Place {
    Place {
        scenario,
        hops,
        set,
        ends,
        image_us,
    }
}

const fn cable(scenario: &'static str, set: &'static str, ends: [&'static str; 2], image_us: u64) -> Place {
    wifi(scenario, 1, set, ends, image_us)
}

/// How much worse a link may be that finds the rate itself.
const WORSE: f64 = 1.15;
/// The quantities that are compared, and whether less is better.
const COMPARED: [(&str, &str, bool); 3] = [
    ("delay_ms.mean", "of_set.delay_mean", true),
    ("delay_ms.p99", "of_set.delay_p99", true),
    ("delivery", "of_set.delivery", false),
];

/// A row for each scenario, whose runs measure both rates one after the other.
pub(super) fn rows(options: &Options) -> Vec<Row> {
    if !options.wants(System::Ropewalk) || options.source != Source::Periodic {
        return Vec::new();
    }
    let lasts = if options.quick { 10 } else { 40 };
    let of_place = |place: &'static Place| {
        let rates = ["auto", place.set].into_iter();
        let rates: Vec<_> = rates.filter(|r| options.wants_rate(r)).collect();
        Row {
            experiment: Experiment::Rates,
            system: System::Ropewalk,
            beside: Vec::new(),
            scenario: place.scenario,
            hops: place.hops,
            setting: "laser and image, the rate found and set".into(),
            params: Params::new(),
            run: Box::new(move |tools, run| measure(tools, place, &rates, lasts, run)),
        }
    };
    let places = PLACES.iter().filter(|p| options.wants_hops(p.hops));
    places.map(of_place).collect()
}

fn legs(place: &Place, lasts: u64, run: u32) -> Vec<Leg> {
    let [from, to] = place.ends;
    let offset = phase_us(run);
    let laser = Sent::lasting(LASER, LASER_BYTES, LASER_US, lasts);
    let image = Sent::lasting(IMAGE, IMAGE_BYTES, place.image_us, lasts).offset(offset);
    vec![leg(laser, from, to), leg(image, from, to)]
}

/// Measures the rates one after the other, each in a new lab; every other run begins with the other.
fn measure(
    tools: &Tools<'_>,
    place: &Place,
    rates: &[&'static str],
    lasts: u64,
    run: u32,
) -> Result<(Vec<Part>, Timing), RunError> {
    let mut of_rates: Vec<Vec<Part>> = rates.iter().map(|_| Vec::new()).collect();
    let mut timing: Option<Timing> = None;
    for turn in 0..rates.len() {
        let which = (turn + run as usize) % rates.len();
        let means = Means::links(Setting {
            carrier: CarrierKind::Quic,
            rate: rates[which],
            hops: place.hops,
            neighbours: &[],
            yields: true,
            topics: pound::topics(),
            called: &[],
        });
        let site = Site::up(&tools.ground, place.scenario, None)?;
        let legs = legs(place, lasts, run);
        let what = format!("rates, {}, {}", place.scenario, rates[which]);
        let played = tools.play(&what, &site, &means, &legs)?;
        let seen = Seen {
            legs: &legs,
            played: &played,
            lab_began: stats::Time::ZERO,
        };
        for mut part in seen.cells(&[])? {
            part.check = format!("{}, rate {}", part.check, Rate::of(rates[which]).name());
            means.describe(&mut part.params);
            part.params.insert("configured".into(), json!(rates[which]));
            of_rates[which].push(part);
        }
        timing = Some(timing.map_or(played.timing, |worst| worst.worst(played.timing)));
    }
    if let [found, set] = &mut of_rates[..] {
        compare(found, set);
    }
    let timing = timing.ok_or_else(|| "no run".to_owned())?;
    Ok((of_rates.into_iter().flatten().collect(), timing))
}

/// Compares each flow with the rate found to the same one with the rate set.
fn compare(found: &mut [Part], set: &[Part]) {
    for (found, set) in found.iter_mut().zip(set) {
        for (value, ratio, less) in COMPARED {
            let (Some(a), Some(b)) = (found.values.get(value).copied(), set.values.get(value).copied())
            else {
                continue;
            };
            found.values.insert(ratio, a / b);
            found.targets.push(match less {
                true => Target::within(ratio, 0.0, WORSE),
                false => Target::within(ratio, 0.998, f64::INFINITY),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lab::Scenario;

    /// Those that change while they run, or have experiments of their own.
    const OTHERS: [&str; 4] = ["drive-away", "outage-5s", "outage-5s-relay", "team-of-8"];

    #[test]
    fn every_shipped_scenario_is_measured_between_two_of_its_hosts() {
        for place in PLACES {
            let scenario = Scenario::load(place.scenario).expect("a scenario");
            for host in place.ends {
                assert!(
                    scenario.hosts().iter().any(|h| h == host),
                    "{}: {host}",
                    place.scenario
                );
            }
        }
        for shipped in lab::shipped() {
            let name = shipped.name.replace('N', "4");
            let measured = PLACES.iter().any(|p| p.scenario == name);
            assert_ne!(measured, OTHERS.contains(&&*name), "{name}");
        }
    }
}
