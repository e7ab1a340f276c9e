//! Decides when the next message is published: the player's clock, which stops during a pause, and `/clock`, which
//! follows it.

use super::keys::Keys;
use crate::failure::{Failure, OrFail};
use crate::signals::Signals;
use ropewalk::{Flavour, Node, Publisher, Registry};
use stats::Time;
use std::io::IsTerminal;
use std::time::Duration;

/// Shortest wait for the next message that is announced.
const LONG: Duration = Duration::from_secs(10);
/// Longest time until keys and signals are noticed.
const CHECK: Duration = Duration::from_millis(100);

/// Keys that a user at a terminal can press.
pub(super) const HELP: &str = "space: pause or continue; s: play only the next message";

/// The player's clock, and its state while it waits.
pub(super) struct Stage<'a> {
    signals: &'a Signals,
    keys: Option<Keys>,
    clock: Option<SimulatedTime>,
    speed: f64,
    /// How far the player's clock is ahead of this host's, in nanoseconds.
    ahead: i128,
    /// Time of the player's clock during a pause.
    paused: Option<Time>,
    step: bool,
    /// When the previous message was recorded.
    latest: Option<Time>,
    progress: Progress,
}

impl<'a> Stage<'a> {
    pub(super) fn new(
        signals: &'a Signals,
        clock: Option<SimulatedTime>,
        speed: f64,
        total: Option<u64>,
    ) -> Self {
        Stage {
            signals,
            keys: Keys::open(),
            clock,
            speed,
            ahead: 0,
            paused: None,
            step: false,
            latest: None,
            progress: Progress::new(total),
        }
    }

    /// Whether keys control the player.
    pub(super) fn has_keys(&self) -> bool {
        self.keys.is_some()
    }

    /// The player's time.
    pub(super) fn now(&self) -> Time {
        self.paused
            .unwrap_or_else(|| shifted(clock::monotonic(), self.ahead))
    }

    /// Pauses or continues.
    pub(super) fn toggle(&mut self) {
        match self.paused.take() {
            None => self.paused = Some(self.now()),
            Some(at) => self.ahead = i128::from(at.0) - i128::from(clock::monotonic().0),
        }
    }

    /// Waits until the message recorded at `recorded` is due by the player's clock; false if the user stopped it.
    pub(super) fn wait(&mut self, due: Time, recorded: Time) -> Result<bool, Failure> {
        self.announce(due, recorded);
        while !self.signals.stopped() {
            self.obey()?;
            let (now, wall) = (self.now(), clock::monotonic());
            let mut until = wall + CHECK;
            if let Some(clock) = &mut self.clock {
                let left = Duration::from_secs_f64(due.since(now).as_secs_f64() * self.speed);
                until = until.min(clock.tick(wall, recorded - left)?);
            }
            if std::mem::take(&mut self.step) {
                // The clock stops at the message's time, so that the next one keeps its distance.
                self.paused = self.paused.map(|at| at.max(due));
                return Ok(true);
            }
            if self.paused.is_none() && now >= due {
                return Ok(true);
            }
            if self.paused.is_none() {
                until = until.min(shifted(due, -self.ahead));
            }
            let mut fds: Vec<_> = self.keys.iter().map(Keys::poll).collect();
            clock::wait(&mut fds, Some(until), Duration::ZERO).or_job("waiting")?;
        }
        Ok(false)
    }

    /// Shows the progress.
    pub(super) fn show(&mut self, played: u64, at: Duration) {
        self.progress.show(played, at, self.paused.is_some());
    }

    /// Clears the progress line.
    pub(super) fn end(&self) {
        self.progress.end();
    }

    fn obey(&mut self) -> Result<(), Failure> {
        let Some(keys) = &self.keys else { return Ok(()) };
        for key in keys.pressed().or_job("reading keys")? {
            match key {
                b' ' => self.toggle(),
                b's' if self.paused.is_some() => self.step = true,
                b's' => {
                    self.toggle();
                    self.step = true;
                }
                _ => continue,
            }
            self.progress.now();
        }
        Ok(())
    }

    /// Announces a long wait.
    fn announce(&mut self, due: Time, recorded: Time) {
        let before = self.latest.replace(recorded);
        if let Some(before) = before
            && due.since(self.now()) > LONG
        {
            self.progress.end();
            crate::screen::tell!(
                "no message was recorded for {}; the next one follows in {} (--skip-gaps shortens such gaps)",
                long(recorded.since(before)),
                long(due.since(self.now()))
            );
        }
    }
}

fn shifted(time: Time, by: i128) -> Time {
    Time(u64::try_from((i128::from(time.0) + by).max(0)).unwrap_or(u64::MAX))
}

/// A long time, for people.
fn long(time: Duration) -> String {
    let s = time.as_secs_f64();
    let units = [
        (365.25 * 86_400.0, "years"),
        (86_400.0, "days"),
        (3_600.0, "hours"),
        (60.0, "minutes"),
    ];
    let unit = units.into_iter().find(|(unit, _)| s >= 2.0 * unit);
    unit.map_or_else(
        || format!("{s:.1} s"),
        |(unit, name)| format!("{:.1} {name}", s / unit),
    )
}

/// The recording's time on `/clock`, for nodes that use simulated time.
pub(super) struct SimulatedTime {
    publisher: Publisher,
    flavour: Flavour,
    period: Duration,
    next: Time,
}

impl SimulatedTime {
    /// Its topic.
    pub(super) const TOPIC: &str = "/clock";

    pub(super) fn new(node: &Node, flavour: Flavour, hz: f64) -> Result<Self, Failure> {
        let schema = Registry::new(flavour)
            .schema("rosgraph_msgs/Clock")
            .or_job("/clock")?;
        Ok(SimulatedTime {
            publisher: node
                .dynamic_publisher(Self::TOPIC, &schema)
                .or_job("publishing")?,
            flavour,
            period: Duration::from_secs_f64(1.0 / hz),
            next: Time::ZERO,
        })
    }

    /// Publishes the recorded time `at` if it is due, and returns when the next one is due, by this host's clock.
    fn tick(&mut self, wall: Time, at: Time) -> Result<Time, Failure> {
        if wall >= self.next {
            let word = |n: u64| u32::try_from(n).unwrap_or(u32::MAX).to_le_bytes();
            let time = [word(at.0 / 1_000_000_000), word(at.0 % 1_000_000_000)].concat();
            let published = match self.flavour {
                Flavour::Ros1 => self.publisher.publish_ros1(&time),
                Flavour::Ros2 => self.publisher.publish_cdr(&[&[0, 1, 0, 0], &time[..]].concat()),
            };
            published.or_job("publishing /clock")?;
            self.next = (self.next + self.period).max(wall);
        }
        Ok(self.next)
    }
}

/// Progress line on the terminal.
struct Progress {
    /// Messages of the recording; none if it is repeated.
    total: Option<u64>,
    shown: Time,
    terminal: bool,
}

impl Progress {
    fn new(total: Option<u64>) -> Self {
        Progress {
            total,
            shown: clock::monotonic(),
            terminal: std::io::stderr().is_terminal(),
        }
    }

    /// Makes the next call of `show` draw at once.
    fn now(&mut self) {
        self.shown = Time::ZERO;
    }

    fn show(&mut self, played: u64, at: Duration, paused: bool) {
        let now = clock::monotonic();
        if self.terminal && now.since(self.shown) > Duration::from_millis(200) {
            self.shown = now;
            let paused = if paused { "paused " } else { "" };
            let total = self.total.map(|total| format!(" of {total}")).unwrap_or_default();
            crate::screen::draw(&format!(
                "\r\x1b[K{:.1} s, {played}{total} messages {paused}",
                at.as_secs_f64()
            ));
        }
    }

    fn end(&self) {
        if self.terminal {
            crate::screen::draw("\r\x1b[K");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_times_are_printed_in_a_fitting_unit() {
        assert_eq!(long(Duration::from_secs(1_600_000_000)), "50.7 years");
        assert_eq!(long(Duration::from_secs(90 * 60)), "90.0 minutes");
        assert_eq!(long(Duration::from_millis(12_300)), "12.3 s");
    }
}
