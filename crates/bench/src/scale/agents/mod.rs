//! Real machines: `ropewalk bench agent`.
//!
//! A coordinator reaches a program on each machine through a command such as ssh, and communicates with it through that
//! command's input and output, one line of JSON at a time (`protocol`). Either end checks every line. An agent starts
//! the nodes and the link daemon of its machine as the coordinator would locally, passes their output and usage on, and
//! ends all of them when its input ends or is silent. Its parent process removes what a killed agent
//! leaves (decision 240).

mod agent;
mod executor;
mod fleet;
mod inbox;
mod launcher;
mod lines;
mod machine;
mod nodes_there;
mod options;
mod parent;
mod protocol;
mod reports;

pub use executor::{Work, work};
pub(super) use fleet::Agents;
pub(super) use nodes_there::trial;
pub use options::Options;
pub use parent::serve;

use super::tools::Tools;
use super::{Options as Scale, Outcome};
use crate::kit::error::Error;

/// Measures as [`super::run`] does, on the machines of `options`, with the options `scale`. Blocks, and can be stopped,
/// in the same way.
///
/// # Errors
/// [`Error`]; if a machine cannot be reached, it says how to fix that.
pub fn run(options: &Options, scale: &Scale, stopped: &dyn Fn() -> bool) -> Result<Outcome, Error> {
    super::run_with(scale, || {
        let agents = Agents::reach(options, scale.peers.as_ref(), stopped)?;
        Tools::there(scale, agents, stopped)
    })
}

/// A line of either end from a fuzzer: it is parsed, and then written and parsed again with the same result, or refused
/// with an error of one line.
pub(crate) fn fuzz(data: &[u8]) {
    use protocol::{LONGEST, Line, Report, written};
    let one_line = |why: String| assert!(why.lines().count() <= 1 && why.len() < 8000, "{why}");
    let mut lines = lines::Lines::new(LONGEST);
    let (head, tail) = data.split_at(data.len() / 2);
    let mut state = reports::State::default();
    for piece in [head, tail, b"\n"] {
        lines.push(piece);
        while let Ok(Some(line)) = lines.next() {
            match Line::parse(&line) {
                Err(why) => one_line(why),
                Ok(line) => assert!(Line::parse(written(&line).trim_end().as_bytes()).is_ok()),
            }
            match Report::parse(&line) {
                Err(why) => one_line(why),
                Ok(report) => {
                    assert!(Report::parse(written(&report).trim_end().as_bytes()).is_ok());
                    if let Err(why) = state.hear(report) {
                        one_line(why);
                    }
                    state.begin(1, 4);
                }
            }
        }
    }
}
