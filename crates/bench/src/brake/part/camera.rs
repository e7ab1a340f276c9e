//! The camera, which is the robot: it knows its position, draws its view, and stops at the command.

use super::super::said::{Camera as Outcome, First, MOST};
use super::super::scene::{BYTES, Color, HEIGHT, STEP, Scene, WIDTH};
use super::{Application, Camera, Gate, PeerError, command_topic, image_topic, motion, schema};
use crate::kit::part::{SEQUENCE, STAMP, connect, control_part, say, sleep_until};
use bus::LoanError;
use ropewalk::{Node, Publisher};
use stats::Time;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Images per second.
const RATE: f64 = 30.0;

pub(super) fn run(options: &Camera) -> Result<(), PeerError> {
    let gate = Gate::watch()?;
    let node = Node::new("camera")?;
    let publisher = node.dynamic_publisher(&image_topic(&options.common), &schema("sensor_msgs/Image")?)?;
    let commands =
        node.dynamic_subscriber(&command_topic(&options.common), &schema("geometry_msgs/Twist")?)?;
    let everyone = |patience| {
        let enough = publisher.wait_for_subscribers(options.watchers, patience)
            && commands.wait_for_publishers(1, patience);
        (enough, publisher.bus().subscriber_count())
    };
    if !connect(&gate, options.watchers, everyone)? {
        return Ok(());
    }
    let command = Arc::new(AtomicU64::new(0));
    let heard = command.clone();
    let _callback = commands.callback(move |_| {
        let now = clock::monotonic().as_nanos();
        // Only the first command counts.
        let _ = heard.compare_exchange(0, now, Ordering::AcqRel, Ordering::Acquire);
    })?;
    let control = control_part(publisher.schema(), HEIGHT, WIDTH, "rgb8", STEP)?;
    say(&"ready")?;
    if !gate.wait_for_go() {
        return Ok(());
    }
    let outcome = drive(options, &publisher, &control, &command, &gate)?;
    say(&serde_json::json!(outcome))?;
    gate.wait_for_stop();
    Ok(())
}

fn drive(
    options: &Camera,
    publisher: &Publisher,
    control: &[u8],
    command: &AtomicU64,
    gate: &Gate,
) -> Result<Outcome, PeerError> {
    let scene = Scene::new();
    let start = clock::monotonic();
    let end = start + Duration::from_millis(options.end_ms);
    let mut outcome = Outcome {
        start_ns: start.as_nanos(),
        images: 0,
        refused: 0,
        first: None,
        command_ns: None,
        draw_ns: 0,
    };
    let mut draw_ns = Vec::with_capacity(MOST);
    for sequence in 0.. {
        sleep_until(start + Duration::from_secs_f64(sequence as f64 / RATE))?;
        let now = clock::monotonic();
        let arrived = command.load(Ordering::Acquire);
        if arrived > 0 {
            outcome.command_ns = Some(arrived);
        }
        if outcome.command_ns.is_some() || now > end || gate.stopped() {
            break;
        }
        let mut loan = match publisher.loan(control.len(), &[BYTES]) {
            Ok(loan) => loan,
            Err(LoanError::MemoryShort { .. }) => {
                outcome.refused += 1;
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        loan.control_mut().copy_from_slice(control);
        let view = View::at(options, start, now);
        let image = loan.part_mut(0);
        scene.draw(image, sequence as u32 * 5, view.column, view.lit);
        image[SEQUENCE].copy_from_slice(&u64::to_le_bytes(sequence));
        let stamp = clock::monotonic();
        image[STAMP].copy_from_slice(&stamp.as_nanos().to_le_bytes());
        publisher.publish(loan)?;
        if draw_ns.len() < MOST {
            draw_ns.push(stamp.since(now).as_nanos() as u64);
        }
        outcome.images += 1;
        if view.red && outcome.first.is_none() {
            let stamp_ns = stamp.as_nanos();
            outcome.first = Some(First { sequence, stamp_ns });
        }
    }
    draw_ns.sort_unstable();
    outcome.draw_ns = draw_ns.get(draw_ns.len() / 2).copied().unwrap_or(0);
    Ok(outcome)
}

/// The view at one instant.
struct View {
    column: Option<i32>,
    lit: Color,
    /// Whether the red light can be recognized.
    red: bool,
}

impl View {
    fn at(options: &Camera, start: Time, now: Time) -> View {
        let seconds = now.since(start).as_secs_f64() - options.event_us as f64 / 1e6;
        match options.application {
            Application::Straight => {
                let red = seconds >= 0.0;
                let lit = if red { Color::Red } else { Color::Green };
                let column = motion::column(0.0);
                View { column, lit, red }
            }
            Application::Turn => {
                let entry = motion::entry_degrees(options.roi.width);
                let column = motion::column(motion::TURN * seconds - entry);
                View {
                    column,
                    lit: Color::Red,
                    red: column.is_some_and(|c| motion::in_region(c, options.roi.width)),
                }
            }
        }
    }
}
