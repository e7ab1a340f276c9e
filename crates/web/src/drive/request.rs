//! Requests of a page.

use super::fleet::Wish;
use crate::parse_json;
use serde_json::Value;

/// Bytes of a robot's name.
const MAX_NAME: usize = 256;

/// A message of a page.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Request {
    /// Drive this robot.
    Robot(String),
    /// Change the right to move.
    Right(Wish),
    /// Ask the operator who holds the right for it.
    Ask,
    /// Move.
    Drive(Moved),
    /// Stop, also for a page without the right to move.
    Stop {
        /// The page's number of the message.
        n: u64,
    },
    /// Stop all robots that pages of this server have the right to move.
    StopAll,
}

/// The controls that an operator holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Moved {
    /// The page's number of the message.
    pub(super) n: u64,
    /// The page's clock, in ms.
    pub(super) t: f64,
    /// Share of the highest speed, from -1 to 1.
    pub(super) forward: f64,
    /// Share of the highest turn to the left, from -1 to 1.
    pub(super) turn: f64,
}

/// Reads a message.
///
/// # Errors
/// A line that says what is wrong.
pub(super) fn read(bytes: &[u8]) -> Result<Request, String> {
    let request = parse_json(bytes).map_err(|error| error.to_string())?;
    let whole = |name: &str| {
        request[name]
            .as_u64()
            .ok_or(format!("{name} must be a whole number"))
    };
    let number = |name: &str| {
        let number = request[name].as_f64().filter(|n| n.is_finite());
        number.ok_or(format!("{name} must be a number"))
    };
    let share = |name: &str| match number(name)? {
        share if (-1.0..=1.0).contains(&share) => Ok(share),
        _ => Err(format!("{name} must be from -1 to 1")),
    };
    Ok(match request["op"].as_str().unwrap_or_default() {
        "robot" => match &request["robot"] {
            Value::String(name) if name.len() <= MAX_NAME => Request::Robot(name.clone()),
            _ => return Err(format!("robot must be a name of at most {MAX_NAME} bytes")),
        },
        "request" => Request::Right(Wish::Request),
        "release" => Request::Right(Wish::Release),
        "take_over" => Request::Right(Wish::TakeOver),
        // As text: a page's numbers are not exact beyond 2^53.
        "hand_over" => {
            let to = request["to"].as_str().and_then(|to| to.parse().ok());
            Request::Right(Wish::HandOver(
                to.ok_or("to must be an operator's number, as text")?,
            ))
        }
        "ask" => Request::Ask,
        "drive" => Request::Drive(Moved {
            n: whole("n")?,
            t: number("t")?,
            forward: share("forward")?,
            turn: share("turn")?,
        }),
        "stop" => Request::Stop { n: whole("n")? },
        "stop_all" => Request::StopAll,
        _ => {
            return Err(
                "op must be robot, request, release, take_over, ask, hand_over, drive, stop or stop_all"
                    .into(),
            );
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_requests_within_their_bounds_are_read() {
        let drive = br#"{"op":"drive","n":3,"t":12.5,"forward":-1,"turn":0.5,"seen_ms":40}"#;
        let moved = Moved {
            n: 3,
            t: 12.5,
            forward: -1.0,
            turn: 0.5,
        };
        assert_eq!(read(drive), Ok(Request::Drive(moved)));
        assert_eq!(read(br#"{"op":"stop","n":9}"#), Ok(Request::Stop { n: 9 }));
        assert_eq!(read(br#"{"op":"stop_all"}"#), Ok(Request::StopAll));
        let hand_over = Request::Right(Wish::HandOver(7));
        assert_eq!(read(br#"{"op":"hand_over","to":"7"}"#), Ok(hand_over));
        for bad in [
            &br#"{"op":"drive","n":3,"t":1,"forward":1.01,"turn":0}"#[..],
            br#"{"op":"drive","n":3,"t":1,"forward":0}"#,
            br#"{"op":"drive","n":-3,"t":1,"forward":0,"turn":0}"#,
            br#"{"op":"drive","n":3,"t":1e999,"forward":0,"turn":0}"#,
            br#"{"op":"drive","n":3,"t":"1","forward":0,"turn":0}"#,
            br#"{"op":"hand_over"}"#,
            br#"{"op":"hand_over","to":7}"#,
            br#"{"op":"robot","robot":1}"#,
            br#"{"op":"fly"}"#,
            br#"[]"#,
            b"{",
            b"",
        ] {
            assert!(read(bad).is_err(), "{}", String::from_utf8_lossy(bad));
        }
        let long = format!(r#"{{"op":"robot","robot":"{}"}}"#, "x".repeat(MAX_NAME + 1));
        assert!(read(long.as_bytes()).is_err());
    }
}
