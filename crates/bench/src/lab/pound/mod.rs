//! Pound's comparison (sections VI-A to VI-D) with real roscpp in the lab.
//!
//! Laser and image go from the first host to the last simultaneously. roscore runs on the first host; the paper does
//! not say where its roscore ran. The publisher and the subscriber are one node each, as with the paper's ros-profiler.

use crate::flows::play::Leg;
use crate::flows::{LASER, Sent};
use crate::kit::cell::{Metrics, Params, Target, Timing, Values};
use crate::kit::error::RunError;
use crate::kit::roscpp::{Peer, QUEUE, Source, Transport};
use crate::kit::site::{Ground, Site};
use crate::kit::tries::tried;
use serde_json::json;
use stats::Cell;

/// One system over a number of hops.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) transport: Transport,
    pub(crate) source: Source,
    pub(crate) scenario: &'static str,
    hops: u32,
    quick: bool,
}

impl Row {
    /// Returns all selected rows.
    pub(crate) fn all(transports: &[Transport], source: Source, quick: bool) -> Vec<Row> {
        let hops = [("wifi-1hop", 1), ("wifi-2hops", 2)];
        let each = |(scenario, hops)| {
            transports.iter().map(move |&transport| Row {
                transport,
                source,
                scenario,
                hops,
                quick,
            })
        };
        hops.into_iter().flat_map(each).collect()
    }

    fn flows(&self, run: u32) -> [Sent; 2] {
        crate::flows::pound(self.hops, self.quick, run)
    }

    pub(crate) fn shown(&self) -> String {
        let (hops, s) = (self.hops, if self.hops == 1 { "" } else { "s" });
        format!("{} over {hops} hop{s}", self.transport.name())
    }
}

/// Measures one system; returns a cell for each topic.
pub(crate) fn measure(
    row: &Row,
    runs: u32,
    peer: &Peer,
    ground: &Ground<'_>,
) -> Result<Vec<Cell<Params, Metrics>>, RunError> {
    let (mut results, mut tries) = (Vec::new(), 0);
    for run in 0..runs {
        results.push(tried(true, &mut tries, || trial(row, run, peer, ground))?);
    }
    let flows = row.flows(0);
    let mut cells = Vec::new();
    for (i, flow) in flows.iter().enumerate() {
        let of_topic: Vec<(Values, Timing)> = results
            .iter()
            .map(|(values, t)| (values[i].clone(), *t))
            .collect();
        let params = Params::from([
            ("check".into(), json!(format!("flow {}", flow.topic))),
            ("scenario".into(), json!(row.scenario)),
            ("hops".into(), json!(row.hops)),
            ("topic".into(), json!(flow.topic)),
            ("source".into(), json!(row.source.name())),
            ("message_bytes".into(), json!(flow.bytes)),
            ("sent_period_ms".into(), json!(flow.period_us as f64 / 1e3)),
            ("messages".into(), json!(flow.counted)),
            ("queue".into(), json!(QUEUE)),
            ("runs".into(), json!(runs)),
        ]);
        // The lab's test of faithfulness: the paper has 38.2 and 42.5 ms.
        let faithful = row.transport == Transport::Udpros && row.hops == 1 && flow.topic == LASER;
        let targets = if faithful {
            vec![
                Target::within("period_ms.std", 35.0, 41.0),
                Target::within("delay_ms.mean", 38.0, 46.0),
            ]
        } else {
            vec![]
        };
        let source = if faithful {
            "the Pound paper's Table I: 38.2 and 42.5 ms"
        } else {
            ""
        };
        let metrics = Metrics::new(&of_topic, tries, targets, source, true);
        cells.push(Cell {
            system: row.transport.name().to_owned(),
            params,
            metrics: metrics.ok_or_else(|| RunError::Failed("no run".into()))?,
        });
    }
    Ok(cells)
}

fn trial(row: &Row, run: u32, peer: &Peer, ground: &Ground<'_>) -> Result<(Vec<Values>, Timing), RunError> {
    const ENDS: [&str; 2] = ["robot", "base"];
    let site = Site::up(ground, row.scenario, None)?;
    let legs = row.flows(run).map(|flow| Leg {
        flow,
        from: ENDS[0].into(),
        to: ENDS[1].into(),
    });
    let played = peer.play(&row.shown(), row.transport, row.source, &site, &legs)?;
    let judged = std::iter::zip(&legs, &played.received).map(|(leg, log)| leg.flow.judge(log));
    Ok((judged.collect::<Result<_, _>>()?, played.timing))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_rows_are_there() {
        use crate::kit::paper::rows as paper;
        assert_eq!(Row::all(&[Transport::Udpros], Source::Periodic, false).len(), 2);
        assert_eq!(paper().len(), 32);
        let udp = paper().into_iter().find(|r| r.system == "UDP").expect("a row");
        assert_eq!(
            (udp.hops, udp.topic, udp.period_std_ms, udp.delay_mean_ms),
            (1, LASER, 38.2, 42.5)
        );
    }
}
