//! Runs the simulated robot in real time.

use super::publish::Publisher;
use super::sim::base::Happened;
use super::sim::{Noise, Rover};
use super::tell::Teller;
use super::{Sim, commands, model};
use crate::failure::{OrFail, Outcome};
use crate::signals::Signals;
use remote::robot::ControllerEvent;
use remote::types::LogLevel;
use remote::{ARM, BASE, Pending, Robot, command};
use serde_json::json;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Longest simulated step: time in which the process was stopped beyond this does not count.
const LONGEST_STEP: Duration = Duration::from_millis(250);
/// Longest time until a signal is noticed.
const PATIENCE: Duration = Duration::from_millis(50);

/// The rover, shared between the handlers of commands and the clock.
#[derive(Clone)]
pub(super) struct Shared(Arc<Mutex<Rover>>);

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, Rover> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The horn, which the rover asks for permission to sound; one question at a time.
#[derive(Clone, Default)]
pub(super) struct Horn(Arc<Mutex<Option<Pending<bool>>>>);

impl Horn {
    pub(super) fn ask(&self, robot: &Robot) -> Result<(), &'static str> {
        let mut asked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if asked.is_some() {
            return Err("the rover has already asked for permission, and waits for the answer");
        }
        *asked = Some(robot.ask_permission("may the rover sound its horn?"));
        Ok(())
    }

    fn answer(&self) -> Option<bool> {
        let mut asked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        asked.take_if(|asked| asked.is_ready()).map(Pending::wait)
    }
}

/// Runs the robot until its time is over, or a signal arrives.
pub(super) fn run(options: &Sim) -> Outcome {
    let signals = Signals::watch().or_job("watching for signals")?;
    let rover = Shared(Arc::new(Mutex::new(Rover::new())));
    let tell = Arc::new(Teller::new(options.json));
    let mut builder = Robot::builder(&options.name);
    let ends = options.ends.open(&options.name)?;
    for end in &ends {
        builder = builder.end(end.clone());
    }
    let robot = builder
        .require_request(options.require_request)
        .hold_twists((options.twist_hold > 0.0).then(|| Duration::from_secs_f64(options.twist_hold)))
        .moves::<command::SimpleAction>(ARM)
        .build()
        .or_input()?;
    let horn = Horn::default();
    commands::register(&robot, &rover, &horn, &tell);
    watch(&robot, &rover, &tell, options.allow_take_over);
    let mut publisher = Publisher::new(options.rate, Noise::new(options.seed));
    publisher
        .describe(&robot)
        .or_job("publishing the robot's description")?;
    let model = model::share(&robot).or_job("sharing the model")?;
    // All kinds are known before the first controller is served.
    publisher.publish(&robot, &Rover::new());
    robot.start().or_input()?;
    // With the ports assigned by now.
    let places: Vec<String> = ends.iter().map(|end| end.describe()).collect();
    let text = format!("{} is ready: {}", options.name, places.join(", "));
    tell.tell(
        "ready",
        &text,
        json!({ "robot": options.name, "transports": places }),
    );

    let period = Duration::from_secs_f64(1.0 / options.rate);
    let start = Instant::now();
    let end = options.duration.map(|s| start + Duration::from_secs_f64(s));
    let (mut last, mut next) = (start, start);
    let mut moving = false;
    while !signals.stopped() && end.is_none_or(|end| Instant::now() < end) {
        let now = Instant::now();
        if now < next {
            std::thread::sleep((next - now).min(PATIENCE));
            continue;
        }
        next = (next + period).max(now);
        let passed = (now - last).min(LONGEST_STEP);
        last = now;
        let (snapshot, happened) = {
            let mut rover = rover.lock();
            rover.step(passed.as_secs_f64());
            (rover.clone(), rover.take_happened())
        };
        if snapshot.base.is_moving() != moving {
            moving = !moving;
            let place = snapshot.base.place;
            let (x, y) = (place.x, place.y);
            let text = match moving {
                true => "starts to move".to_owned(),
                false => format!("stops at ({x:.2}, {y:.2})"),
            };
            tell.tell("motion", &text, json!({ "moving": moving, "x_m": x, "y_m": y }));
        }
        for happened in happened {
            let (text, fields) = in_words(happened);
            log(&robot, LogLevel::Info, &text);
            tell.tell("motion", &text, fields);
        }
        if let Some(granted) = horn.answer() {
            let text = if granted {
                "sounds the horn"
            } else {
                "may not sound the horn"
            };
            log(&robot, LogLevel::Info, text);
            tell.tell("permission", text, json!({ "granted": granted }));
        }
        publisher.publish(&robot, &snapshot);
    }
    robot.stop();
    drop(model);
    let rover = rover.lock();
    let text = format!("ended: drove {:.2} m in {:.1} s", rover.base.driven, rover.time);
    tell.tell(
        "ended",
        &text,
        json!({ "driven_m": rover.base.driven, "simulated_s": rover.time }),
    );
    Ok(())
}

fn in_words(happened: Happened) -> (String, serde_json::Value) {
    match happened {
        Happened::Reached { x, y, left } => (
            format!("reached ({x:.2}, {y:.2}), {left} to go"),
            json!({ "x_m": x, "y_m": y, "waypoints_left": left }),
        ),
        Happened::Blocked => (
            "touches a wall or a pillar, and stops".into(),
            json!({ "blocked": true }),
        ),
        Happened::Done => ("the list of twists is done".into(), json!({})),
    }
}

/// Publishes a log message of the robot.
pub(super) fn log(robot: &Robot, level: LogLevel, message: &str) {
    if let Err(error) = robot.log(level, message) {
        tracing::debug!(%error, "a log message is lost");
    }
}

fn watch(robot: &Robot, rover: &Shared, tell: &Arc<Teller>, take_over: bool) {
    let reported = tell.clone();
    robot.on_controller(move |event| {
        let (word, id, name, peer) = match &event {
            ControllerEvent::Found { id, name, peer } => ("found", id, name, peer),
            ControllerEvent::Lost { id, name, peer } => ("lost", id, name, peer),
        };
        let fields =
            json!({ "what": word, "controller": &**name, "id": format!("{id:x}"), "peer": peer.to_string() });
        reported.tell(
            "controller",
            &format!("{word} controller {name} ({id:x}, {peer})"),
            fields,
        );
    });
    let (reported, moving) = (tell.clone(), rover.clone());
    robot.on_link_lost(move |lost| {
        match lost.subsystem() {
            BASE => moving.lock().stop(),
            ARM => moving.lock().hold(),
            _ => lost.stop(),
        }
        let text = format!("stops the {}: {} is lost", lost.subsystem(), lost.controller());
        reported.tell(
            "link_lost",
            &text,
            json!({ "subsystem": lost.subsystem(), "controller": lost.controller() }),
        );
    });
    let reported = tell.clone();
    robot.on_take_over(move |wish| {
        let word = if take_over { "takes" } else { "may not take" };
        let text = format!(
            "{} {word} the right to move {:?} from {}",
            wish.by.0, wish.subsystem, wish.from.0
        );
        reported.tell(
            "take_over",
            &text,
            json!({ "subsystem": wish.subsystem, "granted": take_over }),
        );
        take_over
    });
}
