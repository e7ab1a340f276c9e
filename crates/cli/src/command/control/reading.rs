//! Reads the robot's telemetry.

use super::line::{self, Watch};
use super::session::{Done, PATIENCE, Problem, Session, TICK, kind_and_channel, usage};
use super::{body, kinds};
use remote::{Rate, TelemetryKind, telemetry};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use terminal::table::{Align, Table};

/// Kinds that are always subscribed to.
const ALWAYS: [&str; 2] = [telemetry::LogMessage::NAME, telemetry::PermissionRequest::NAME];

/// Prints the newest value: the last one that arrived if the kind is subscribed to, else requested.
pub(super) fn get(session: &Session, line: &str, words: &[&str]) -> Done {
    let (kind, channel, rest) = kind_and_channel(session, words)?;
    let full = only_full("get KIND [CHANNEL] [--full]", &rest)?;
    let watched = session.controller.watched().unwrap_or_default();
    let heard = watched.iter().any(|(name, c)| name == kind.name && *c == channel);
    match heard
        .then(|| (kind.latest)(&session.controller, channel))
        .flatten()
    {
        Some(bytes) => value(session, line, kind, channel, &bytes, full, json!({})),
        None => ask(session, line, kind, channel, full),
    }
}

/// Requests the newest value from the robot.
pub(super) fn request(session: &Session, line: &str, words: &[&str]) -> Done {
    let (kind, channel, rest) = kind_and_channel(session, words)?;
    let full = only_full("request KIND [CHANNEL] [--full]", &rest)?;
    ask(session, line, kind, channel, full)
}

fn only_full(form: &str, words: &[&str]) -> Result<bool, Problem> {
    match words {
        [] => Ok(false),
        ["--full"] => Ok(true),
        _ => usage(form),
    }
}

fn ask(session: &Session, line: &str, kind: &kinds::Telemetry, channel: u8, full: bool) -> Done {
    let asked = Instant::now();
    let fetched = (kind.fetch)(&session.controller, channel, PATIENCE);
    let ms = milliseconds(asked.elapsed());
    match fetched.map_err(Problem::failed)? {
        Some(bytes) => value(
            session,
            line,
            kind,
            channel,
            &bytes,
            full,
            json!({ "round_trip_ms": ms }),
        ),
        None => Err(Problem::failed(format_args!(
            "the robot has not set {} yet",
            kinds::short(kind.name)
        ))),
    }
}

/// Milliseconds, rounded to three decimals.
pub(super) fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

fn value(
    session: &Session,
    line: &str,
    kind: &kinds::Telemetry,
    channel: u8,
    bytes: &[u8],
    full: bool,
    mut fields: Value,
) -> Done {
    let value = body::to_json(&(kind.message)(), bytes).map_err(Problem::failed)?;
    let text = match session.output.json {
        true => String::new(),
        false => body::show(&value, full),
    };
    fields["kind"] = kind.name.into();
    fields["channel"] = channel.into();
    fields["value"] = value;
    session.output.result(line, &text, fields);
    Ok(())
}

/// Unsubscribes from a kind when `watch` ends.
struct Watching<'a>(&'a Session, &'a kinds::Telemetry, u8, bool);

impl Drop for Watching<'_> {
    fn drop(&mut self) {
        if !self.3 {
            (self.1.listen)(&self.0.controller, self.2, false);
        }
    }
}

/// Prints values as they arrive.
pub(super) fn watch(session: &Session, line: &str, words: &[&str]) -> Done {
    let (kind, channel, rest) = kind_and_channel(session, words)?;
    let Watch { most, patience, full } = line::watch(&rest).map_err(Problem::Usage)?;
    let listened = session.controller.watched().unwrap_or_default();
    let before = listened
        .iter()
        .any(|(name, c)| name == kind.name && *c == channel)
        || ALWAYS.contains(&kind.name);
    let values = (kind.watch)(&session.controller, channel);
    let _watching = Watching(session, kind, channel, before);
    let (mut shown, mut since) = (0, Instant::now());
    while shown < most && !session.signals.stopped() {
        let Some((bytes, info)) = values.next(TICK) else {
            if since.elapsed() < patience {
                continue;
            }
            let text = format!("no {} for {} s", kinds::short(kind.name), patience.as_secs_f64());
            return Err(Problem::failed(text));
        };
        since = Instant::now();
        shown += 1;
        value(
            session,
            line,
            kind,
            channel,
            &bytes,
            full,
            json!({ "sequence": info.sequence, "lost": info.lost }),
        )?;
    }
    Ok(())
}

/// Subscribes to a kind, so that `get` needs no request.
pub(super) fn listen(session: &Session, line: &str, words: &[&str]) -> Done {
    let (kind, channel, rest) = kind_and_channel(session, words)?;
    let on = match rest.as_slice() {
        [] => true,
        ["--off"] => false,
        _ => return usage("listen KIND [CHANNEL] [--off]"),
    };
    (kind.listen)(&session.controller, channel, on);
    let heard = session.controller.watched().unwrap_or_default();
    let names: Vec<_> = heard
        .iter()
        .map(|(name, channel)| format!("{} {channel}", kinds::short(name)))
        .collect();
    session.output.result(
        line,
        &format!("subscribed: {}", names.join(", ")),
        json!({ "heard": heard }),
    );
    Ok(())
}

/// Prints traffic counters.
pub(super) fn stats(session: &Session, line: &str) -> Done {
    let statistics = session.controller.statistics();
    let mut table = Table::new(&[
        ("", Align::Left),
        ("kind", Align::Left),
        ("messages", Align::Right),
        ("bytes", Align::Right),
        ("Hz", Align::Right),
        ("kB/s", Align::Right),
    ]);
    let mut rows = |direction: &str, rates: &BTreeMap<String, Rate>| {
        for (kind, rate) in rates {
            let (hz, kb_s) = (format!("{:.1}", rate.hz), format!("{:.2}", rate.kb_s));
            let (messages, bytes) = (rate.messages.to_string(), rate.bytes.to_string());
            table.row([direction.into(), kinds::short(kind), messages, bytes, hz, kb_s]);
        }
    };
    rows("sent", &statistics.sent);
    rows("received", &statistics.received);
    let mut text = table.lines();
    text.extend(
        statistics
            .dropped
            .iter()
            .map(|(reason, n)| format!("dropped: {n} {reason}")),
    );
    let json = |rates: &BTreeMap<String, Rate>| -> Value {
        let rate = |(kind, rate): (&String, &Rate)| {
            let fields = json!({ "messages": rate.messages, "bytes": rate.bytes, "rate_hz": rate.hz, "rate_kb_s": rate.kb_s });
            (kind.clone(), fields)
        };
        Value::Object(rates.iter().map(rate).collect())
    };
    let fields = json!({ "sent": json(&statistics.sent), "received": json(&statistics.received), "dropped": statistics.dropped });
    session.output.result(line, &text.join("\n"), fields);
    Ok(())
}
