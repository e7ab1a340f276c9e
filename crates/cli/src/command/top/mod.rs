//! `ropewalk top`: a running link, live.

mod screen;
mod view;

use super::link::operate::{Running, Which};
use crate::failure::{Failure, OrFail, Outcome};
use crate::signals::Signals;
use clap::Args;
use observe::{LinkState, View};
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Show a running link of this host, live
///
/// Shows peers, topics, losses by reason, and use of the air. Keys: arrows
/// select a topic, + and - change its send priority by 1 (> and < by 10),
/// q ends. Without a terminal, prints a plain table at each interval; --json
/// prints a line instead:
///
///   ropewalk top --json --every 5 | jq '.topics[] | {topic, sent_hz, drops}'
///
/// Delays are measured where a topic is received. They are only as accurate as
/// the agreement of the two hosts' clocks.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Options {
    #[command(flatten)]
    which: Which,
    /// Seconds between two updates.
    #[arg(long, default_value_t = 1.0, value_parser = interval)]
    every: f64,
    /// Print a line of JSON for each interval.
    #[arg(long)]
    json: bool,
    /// End after this many updates.
    #[arg(short = 'n', long = "count", value_parser = crate::numbers::count)]
    count: Option<u64>,
}

fn interval(text: &str) -> Result<f64, String> {
    let good = text.parse().ok().filter(|s: &f64| (0.2..=3600.0).contains(s));
    good.ok_or_else(|| "give 0.2 to 3600 seconds".into())
}

/// Runs the command until the user or a signal ends it.
pub(crate) fn run(options: &Options) -> Outcome {
    let signals = Signals::watch().or_job("watching signals")?;
    let running = Running::find(&options.which)?;
    let mut source = Source {
        before: running.observed()?,
        running,
        every: Duration::from_secs_f64(options.every),
        next: Instant::now(),
        left: options.count,
    };
    source.next += source.every;
    let terminal = crate::screen::raw().is_terminal() && std::io::stdin().is_terminal();
    if terminal && !options.json {
        return screen::show(&mut source, &signals);
    }
    let mut out = crate::screen::stdout();
    while !signals.stopped() && !source.is_over() {
        std::thread::sleep(Duration::from_millis(20).min(source.time_left()));
        let Some(view) = source.renewed()? else {
            continue;
        };
        let written = if options.json {
            writeln!(out, "{}", serde_json::to_string(&view).or_job("writing JSON")?)
        } else {
            writeln!(out, "{}\n", view::plain(&view))
        };
        if written.is_err() {
            break;
        }
    }
    Ok(())
}

/// Source of the updates.
struct Source {
    running: Running,
    before: LinkState,
    every: Duration,
    next: Instant,
    left: Option<u64>,
}

impl Source {
    /// The next update, once it is due.
    fn renewed(&mut self) -> Result<Option<View>, Failure> {
        if self.is_over() || self.time_left() > Duration::ZERO {
            return Ok(None);
        }
        // Skips updates that are late.
        self.next = (self.next + self.every).max(Instant::now());
        let now = self.running.observed()?;
        let view = View::between(&self.before, &now);
        self.before = now;
        self.left = self.left.map(|n| n.saturating_sub(1));
        Ok(Some(view))
    }

    fn time_left(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now())
    }

    fn is_over(&self) -> bool {
        self.left == Some(0)
    }
}
