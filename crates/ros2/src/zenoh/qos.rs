//! A quality of service as part of a token, as rmw_zenoh writes it:
//! `reliability:durability:history,depth:deadline:lifespan:liveliness,lease`, durations as `seconds,nanoseconds`, and
//! an empty value for the default.

use bridge::nodes::Qos;
use bridge::nodes::policy::{AUTOMATIC, INFINITE, KEEP_LAST, RELIABLE, VOLATILE};

/// Default depth of rmw_zenoh.
const DEPTH: u64 = 42;
/// Highest number of a policy in `rmw/types.h`.
const MAX_POLICY: u64 = 5;

/// Formats it as in a token. Unset policies, and those left to the system, are written as the default.
pub(super) fn text(qos: &Qos) -> String {
    let policy = |value: u8, default: u8| number(value.into(), &[default.into(), 0]);
    let duration = |time: (u64, u64)| {
        let time = if time == (0, 0) { INFINITE } else { time };
        format!(
            "{},{}",
            number(time.0, &[INFINITE.0]),
            number(time.1, &[INFINITE.1])
        )
    };
    format!(
        "{}:{}:{},{}:{}:{}:{},{}",
        policy(qos.reliability, RELIABLE),
        policy(qos.durability, VOLATILE),
        policy(qos.history, KEEP_LAST),
        number(qos.depth, &[DEPTH, 0]),
        duration(qos.deadline),
        duration(qos.lifespan),
        policy(qos.liveliness, AUTOMATIC),
        duration(qos.lease),
    )
}

fn number(value: u64, defaults: &[u64]) -> String {
    if defaults.contains(&value) {
        String::new()
    } else {
        value.to_string()
    }
}

/// Reads it from a token; `None` if it is malformed. Policies left to the system become the default, as in `text`.
pub(super) fn read(text: &str) -> Option<Qos> {
    let mut parts = text.split(':');
    let mut part = || parts.next();
    let reliability = policy(part()?, RELIABLE)?;
    let durability = policy(part()?, VOLATILE)?;
    let (history, depth) = part()?.split_once(',')?;
    let deadline = duration(part()?)?;
    let lifespan = duration(part()?)?;
    let (liveliness, lease) = part()?.split_once(',')?;
    let out = Qos {
        history: policy(history, KEEP_LAST)?,
        reliability,
        durability,
        liveliness: policy(liveliness, AUTOMATIC)?,
        avoids_ros_names: false,
        depth: match value(depth, DEPTH)? {
            0 => DEPTH,
            depth => depth,
        },
        deadline,
        lifespan,
        lease: duration(lease)?,
    };
    part().is_none().then_some(out)
}

fn value(text: &str, default: u64) -> Option<u64> {
    if text.is_empty() {
        return Some(default);
    }
    // Reject signs, which `parse` accepts.
    let is_number = text.bytes().all(|b| b.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

fn policy(text: &str, default: u8) -> Option<u8> {
    match value(text, default.into())? {
        0 => Some(default),
        value => u8::try_from(value).ok().filter(|_| value <= MAX_POLICY),
    }
}

fn duration(text: &str) -> Option<(u64, u64)> {
    let (seconds, nanoseconds) = text.split_once(',')?;
    let time = (value(seconds, INFINITE.0)?, value(nanoseconds, INFINITE.1)?);
    Some(if time == (0, 0) { INFINITE } else { time })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bridge::nodes::policy::{BEST_EFFORT, KEEP_ALL, TRANSIENT_LOCAL};

    fn plain() -> Qos {
        Qos {
            history: KEEP_LAST,
            reliability: RELIABLE,
            durability: VOLATILE,
            liveliness: AUTOMATIC,
            avoids_ros_names: false,
            depth: DEPTH,
            deadline: INFINITE,
            lifespan: INFINITE,
            lease: INFINITE,
        }
    }

    #[test]
    fn texts_are_those_of_rmw_zenoh() {
        let sensor = Qos {
            reliability: BEST_EFFORT,
            depth: 5,
            ..plain()
        };
        let latched = Qos {
            durability: TRANSIENT_LOCAL,
            depth: 1,
            ..plain()
        };
        let timed = Qos {
            history: KEEP_ALL,
            deadline: (1, 5),
            lease: (2, 0),
            ..plain()
        };
        for (text_of, qos) in [
            ("::,:,:,:,,", plain()),
            ("::,10:,:,:,,", Qos { depth: 10, ..plain() }),
            ("2::,5:,:,:,,", sensor),
            (":1:,1:,:,:,,", latched),
            ("::2,:1,5:,:,2,0", timed),
        ] {
            assert_eq!(text(&qos), text_of);
            assert_eq!(read(text_of), Some(qos), "{text_of}");
        }
        // Policies that the bus does not state.
        assert_eq!(text(&Qos::default()), "::,:,:,:,,");
    }

    #[test]
    fn invalid_qos_is_refused() {
        for other in [
            "",
            ":",
            "::,:,:,:,",
            "::,:,:,:,,:",
            "::10:,:,:,,",
            "x::,:,:,:,,",
            "-1::,:,:,:,,",
            "+1::,:,:,:,,",
            "6::,:,:,:,,",
            "::,99999999999999999999:,:,:,,",
            "::,1:1:,:,,",
        ] {
            assert_eq!(read(other), None, "{other}");
        }
    }
}
