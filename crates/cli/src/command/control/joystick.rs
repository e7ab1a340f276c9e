//! The keyboard as a joystick.

use super::session::{Done, Problem, Session, usage};
use crate::numbers::is_moderate;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use remote::types::{Twist, Vector3};
use remote::{Outcome, Pending, command};
use serde_json::json;
use std::collections::VecDeque;
use std::io::Write;
use std::time::{Duration, Instant};

/// Interval between two twists while a key is held.
const PERIOD: Duration = Duration::from_millis(100);
/// How long a key counts as held after its first press. Terminals do not report its release, and repeat a held key only
/// after up to half a second.
const HELD: Duration = Duration::from_millis(600);
/// The same once the key repeats.
const REPEATING: Duration = Duration::from_millis(200);
/// Most twists whose outcome is not known yet.
const MOST_PENDING: usize = 64;

/// One axis: direction, and until when its key counts as held.
#[derive(Clone, Copy, Debug, Default)]
struct Axis {
    way: f64,
    until: Duration,
}

/// State of the keys; times count from the start of the joystick.
#[derive(Debug, Default)]
struct Stick {
    forward: Axis,
    turn: Axis,
    moving: bool,
}

impl Axis {
    fn press(&mut self, way: f64, now: Duration) {
        let repeats = self.way == way && now < self.until;
        let until = now + if repeats { REPEATING } else { HELD };
        self.until = if self.way == way {
            self.until.max(until)
        } else {
            until
        };
        self.way = way;
    }

    fn at(&self, now: Duration) -> f64 {
        if now < self.until { self.way } else { 0.0 }
    }
}

impl Stick {
    fn stop(&mut self) {
        (self.forward, self.turn) = (Axis::default(), Axis::default());
    }

    /// Returns the twist to send now, as shares of the speeds: one zero twist follows the last.
    fn wanted(&mut self, now: Duration) -> Option<(f64, f64)> {
        let (forward, turn) = (self.forward.at(now), self.turn.at(now));
        let moving = forward != 0.0 || turn != 0.0;
        let send = moving || self.moving;
        self.moving = moving;
        send.then_some((forward, turn))
    }
}

/// Raw mode of the terminal, which delivers single keys until this is dropped.
struct Raw;

impl Raw {
    fn begin() -> Result<Raw, Problem> {
        enable_raw_mode().map_err(Problem::failed)?;
        Ok(Raw)
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        let _ = disable_raw_mode();
        crate::screen::say!("");
    }
}

/// Drives until `q`, Esc or Ctrl-C; the last twist is zero.
pub(super) fn run(session: &Session, line: &str, words: &[&str]) -> Done {
    if !session.interactive {
        return usage("the joystick needs a terminal: in a script, use `set twist`");
    }
    let (speed, turn) = match words {
        [] => (0.5, 0.8),
        [speed, turn] => match (speed.parse(), turn.parse()) {
            (Ok(speed), Ok(turn)) if is_moderate(speed) && is_moderate(turn) => (speed, turn),
            _ => return usage("joystick [SPEED TURN], in m/s and rad/s"),
        },
        _ => return usage("joystick [SPEED TURN], in m/s and rad/s"),
    };
    crate::screen::say!("drive with arrow keys or WASD ({speed} m/s, {turn} rad/s), space stops, q ends");
    let raw = Raw::begin()?;
    let start = Instant::now();
    let mut drive = Drive {
        session,
        speed,
        turn,
        pending: VecDeque::new(),
        sent: 0,
        failed: 0,
        last: String::new(),
    };
    let (mut stick, mut next) = (Stick::default(), Duration::ZERO);
    while !session.signals.stopped() {
        let wait = next.saturating_sub(start.elapsed());
        if event::poll(wait).map_err(Problem::failed)? {
            let Event::Key(key) = event::read().map_err(Problem::failed)? else {
                continue;
            };
            if key.kind == KeyEventKind::Release {
                continue;
            }
            let now = start.elapsed();
            match key.code {
                KeyCode::Up | KeyCode::Char('w') => stick.forward.press(1.0, now),
                KeyCode::Down | KeyCode::Char('s') => stick.forward.press(-1.0, now),
                KeyCode::Left | KeyCode::Char('a') => stick.turn.press(1.0, now),
                KeyCode::Right | KeyCode::Char('d') => stick.turn.press(-1.0, now),
                KeyCode::Char(' ') => {
                    stick.stop();
                    stick.wanted(now);
                    drive.send(0.0, 0.0);
                }
                KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => break,
                KeyCode::Char('q') | KeyCode::Esc => break,
                _ => {}
            }
            continue;
        }
        next = start.elapsed() + PERIOD;
        if let Some((forward, turn)) = stick.wanted(start.elapsed()) {
            drive.send(forward, turn);
        }
        drive.look();
    }
    drive.send(0.0, 0.0);
    let (sent, failed, stopped) = drive.finish();
    drop(raw);
    let fields = json!({ "sent": sent, "failed": failed, "last": stopped.to_string() });
    let text =
        format!("{sent} twists sent, {failed} not executed; the last one, which stops the robot: {stopped}");
    match stopped {
        Outcome::Executed => session.output.result(line, &text, fields),
        _ => return Err(Problem::Failed { text, fields }),
    }
    Ok(())
}

struct Drive<'a> {
    session: &'a Session,
    speed: f64,
    turn: f64,
    pending: VecDeque<Pending<Outcome>>,
    sent: u64,
    failed: u64,
    last: String,
}

impl Drive<'_> {
    fn send(&mut self, forward: f64, turn: f64) {
        let (x, z) = ((forward * self.speed) as f32, (turn * self.turn) as f32);
        let twist = Twist {
            header: None,
            linear: Some(Vector3 { x, y: 0.0, z: 0.0 }),
            angular: Some(Vector3 { x: 0.0, y: 0.0, z }),
        };
        self.pending.push_back(
            self.session
                .controller
                .send_within::<command::Twist>(&twist, self.session.expiry),
        );
        self.sent += 1;
        let last = stats::text::printable(&self.last);
        let mut out = crate::screen::raw();
        let _ = write!(out, "\r\x1b[K{x:5.2} m/s {z:5.2} rad/s  {last}");
        let _ = out.flush();
        while self.pending.len() > MOST_PENDING {
            self.take_first();
        }
    }

    /// Collects the outcomes that are known by now.
    fn look(&mut self) {
        while self.pending.front().is_some_and(Pending::is_ready) {
            self.take_first();
        }
    }

    fn take_first(&mut self) {
        if let Some(pending) = self.pending.pop_front() {
            self.note(&pending.wait());
        }
    }

    fn note(&mut self, outcome: &Outcome) {
        self.failed += u64::from(!outcome.is_executed());
        self.last = outcome.to_string().chars().take(60).collect();
    }

    /// Numbers of twists sent and failed, and the outcome of the last.
    fn finish(mut self) -> (u64, u64, Outcome) {
        while self.pending.len() > 1 {
            self.take_first();
        }
        let last = self.pending.pop_front().map_or(Outcome::Executed, Pending::wait);
        self.note(&last);
        (self.sent, self.failed, last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_held_key_drives_and_its_release_stops_once() {
        let mut stick = Stick::default();
        assert_eq!(stick.wanted(at(0)), None);
        stick.forward.press(1.0, at(10));
        // The terminal repeats the key after half a second, then every 30 ms.
        assert_eq!(stick.wanted(at(400)), Some((1.0, 0.0)));
        for ms in (510..1000).step_by(30) {
            stick.forward.press(1.0, at(ms));
        }
        stick.turn.press(-1.0, at(990));
        assert_eq!(stick.wanted(at(1000)), Some((1.0, -1.0)));
        // Released: the repeated key within 0.2 s, the tapped one within 0.6 s.
        assert_eq!(stick.wanted(at(1250)), Some((0.0, -1.0)));
        assert_eq!(stick.wanted(at(1600)), Some((0.0, 0.0)));
        assert_eq!(stick.wanted(at(1700)), None);
    }

    #[test]
    fn the_other_way_and_space_count_at_once() {
        let mut stick = Stick::default();
        stick.forward.press(1.0, at(0));
        stick.forward.press(-1.0, at(50));
        assert_eq!(stick.wanted(at(60)), Some((-1.0, 0.0)));
        stick.stop();
        assert_eq!(
            (stick.wanted(at(70)), stick.wanted(at(80))),
            (Some((0.0, 0.0)), None)
        );
    }
}
