//! Output of the robot's parts: lines of JSON, checked before use.

use crate::kit::line::shorten;
use crate::kit::processes::Says;
use serde::{Deserialize, Serialize};
use stats::Time;

/// Maximum number of images whose times a part keeps; more than in any trial.
pub(super) const MOST: usize = 10_000;

/// The camera's report at its end; the camera is the robot. Times are nanoseconds of CLOCK_MONOTONIC.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Camera {
    /// When the motion began.
    pub(super) start_ns: u64,
    /// Images published.
    pub(super) images: u64,
    /// Images for which the system had no memory.
    pub(super) refused: u64,
    /// The first image in which the red light can be recognized.
    pub(super) first: Option<First>,
    /// When the command to stop arrived.
    pub(super) command_ns: Option<u64>,
    /// Median time for drawing an image.
    pub(super) draw_ns: u64,
}

/// The first image with the red light.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct First {
    pub(super) sequence: u64,
    /// Taken after drawing, immediately before publishing.
    pub(super) stamp_ns: u64,
}

/// The report of a recognizer or the logger at its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Watcher {
    /// Images received.
    pub(super) images: u64,
    /// Time from stamp to receipt, of each image.
    pub(super) latency_ns: Vec<u64>,
    /// Time for recognition, of each image; the logger's is empty.
    pub(super) match_ns: Vec<u64>,
    /// Images in which the lamp was recognized.
    pub(super) hits: u64,
    /// The first of these.
    pub(super) first: Option<Hit>,
}

/// The first image in which a lamp was recognized.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Hit {
    pub(super) sequence: u64,
    pub(super) received_ns: u64,
    pub(super) recognized_ns: u64,
}

/// One line.
#[derive(Debug, PartialEq)]
pub(super) enum Line {
    Ready,
    Camera(Camera),
    Watcher(Watcher),
}

/// Output of one part.
#[derive(Debug, Default)]
pub(super) struct Said {
    pub(super) ready: bool,
    pub(super) camera: Option<Camera>,
    pub(super) watcher: Option<Watcher>,
}

impl Says for Said {
    type Rule = ();
    type Line = Line;

    fn longest((): ()) -> u64 {
        2 * 24 * MOST as u64 + 4096
    }

    fn parse(text: &str, (): ()) -> Result<Line, String> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Any {
            Camera(Camera),
            Watcher(Watcher),
        }
        match text.trim() {
            "ready" => Ok(Line::Ready),
            text => match serde_json::from_str(text) {
                Ok(Any::Camera(c)) => Ok(Line::Camera(c)),
                Ok(Any::Watcher(w)) => Ok(Line::Watcher(w)),
                Err(_) => Err(format!("it printed {:?}", shorten(text))),
            },
        }
    }

    fn hear(&mut self, _: Time, line: Line) {
        match line {
            Line::Ready => self.ready = true,
            Line::Camera(c) => self.camera = Some(c),
            Line::Watcher(w) => self.watcher = Some(w),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_lines_are_parsed_and_others_refused() {
        let watcher = r#"{"images": 2, "latency_ns": [1, 2], "match_ns": [], "hits": 0, "first": null}"#;
        let camera = r#"{"start_ns": 1, "images": 2, "refused": 0, "draw_ns": 3, "command_ns": null,
                         "first": {"sequence": 1, "stamp_ns": 9}}"#;
        let mut said = Said::default();
        for text in ["ready\n", watcher, camera] {
            let line = Said::parse(text, ()).expect(text);
            said.hear(Time::default(), line);
        }
        assert!(said.ready);
        assert_eq!(said.watcher.map(|w| w.latency_ns), Some(vec![1, 2]));
        assert_eq!(said.camera.and_then(|c| c.first).map(|f| f.stamp_ns), Some(9));
        for bad in ["", "done", "{}", r#"{"images": -1}"#] {
            assert!(Said::parse(bad, ()).is_err(), "{bad}");
        }
    }
}
