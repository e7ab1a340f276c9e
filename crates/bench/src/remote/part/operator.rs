//! The operator's process: twists.

use super::over::Over;
use super::{PartError, Plan, code, pause, tell};
use crate::kit::part::Gate;
use remote::{Controller, Expiry, Outcome, Pending, command, types};
use stats::Time;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

/// How long to wait after the last one of the twists on a schedule: longer than any expiry.
const LINGER: Duration = Duration::from_secs(90);

/// Sends twists. Prints for each the time until its execution was known, in ms, or the code of another outcome.
pub(super) fn twist(
    gate: &Gate,
    over: &Over,
    plan: Plan,
    (period, expiry): (Duration, Duration),
) -> Result<(), PartError> {
    let ends = over.open()?;
    let Some(controller) = ends.ready(gate, |_| {})? else {
        return Ok(());
    };
    let expiry = match expiry {
        Duration::ZERO => Expiry::Default,
        expiry => Expiry::After(expiry),
    };
    for n in 0..plan.warm_up {
        once(&controller, n, expiry);
    }
    let took = if period.is_zero() {
        one_by_one(gate, &controller, plan, expiry)
    } else {
        on_schedule(gate, &controller, plan, (period, expiry))?
    };
    tell(gate, &took)
}

fn one_by_one(gate: &Gate, controller: &Controller, plan: Plan, expiry: Expiry) -> Vec<f64> {
    let begin = clock::monotonic();
    let mut took = Vec::with_capacity(plan.count as usize);
    for n in 0..plan.count {
        let over = n > 0 && clock::monotonic().since(begin) > plan.budget();
        if over || gate.stopped() {
            break;
        }
        took.push(once(controller, n, expiry));
    }
    took
}

fn once(controller: &Controller, n: u64, expiry: Expiry) -> f64 {
    let sent = clock::monotonic();
    let outcome = controller
        .send_within::<command::Twist>(&random(n), expiry)
        .wait();
    value_of(&outcome, clock::monotonic().since(sent))
}

/// One every period, whether earlier ones are decided or not.
fn on_schedule(
    gate: &Gate,
    controller: &Controller,
    plan: Plan,
    (period, expiry): (Duration, Expiry),
) -> Result<Vec<f64>, PartError> {
    let begin = clock::monotonic();
    let mut sent = Vec::new();
    for n in 0..plan.count {
        let due = begin + period * n as u32;
        if due.since(begin) > plan.budget() || !clock::sleep_until(due, Duration::ZERO, || gate.stopped())? {
            break;
        }
        let now = clock::monotonic();
        sent.push((
            now,
            Awaited::new(controller.send_within::<command::Twist>(&random(n), expiry)),
        ));
    }
    let end = clock::monotonic() + LINGER;
    let done = |(sent, awaited): (Time, Awaited)| match awaited.wait(end) {
        Some((outcome, at)) => value_of(&outcome, at.since(sent)),
        None => code::UNREACHABLE,
    };
    Ok(sent.into_iter().map(done).collect())
}

/// Sends twists one by one until it is stopped. Prints for each when it was sent, in seconds of CLOCK_MONOTONIC, and
/// what [`twist`] prints.
pub(super) fn drive(gate: &Gate, over: &Over, rest: Duration) -> Result<(), PartError> {
    let ends = over.open()?;
    let Some(controller) = ends.ready(gate, |_| {})? else {
        return Ok(());
    };
    let mut values = Vec::new();
    for n in 0.. {
        values.push(clock::monotonic().as_nanos() as f64 / 1e9);
        values.push(once(&controller, n, Expiry::Default));
        if !pause(gate, rest) {
            break;
        }
    }
    tell(gate, &values)
}

fn value_of(outcome: &Outcome, took: Duration) -> f64 {
    match outcome {
        Outcome::Executed => took.as_secs_f64() * 1e3,
        Outcome::Expired(_) => code::EXPIRED,
        Outcome::Rejected(_) => code::REJECTED,
        Outcome::Unreachable { .. } => code::UNREACHABLE,
    }
}

/// A twist of small random numbers, as in the paper.
fn random(n: u64) -> types::Twist {
    let number = |salt: u64| {
        let mixed = (n * 6 + salt)
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
            .rotate_left(31)
            .wrapping_mul(0xBF58_476D_1CE4_E5B9);
        (mixed >> 40) as f32 / (1 << 24) as f32 - 0.5
    };
    let vector = |salt| types::Vector3 {
        x: number(salt),
        y: number(salt + 1),
        z: number(salt + 2),
    };
    types::Twist {
        header: None,
        linear: Some(vector(0)),
        angular: Some(vector(3)),
    }
}

/// An outcome that is read later, with the time of its arrival.
enum Awaited {
    Known(Outcome, Time),
    Waits(Pending<Outcome>, Arc<Came>),
}

#[derive(Default)]
struct Came(OnceLock<Time>);

impl Wake for Came {
    fn wake(self: Arc<Self>) {
        let _ = self.0.set(clock::monotonic());
    }
}

impl Awaited {
    fn new(mut pending: Pending<Outcome>) -> Awaited {
        let came = Arc::new(Came::default());
        let waker = Waker::from(came.clone());
        match Pin::new(&mut pending).poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(outcome) => Awaited::Known(outcome, clock::monotonic()),
            Poll::Pending => Awaited::Waits(pending, came),
        }
    }

    /// Returns the outcome, and when it was known.
    fn wait(self, end: Time) -> Option<(Outcome, Time)> {
        match self {
            Awaited::Known(outcome, at) => Some((outcome, at)),
            Awaited::Waits(pending, came) => {
                let outcome = pending.wait_for(end.since(clock::monotonic())).ok()?;
                let at = came.0.get().copied();
                Some((outcome, at.unwrap_or_else(clock::monotonic)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twists_are_small_and_differ() {
        let one = random(1);
        assert_ne!(one, random(2));
        let v = one.linear.expect("is there");
        assert!([v.x, v.y, v.z].iter().all(|n| n.abs() <= 0.5), "{v:?}");
    }
}
