//! One trial: the processes of one robot, from their start to its standstill.

use super::motion;
use super::said::{Camera, Hit, Said, Watcher};
use super::scene::Color;
use super::{Application, Options};
use crate::kit::error::RunError;
use crate::kit::processes::Processes;
use crate::kit::programs::Ready;
use crate::kit::roscore::Roscore;
use crate::kit::sandbox::Sandbox;
use crate::kit::systems::System;
use std::process::Command;
use std::time::Duration;

/// How long the parts may take to find each other.
const READY: Duration = Duration::from_secs(60);
/// How long they may take to print their results.
const RESULT: Duration = Duration::from_secs(30);
/// Tolerance beyond the robot's planned time.
const HANGING: Duration = Duration::from_secs(30);
/// Time between the last `ready` and `go`.
const SETTLE: Duration = Duration::from_millis(200);
/// Minimum time from the start of the motion to the event: all receivers have images by then.
const BEFORE_US: u64 = 1_000_000;
/// Time from the event until a robot that is never stopped gives up.
const STRAIGHT_MS: u64 = 5_000;
const TURNS: f64 = 3.0;
/// Microseconds between two images.
const PERIOD_US: f64 = 1e6 / 30.0;

/// Result of one trial. Times in milliseconds, distances in centimetres.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Trial {
    /// `None`: the robot was never stopped.
    pub(super) stop: Option<Stop>,
    /// Received divided by published images, over the recognizers.
    pub(super) received_ratio: f64,
    /// Times from stamp to receipt at the logger.
    pub(super) logger_ms: Vec<f64>,
    /// Times from stamp to receipt at the recognizer of red.
    pub(super) image_ms: Vec<f64>,
    /// Times of recognition, of all images by all recognizers.
    pub(super) match_ms: Vec<f64>,
    pub(super) draw_ms: f64,
    /// Number of unlit lamps recognized as lit.
    pub(super) wrong: u64,
}

/// A stop and its parts (Fig. 10).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Stop {
    pub(super) t1_ms: f64,
    pub(super) t2_ms: f64,
    pub(super) t3_ms: f64,
    /// Transport time of the command; the rest of T4 follows from the deceleration.
    pub(super) command_ms: f64,
}

impl Stop {
    /// Returns the time from the event to the command's arrival.
    fn reaction_s(&self) -> f64 {
        (self.t1_ms + self.t2_ms + self.t3_ms + self.command_ms) / 1e3
    }

    /// Returns the time of the command's transport and of braking.
    pub(super) fn t4_ms(&self, application: Application) -> f64 {
        let (_, seconds) = match application {
            Application::Straight => motion::braking(),
            Application::Turn => motion::turn_braking(),
        };
        self.command_ms + seconds * 1e3
    }

    /// Returns the distance from the line to the standstill.
    pub(super) fn distance_cm(&self) -> f64 {
        (motion::driven(self.reaction_s()) + motion::braking().0) * 100.0
    }

    /// Returns the parts of the distance.
    pub(super) fn parts_cm(&self) -> [f64; 4] {
        let driven = |ms: f64| motion::driven(ms / 1e3) * 100.0;
        [
            driven(self.t1_ms),
            driven(self.t2_ms),
            driven(self.t3_ms),
            driven(self.command_ms) + motion::braking().0 * 100.0,
        ]
    }

    /// Returns the angle past the light when the command arrives, with all turns, in degrees.
    fn heading(&self, entry: f64) -> f64 {
        motion::TURN * self.reaction_s() - entry
    }

    /// Returns the angle past the light at the standstill, without excess turns.
    pub(super) fn angle_deg(&self, entry: f64) -> f64 {
        let turns = f64::from(self.missed(entry)) * 360.0;
        self.heading(entry) - turns + motion::turn_braking().0
    }

    /// Returns the excess turns, because the light was missed.
    pub(super) fn missed(&self, entry: f64) -> u32 {
        motion::missed_revolutions(self.heading(entry))
    }
}

/// The environment of trials.
pub(super) struct Surroundings<'a> {
    pub(super) options: &'a Options,
    pub(super) sandbox: &'a Sandbox,
    pub(super) roscore: Option<&'a Roscore>,
    pub(super) stopped: &'a dyn Fn() -> bool,
}

/// Returns microseconds from the start to the event. Its phase between two images differs from trial to trial and is
/// spread evenly (by the golden ratio), but is the same for all systems.
fn event_us(trial: u32) -> u64 {
    BEFORE_US + (PERIOD_US * (f64::from(trial) * 0.618_033_988_75 + 0.5).fract()) as u64
}

fn end_ms(application: Application, event_us: u64) -> u64 {
    let after = match application {
        Application::Straight => STRAIGHT_MS,
        Application::Turn => (TURNS * 360.0 / motion::TURN * 1e3) as u64,
    };
    event_us / 1000 + after
}

/// Runs `system` once. `number` makes the topics unique.
pub(super) fn run(
    system: &Ready,
    application: Application,
    trial: u32,
    number: usize,
    around: &Surroundings<'_>,
) -> Result<Trial, RunError> {
    let options = around.options;
    let event_us = event_us(trial);
    let end_ms = end_ms(application, event_us);
    let colors = [Color::Red, Color::Green, Color::Yellow];
    let more = [Color::Green, Color::Yellow].into_iter().cycle();
    let recognizers: Vec<Color> = colors
        .into_iter()
        .chain(more.take(options.load as usize))
        .collect();

    let mut processes = Processes::<Said>::new((), around.sandbox, around.stopped);
    let mut start = |role: &str, name: String, more: &[(&str, String)]| {
        let mut command = system.command(role);
        common(&mut command, number, options.queue);
        for (option, value) in more {
            command.arg(option).arg(value);
        }
        if let Some(roscore) = around.roscore.filter(|_| system.system.needs_roscore()) {
            roscore.prepare(&mut command);
        }
        processes.start(format!("{} {name}", system.system), &mut command)
    };
    let roi = ("--roi", options.roi.to_string());
    let camera = [
        roi.clone(),
        ("--watchers", (recognizers.len() + 1).to_string()),
        ("--application", application.name().to_owned()),
        ("--event-us", event_us.to_string()),
        ("--end-ms", end_ms.to_string()),
    ];
    start("camera", "camera".into(), &camera)?;
    start("logger", "logger".into(), &[])?;
    for color in &recognizers {
        let name = format!("recognizer of {}", color.name());
        start(
            "recognizer",
            name,
            &[roi.clone(), ("--color", color.name().to_owned())],
        )?;
    }

    let patience = Duration::from_millis(end_ms) + HANGING;
    conduct(&mut processes, patience, system.system)?;
    processes.look();
    processes.join()?;
    let mut peers = processes.into_peers().into_iter();
    let camera = peers.next().and_then(|p| p.said.camera);
    let watchers: Option<Vec<Watcher>> = peers.map(|p| p.said.watcher).collect();
    let (Some(camera), Some(watchers)) = (camera, watchers) else {
        return Err(format!("{}: a part printed another part's result", system.system).into());
    };
    let event_ns = camera.start_ns.saturating_add(event_us * 1000);
    judge(&camera, &watchers, &recognizers, application, event_ns)
        .map_err(|why| format!("{}: {why}", system.system).into())
}

fn common(command: &mut Command, number: usize, queue: u32) {
    command.args(["--topic", &format!("/brake/n{number}")]);
    command.args(["--queue", &queue.to_string()]);
}

fn conduct(processes: &mut Processes<'_, Said>, patience: Duration, system: System) -> Result<(), RunError> {
    if !processes.listen(clock::monotonic() + READY, |peers| {
        peers.iter().all(|p| p.said.ready)
    })? {
        let late = processes.peers().iter().filter(|p| !p.said.ready);
        let late: Vec<_> = late.map(|p| &*p.name).collect();
        return Err(format!("not ready within {READY:?}: {}", late.join(", ")).into());
    }
    processes.listen(clock::monotonic() + SETTLE, |_| false)?;
    processes.tell(0, "go");
    let over = |peers: &[crate::kit::processes::Peer<Said>]| peers[0].said.camera.is_some();
    if !processes.listen(clock::monotonic() + patience, over)? {
        return Err(processes.peers()[0].complain(&format!("it did not finish within {patience:?}")));
    }
    processes.look();
    if !processes.stop(RESULT, |peers| {
        peers[1..].iter().all(|p| p.said.watcher.is_some())
    })? {
        return Err(format!("{system}: not all parts gave a result within {RESULT:?}").into());
    }
    Ok(())
}

/// Combines the parts' times. All clocks are the same one, so that instants must follow each other.
fn judge(
    camera: &Camera,
    watchers: &[Watcher],
    recognizers: &[Color],
    application: Application,
    event_ns: u64,
) -> Result<Trial, String> {
    let [logger, red, ..] = watchers else {
        return Err("logger and recognizers are missing".into());
    };
    let sent = camera.images.max(1) as f64 * recognizers.len() as f64;
    let received: u64 = watchers[1..].iter().map(|w| w.images).sum();
    let stop = match (camera.command_ns, camera.first, red.first) {
        (None, ..) => None,
        (Some(_), None, _) => return Err("it was stopped before the red light was visible".into()),
        (Some(_), _, None) => return Err("it was stopped, but no recognizer recognized the red light".into()),
        (Some(command), Some(first), Some(hit)) => {
            let Hit {
                sequence,
                received_ns,
                recognized_ns,
            } = hit;
            if sequence < first.sequence {
                return Err(format!(
                    "red was recognized in image {sequence}, but was first visible in {}",
                    first.sequence
                ));
            }
            let ms = |what: &str, from: u64, to: u64| match to.checked_sub(from) {
                Some(ns) => Ok(ns as f64 / 1e6),
                None => Err(format!("{what} would be negative ({from} to {to} ns)")),
            };
            Some(Stop {
                t1_ms: ms("T1", event_ns, first.stamp_ns)?,
                t2_ms: ms("T2", first.stamp_ns, received_ns)?,
                t3_ms: ms("T3", received_ns, recognized_ns)?,
                command_ms: ms("the command's way", recognized_ns, command)?,
            })
        }
    };
    let wrong = watchers[1..]
        .iter()
        .zip(recognizers)
        .map(|(w, color)| match color {
            Color::Yellow => w.hits,
            // Green is lit until the line is crossed.
            Color::Green if application == Application::Turn => w.hits,
            _ => 0,
        });
    let all_ms = |ns: &[u64]| -> Vec<f64> { ns.iter().map(|ns| *ns as f64 / 1e6).collect() };
    Ok(Trial {
        stop,
        received_ratio: received as f64 / sent,
        logger_ms: all_ms(&logger.latency_ns),
        image_ms: all_ms(&red.latency_ns),
        match_ms: watchers[1..].iter().flat_map(|w| all_ms(&w.match_ns)).collect(),
        draw_ms: camera.draw_ns as f64 / 1e6,
        wrong: wrong.sum(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::said::First;
    use super::*;

    fn watcher(first: Option<Hit>) -> Watcher {
        Watcher {
            images: 9,
            latency_ns: vec![1_000_000],
            match_ns: vec![],
            hits: u64::from(first.is_some()),
            first,
        }
    }

    fn trial(command_ns: Option<u64>, sequence: u64) -> Result<Trial, String> {
        let camera = Camera {
            start_ns: 0,
            images: 10,
            refused: 0,
            first: Some(First {
                sequence: 7,
                stamp_ns: 1_010_000_000,
            }),
            command_ns,
            draw_ns: 1_000_000,
        };
        let hit = Hit {
            sequence,
            received_ns: 1_012_000_000,
            recognized_ns: 1_032_000_000,
        };
        let watchers = [watcher(None), watcher(Some(hit)), watcher(None)];
        let colors = [Color::Red, Color::Green];
        judge(&camera, &watchers, &colors, Application::Straight, 1_000_000_000)
    }

    #[test]
    fn distance_is_the_sum_of_its_parts() {
        let stop = trial(Some(1_033_000_000), 7)
            .expect("a trial")
            .stop
            .expect("a stop");
        assert_eq!(
            (stop.t1_ms, stop.t2_ms, stop.t3_ms, stop.command_ms),
            (10.0, 2.0, 20.0, 1.0)
        );
        // 33 ms at 60 cm/s, and 36 cm to stand.
        assert!((stop.distance_cm() - (1.98 + 36.0)).abs() < 1e-9);
        assert!((stop.parts_cm().iter().sum::<f64>() - stop.distance_cm()).abs() < 1e-9);
        assert_eq!(stop.t4_ms(Application::Straight), 1201.0);
    }

    #[test]
    fn angles_count_from_the_light_and_know_missed_turns() {
        let entry = 5.0;
        let stop = |t2_ms| Stop {
            t1_ms: 10.0,
            t2_ms,
            t3_ms: 20.0,
            command_ms: 0.0,
        };
        // 30 ms at 90 degrees/s, 22.5 degrees to stand.
        assert!((stop(0.0).angle_deg(entry) - (2.7 - 5.0 + 22.5)).abs() < 1e-9);
        assert_eq!(stop(0.0).missed(entry), 0);
        assert_eq!(stop(4000.0).missed(entry), 1);
        assert!((stop(4000.0).angle_deg(entry) - stop(0.0).angle_deg(entry)).abs() < 1e-9);
    }

    #[test]
    fn impossible_stop_times_are_refused() {
        assert!(
            trial(Some(1_033_000_000), 6)
                .expect_err("too early")
                .contains("image 6")
        );
        assert!(
            trial(Some(1_000_000), 7)
                .expect_err("backwards")
                .contains("negative")
        );
        let lost = trial(None, 7).expect("a trial");
        assert_eq!(lost.stop, None);
        assert!((lost.received_ratio - 0.9).abs() < 1e-9);
    }

    #[test]
    fn events_are_spread_over_the_time_between_images() {
        let places: Vec<u64> = (0..10).map(|i| event_us(i) - BEFORE_US).collect();
        for third in 0..3 {
            let within = |p: &&u64| **p * 3 / 33_334 == third;
            assert!(places.iter().filter(within).count() >= 2, "{places:?}");
        }
    }
}
