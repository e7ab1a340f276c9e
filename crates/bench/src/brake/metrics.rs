//! Combines the trials of a system.

use super::trial::{Stop, Trial};
use super::{Application, Options, motion, scene};
use serde::{Deserialize, Serialize};

/// Median and spread over trials (or images).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say all")]
pub struct Spread {
    pub median: f64,
    pub p25: f64,
    pub p75: f64,
    pub min: f64,
    pub max: f64,
}

impl Spread {
    /// `None` without values.
    pub(super) fn of(mut values: Vec<f64>) -> Option<Spread> {
        values.sort_by(f64::total_cmp);
        let last = values.len().checked_sub(1)? as f64;
        // Linear interpolation between two values.
        let at = |share: f64| {
            let place = share * last;
            let (low, high) = (values[place.floor() as usize], values[place.ceil() as usize]);
            low + (high - low) * place.fract()
        };
        Some(Spread {
            median: at(0.5),
            p25: at(0.25),
            p75: at(0.75),
            min: at(0.0),
            max: at(1.0),
        })
    }
}

/// The setting of a cell: what is simulated, and how busy the processors are kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Params {
    /// The application.
    pub application: Application,
    /// Number of successful trials.
    pub trials: u32,
    /// The region of interest, in pixels.
    pub roi: String,
    /// Recognizers beyond the paper's three.
    pub load: u32,
    /// Queue depth of one subscriber in images.
    pub queue: u32,
    /// Images per second.
    pub rate_hz: f64,
    /// Bytes of an image.
    pub image_bytes: usize,
    /// Speed before the command in m/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed_m_s: Option<f64>,
    /// Deceleration after the command in m/s².
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deceleration_m_s2: Option<f64>,
    /// Turning speed before the command in degrees/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_deg_s: Option<f64>,
    /// Deceleration after the command in degrees/s².
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deceleration_deg_s2: Option<f64>,
    /// Degrees before the light at which it is completely in the region of interest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry_deg: Option<f64>,
}

impl Params {
    pub(super) fn new(application: Application, trials: u32, options: &Options) -> Self {
        let straight = |x| (application == Application::Straight).then_some(x);
        let turn = |x| (application == Application::Turn).then_some(x);
        Params {
            application,
            trials,
            roi: options.roi.to_string(),
            load: options.load,
            queue: options.queue,
            rate_hz: 30.0,
            image_bytes: scene::BYTES,
            speed_m_s: straight(motion::SPEED),
            deceleration_m_s2: straight(motion::DECELERATION),
            turn_deg_s: turn(motion::TURN),
            deceleration_deg_s2: turn(motion::TURN_DECELERATION),
            entry_deg: turn(motion::entry_degrees(options.roi.width)),
        }
    }
}

/// Measured values of a cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Metrics {
    /// Distance from the line to the standstill.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distance_cm: Option<Spread>,
    /// Angle from the light to the standstill, without excess turns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub angle_deg: Option<Spread>,
    /// Excess turns, over all trials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missed_revolutions: Option<u32>,
    /// Time from the event to the first image with the red light, drawn and stamped.
    pub t1_ms: Option<Spread>,
    /// From then until the recognizer has the image in which it will recognize the light.
    pub t2_ms: Option<Spread>,
    /// Recognition.
    pub t3_ms: Option<Spread>,
    /// Transport of the command, and braking.
    pub t4_ms: Option<Spread>,
    /// Transport of the command alone.
    pub command_ms: Option<Spread>,
    /// The parts of the distance, the median of each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parts_cm: Option<[f64; 4]>,
    /// Trials in which the robot was never stopped; they count only in the numbers of images.
    pub never_stopped: u32,
    /// Received divided by published images, over all recognizers.
    pub received_ratio: f64,
    /// Time from stamp to receipt at the recognizer of red, over all images of all trials.
    pub image_ms: Option<Spread>,
    /// The same at the logger.
    pub logger_ms: Option<Spread>,
    /// Recognition in every image by every recognizer; its minimum is the time on an idle processor.
    pub match_ms: Option<Spread>,
    /// Drawing an image, which is part of T1.
    pub draw_ms: Option<Spread>,
    /// Number of unlit lamps recognized as lit.
    pub wrong: u64,
}

/// Combines the trials of one application into medians and spreads.
pub(super) fn pool(application: Application, entry: f64, trials: &[Trial]) -> Metrics {
    let stops: Vec<Stop> = trials.iter().filter_map(|t| t.stop).collect();
    let spread = |f: &dyn Fn(&Stop) -> f64| Spread::of(stops.iter().map(f).collect());
    let images = |f: fn(&Trial) -> &Vec<f64>| Spread::of(trials.iter().flat_map(f).copied().collect());
    let mut metrics = Metrics {
        t1_ms: spread(&|s| s.t1_ms),
        t2_ms: spread(&|s| s.t2_ms),
        t3_ms: spread(&|s| s.t3_ms),
        t4_ms: spread(&|s| s.t4_ms(application)),
        command_ms: spread(&|s| s.command_ms),
        never_stopped: (trials.len() - stops.len()) as u32,
        received_ratio: trials.iter().map(|t| t.received_ratio).sum::<f64>() / trials.len().max(1) as f64,
        image_ms: images(|t| &t.image_ms),
        logger_ms: images(|t| &t.logger_ms),
        match_ms: images(|t| &t.match_ms),
        draw_ms: Spread::of(trials.iter().map(|t| t.draw_ms).collect()),
        wrong: trials.iter().map(|t| t.wrong).sum(),
        ..Metrics::default()
    };
    match application {
        Application::Straight => {
            metrics.distance_cm = spread(&Stop::distance_cm);
            let part = |i: usize| spread(&|s| s.parts_cm()[i]).map(|s| s.median);
            metrics.parts_cm = part(0)
                .zip(part(1))
                .zip(part(2).zip(part(3)))
                .map(|((a, b), (c, d))| [a, b, c, d]);
        }
        Application::Turn => {
            metrics.angle_deg = spread(&|s| s.angle_deg(entry));
            metrics.missed_revolutions = Some(stops.iter().map(|s| s.missed(entry)).sum());
        }
    }
    metrics
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_lie_between_and_nothing_has_none() {
        let s = Spread::of(vec![4.0, 1.0, 3.0, 2.0]).expect("values");
        assert_eq!((s.min, s.median, s.max), (1.0, 2.5, 4.0));
        assert_eq!((s.p25, s.p75), (1.75, 3.25));
        assert_eq!(Spread::of(vec![]), None);
    }

    #[test]
    fn a_robot_that_was_not_stopped_is_counted_but_in_no_median() {
        let trial = |stop| Trial {
            stop,
            received_ratio: 0.5,
            logger_ms: vec![1.0],
            image_ms: vec![2.0, 4.0],
            match_ms: vec![],
            draw_ms: 1.0,
            wrong: 1,
        };
        let stop = Stop {
            t1_ms: 20.0,
            t2_ms: 1.0,
            t3_ms: 10.0,
            command_ms: 1.0,
        };
        let m = pool(Application::Straight, 5.0, &[trial(Some(stop)), trial(None)]);
        assert_eq!((m.never_stopped, m.wrong), (1, 2));
        assert_eq!(m.t1_ms.map(|s| s.median), Some(20.0));
        assert_eq!(m.image_ms.map(|s| s.median), Some(3.0));
        assert!(m.angle_deg.is_none() && m.distance_cm.is_some());
        assert_eq!(pool(Application::Turn, 5.0, &[trial(None)]).angle_deg, None);
    }
}
