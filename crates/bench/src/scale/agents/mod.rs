//! Real machines: `ropewalk bench agent`.
//!
//! A coordinator reaches a program on each machine through a command such as ssh, and speaks with it through that command's
//! input and output, a line of JSON at a time (`protocol`). Whatever a line says is checked by either end. An agent starts the
//! nodes and the link daemon of its machine as the coordinator would its own, tells what they say and use, and ends all of it
//! when its input ends or is silent; above it is a keeper, which clears away what an agent leaves that was killed.

mod agent;
mod board;
mod cast;
mod crowd;
mod inbox;
mod keeper;
mod lines;
mod machine;
mod options;
mod protocol;
mod seat;
mod worker;

pub(super) use cast::trial;
pub(super) use crowd::Agents;
pub use keeper::serve;
pub use options::Options;
pub use worker::{Work, work};

use super::tools::Tools;
use super::{Options as Scale, Outcome};
use crate::ipc::Error;

/// Measures as [`super::run`] does, on the machines of `options`; `scale` is what these say that it is. Blocks, and can be stopped,
/// as that.
///
/// # Errors
/// [`Error`]; what keeps a machine from being reached is told with the mend.
pub fn run(options: &Options, scale: &Scale, stopped: &dyn Fn() -> bool) -> Result<Outcome, Error> {
    super::run_with(scale, || {
        let agents = Agents::reach(options, scale.peers.as_ref(), stopped)?;
        Tools::there(scale, agents, stopped)
    })
}

/// A line of either end, as a fuzzer gives it: it is understood, and then it can be written and understood again, or it is
/// refused in one line for people.
pub(crate) fn fuzz(data: &[u8]) {
    use protocol::{LONGEST, Line, Report, written};
    let one_line = |why: String| assert!(why.lines().count() <= 1 && why.len() < 8000, "{why}");
    let mut lines = lines::Lines::new(LONGEST);
    let (head, tail) = data.split_at(data.len() / 2);
    let mut state = board::State::default();
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
