//! Statistics of the rows of one run.

use super::layout::Layout;
use super::rows::Rows;
use stats::{Histogram, Moments};

/// One run of a cell: the rows of all its senders.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// Number of files, one per sender.
    pub senders: u32,
    /// Messages received after the warm-up.
    pub received: u64,
    /// Round trips in ns.
    pub rtt: Histogram,
    /// Least possible round trips in ns of messages that were not received: until the log closed.
    lost: Moments,
    /// Round trips in ms by the message's number, including the warm-up.
    pub by_number: Vec<Moments>,
    /// Number of duplicate rows, which are ignored.
    pub repeated: u64,
    /// Number of invalid lines, which are ignored. Their messages have an unknown outcome: they count neither as
    /// received nor as lost.
    pub left_out: u64,
}

impl Run {
    /// Adds a sender.
    pub fn add(&mut self, rows: &Rows, layout: &Layout) {
        self.senders += 1;
        self.repeated += rows.repeated;
        self.left_out += rows.left_out;
        self.by_number
            .resize(layout.messages as usize, Moments::default());
        let closes = layout.closes_after.as_nanos() as f64;
        let last = rows.rows.iter().map(|r| r.sent).max().unwrap_or_default();
        let expected = i64::from(layout.messages - layout.warm_up);
        let mut without_row = expected.saturating_sub_unsigned(rows.left_out);
        for row in &rows.rows {
            let rtt = row.received.map(|r| r - row.sent);
            if let Some(rtt) = rtt
                && let Some(m) = self.by_number.get_mut(row.number as usize)
            {
                m.record(rtt as f64 / 1e6);
            }
            if row.number < layout.warm_up {
                continue;
            }
            without_row -= 1;
            match rtt {
                Some(rtt) => {
                    self.received += 1;
                    self.rtt.record(u64::try_from(rtt).unwrap_or(u64::MAX));
                }
                None => self.lost.record((last - row.sent) as f64 + closes),
            }
        }
        // Their time of sending is unknown, too: the last was sent this long before the log closed.
        for _ in 0..without_row.max(0) {
            self.lost.record(closes);
        }
    }

    /// Adds a sender without a file.
    pub fn add_silent(&mut self, layout: &Layout) {
        let repeated = self.repeated;
        self.add(&Rows::default(), layout);
        self.repeated = repeated;
    }

    /// Number of expected messages.
    pub fn expected(&self) -> u64 {
        self.received + self.lost.count()
    }

    /// Share of messages received.
    pub fn delivery(&self) -> f64 {
        self.received as f64 / self.expected().max(1) as f64
    }

    /// Mean round trip of the received messages, in ms; none if there are none.
    pub fn mean_ms(&self) -> Option<f64> {
        (!self.rtt.is_empty()).then(|| self.rtt.mean() / 1e6)
    }

    /// Mean round trip in ms if the missing messages had arrived when the log closed: a lower bound of the true mean.
    pub fn mean_at_least_ms(&self) -> f64 {
        let (received, lost) = (self.received as f64, self.lost.count() as f64);
        (self.rtt.mean() * received + self.lost.mean() * lost) / (received + lost).max(1.0) / 1e6
    }

    /// The round trip, in ms, within which the share `q` of all messages arrived; none if fewer arrived.
    pub fn quantile_ms(&self, q: f64) -> Option<f64> {
        let share = q / self.delivery().max(f64::MIN_POSITIVE);
        (share <= 1.0 && !self.rtt.is_empty()).then(|| self.rtt.quantile(share) as f64 / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows::Row;
    use super::*;

    fn layout() -> Layout {
        Layout::parse(
            "files: \"{hz}/*\"\npayload_bytes: 1\nmessages: 10\nwarm_up: 2\ncloses_after: 1s\n",
            "a",
        )
        .expect("a layout")
    }

    #[test]
    fn missing_messages_count_and_quantiles_cover_all_messages() {
        let rows = (0..9).map(|number| {
            let sent = i128::from(number) * 100_000_000;
            let ms = i128::from(number) * 1_000_000;
            Row {
                number,
                sent,
                received: (number < 8).then_some(sent + ms),
            }
        });
        let rows = Rows {
            rows: rows.collect(),
            ..Rows::default()
        };
        let mut run = Run::default();
        run.add(&rows, &layout());
        // 2 to 7 arrived, 8 has a row without an answer, 9 has none.
        assert_eq!((run.received, run.expected()), (6, 8));
        assert_eq!(run.mean_ms(), Some(4.5));
        // 8 was sent last: it and 9 took at least 1 s.
        assert!((run.mean_at_least_ms() - (27.0 + 2000.0) / 8.0).abs() < 1e-9);
        let median = run.quantile_ms(0.5).expect("more than half came");
        assert!((median - 5.0).abs() < 0.05, "the fourth of eight: {median}");
        assert_eq!(run.quantile_ms(0.99), None);
        assert_eq!(run.by_number[1].mean(), 1.0, "the warm-up is in the figure");
        run.add_silent(&layout());
        assert_eq!((run.senders, run.expected()), (2, 16));
        let cut = Rows { left_out: 1, ..rows };
        let mut run = Run::default();
        run.add(&cut, &layout());
        assert_eq!((run.received, run.expected()), (6, 7), "one may have come");
    }
}
