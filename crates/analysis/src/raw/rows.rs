//! One sender's rows: which message, when it was sent, when its answer came.

use super::layout::{Column, Layout};
use std::collections::BTreeSet;

/// Longest line that can be a row.
const MOST_LINE: usize = 4096;

/// What became of the messages of one sender.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    /// Those with a row, by the number of the message from 0 on.
    pub rows: Vec<Row>,
    /// Rows of messages that had one already, which are left out.
    pub repeated: u64,
}

/// One message that has a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// From 0 on.
    pub number: u32,
    /// When it was sent, in ns.
    pub sent: i128,
    /// When its answer came, in ns; none: not before the log closed.
    pub received: Option<i128>,
}

/// What is wrong with a row.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct RowError {
    /// From 1 on.
    pub line: usize,
    /// What is wrong, with the mend.
    pub problem: String,
}

impl Rows {
    /// Reads a sender's file.
    ///
    /// # Errors
    /// The first line that is no row, and why.
    pub fn parse(bytes: &[u8], layout: &Layout) -> Result<Rows, RowError> {
        let mut rows = Rows::default();
        let mut seen = BTreeSet::new();
        for (i, line) in bytes.split(|b| *b == b'\n').enumerate() {
            let at = |problem| RowError { line: i + 1, problem };
            if line.len() > MOST_LINE {
                return Err(at(format!(
                    "more than {MOST_LINE} bytes: this is no file of rows"
                )));
            }
            let line = std::str::from_utf8(line).map_err(|_| {
                at("this is no text: give files of rows, or a pattern that leaves it out".into())
            })?;
            let line = line.trim_end_matches('\r');
            if line.trim().is_empty() || line.starts_with('#') || (i == 0 && is_head(line, layout)) {
                continue;
            }
            let row = row(line, layout).map_err(at)?;
            if seen.insert(row.number) {
                rows.rows.push(row);
            } else {
                rows.repeated += 1;
            }
        }
        rows.rows.sort_unstable_by_key(|r| r.number);
        Ok(rows)
    }
}

/// A first line in which no column is a number names the columns.
fn is_head(line: &str, layout: &Layout) -> bool {
    let mut cells = line.split(layout.separator).map(str::trim);
    cells.all(|c| c.parse::<f64>().is_err()) && line.chars().any(char::is_alphabetic)
}

fn row(line: &str, layout: &Layout) -> Result<Row, String> {
    let cells: Vec<&str> = line.split(layout.separator).map(str::trim).collect();
    let cell = |column: Column| {
        let place = layout.columns.iter().position(|c| *c == column);
        place.and_then(|p| cells.get(p).copied()).unwrap_or_default()
    };
    // A row may end before its last column if that is empty.
    if cells.len() > layout.columns.len() || cells.len() + 1 < layout.columns.len() {
        return Err(format!(
            "{} columns instead of {}: `columns` and `separator` of the layout tell which there are",
            cells.len(),
            layout.columns.len()
        ));
    }
    let id = cell(Column::Id);
    let id: u64 = id
        .parse()
        .map_err(|_| format!("the id '{}' is no whole number", short(id)))?;
    let number = id.checked_sub(u64::from(layout.first_id));
    let number = number
        .and_then(|n| u32::try_from(n).ok())
        .filter(|n| *n < layout.messages);
    let number = number.ok_or_else(|| {
        format!(
            "the id {id} is not one of {} to {}: `messages` and `first_id` of the layout tell which there are",
            layout.first_id,
            u64::from(layout.first_id) + u64::from(layout.messages).saturating_sub(1)
        )
    })?;
    let sent = cell(Column::Sent);
    let sent =
        stamp(sent, layout)?.ok_or("the time of sending is empty: leave the row out if it was not sent")?;
    let received = stamp(cell(Column::Received), layout)?;
    if received.is_some_and(|r| r < sent) {
        return Err(
            "received before it was sent: both times must be of one clock, and `columns` in their order"
                .into(),
        );
    }
    Ok(Row {
        number,
        sent,
        received,
    })
}

/// A time in ns; none if it is empty or a word for that.
fn stamp(text: &str, layout: &Layout) -> Result<Option<i128>, String> {
    if matches!(
        text.to_ascii_lowercase().as_str(),
        "" | "-" | "nan" | "none" | "null" | "na"
    ) {
        return Ok(None);
    }
    let bad = || format!("'{}' is no time: write a number of {}", short(text), layout.unit);
    // Whole numbers exactly: nanoseconds since 1970 are more than a double holds.
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |t: &str| t.len() <= 20 && t.bytes().all(|b| b.is_ascii_digit());
    let (negative, whole) = whole.strip_prefix('-').map_or((false, whole), |w| (true, w));
    if !digits(whole) || !digits(fraction) || (whole.is_empty() && fraction.is_empty()) {
        return Err(bad());
    }
    let scale = layout.unit.nanoseconds();
    let whole: i128 = if whole.is_empty() {
        0
    } else {
        whole.parse().map_err(|_| bad())?
    };
    let below: f64 = if fraction.is_empty() {
        0.0
    } else {
        format!("0.{fraction}").parse().map_err(|_| bad())?
    };
    let ns = whole * i128::from(scale) + (below * scale as f64).round() as i128;
    Ok(Some(if negative { -ns } else { ns }))
}

fn short(text: &str) -> String {
    text.chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(more: &str) -> Layout {
        Layout::parse(
            &format!("files: \"{{hz}}/*.csv\"\npayload_bytes: 11\nmessages: 3\n{more}"),
            "layout.yaml",
        )
        .expect("a layout")
    }

    #[test]
    fn rows_with_and_without_answers() {
        let rows = Rows::parse(
            b"id,sent_ns,recv_ns\r\n0,100,350\r\n2,300,\r\n1,200,\n1,1,2\n\n",
            &layout(""),
        );
        let rows = rows.expect("rows");
        let short: Vec<_> = rows.rows.iter().map(|r| (r.number, r.sent, r.received)).collect();
        assert_eq!(short, [(0, 100, Some(350)), (1, 200, None), (2, 300, None)]);
        assert_eq!(rows.repeated, 1);
    }

    #[test]
    fn units_columns_and_separators_are_the_layouts() {
        let layout = layout("unit: s\ncolumns: [\"-\", received, sent, id]\nseparator: \";\"\nfirst_id: 1\n");
        let rows = Rows::parse(b"x;1478093245.125000001;1478093245.0;3", &layout).expect("rows");
        assert_eq!(
            rows.rows,
            [Row {
                number: 2,
                sent: 1_478_093_245_000_000_000,
                received: Some(1_478_093_245_125_000_001)
            }]
        );
    }

    #[test]
    fn what_is_no_row_is_told_with_its_line() {
        let layout = layout("");
        for (bad, line, says) in [
            (&b"0,1,2\n1"[..], 2, "1 columns instead of 3"),
            (b"0,1,2,3", 1, "4 columns instead of 3"),
            (b"0,1,2\nid,sent,received", 2, "no whole number"),
            (b"-1,1,2", 1, "no whole number"),
            (b"3,1,2", 1, "not one of 0 to 2"),
            (b"18446744073709551615,1,2", 1, "not one of 0 to 2"),
            (b"0,,2", 1, "time of sending is empty"),
            (b"0,5,4", 1, "before it was sent"),
            (b"0,1e3,4", 1, "is no time: write a number of ns"),
            (b"0,.,4", 1, "is no time"),
            (b"0,--1,4", 1, "is no time"),
            (b"0,123456789012345678901,4", 1, "is no time"),
            (b"\xff\xfe", 1, "no text"),
            (&[b'7'; 5000], 1, "no file of rows"),
        ] {
            let error = Rows::parse(bad, &layout).expect_err("refused");
            assert_eq!(error.line, line, "{error}");
            assert!(error.to_string().contains(says), "{error}");
        }
        assert_eq!(Rows::parse(b"", &layout), Ok(Rows::default()));
    }
}
