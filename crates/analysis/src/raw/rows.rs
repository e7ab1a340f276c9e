//! Rows of one sender: number of the message, time of sending, time of the answer.

use super::layout::{Column, Layout};
use std::collections::BTreeSet;

/// Longest line of a row.
const MOST_LINE: usize = 4096;
/// Number of rows per invalid line that is ignored. With more invalid lines, the layout is wrong rather than the data.
const ROWS_TO_A_BAD_LINE: usize = 100;

/// Outcomes of one sender's messages.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    /// Messages with a row, by their number from 0.
    pub rows: Vec<Row>,
    /// Number of duplicate rows, which are ignored.
    pub repeated: u64,
    /// Number of invalid lines, which are ignored. Nothing is known about one message for each.
    pub left_out: u64,
    /// The first invalid line.
    pub first_left_out: Option<RowError>,
}

/// One message that has a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// From 0.
    pub number: u32,
    /// When it was sent, in ns.
    pub sent: i128,
    /// Time at which its answer arrived, in ns; none if it did not arrive before the log closed.
    pub received: Option<i128>,
}

/// What is wrong with a row.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct RowError {
    /// From 1.
    pub line: usize,
    /// What is wrong, and how to fix it.
    pub problem: String,
}

impl Rows {
    /// Reads a sender's file. A writer that was killed leaves a truncated last line without a line end. Such a line is
    /// ignored, as are invalid lines if there are a hundred rows for each.
    ///
    /// # Errors
    /// The first invalid line, and why, if there are too many.
    pub fn parse(bytes: &[u8], layout: &Layout) -> Result<Rows, RowError> {
        let mut rows = Rows::default();
        let mut seen = BTreeSet::new();
        let (mut head, mut short, mut bad) = (false, false, 0);
        let mut lines = bytes.split(|b| *b == b'\n').enumerate().peekable();
        while let Some((i, line)) = lines.next() {
            let is_cut = lines.peek().is_none();
            let row = match Line::read(line, i == 0, layout) {
                Ok(Line::Nothing) => continue,
                Ok(Line::Head) => {
                    head = true;
                    continue;
                }
                Ok(Line::Row(_, true)) if is_cut && !short => {
                    Err("it is cut off, without its last column".to_owned())
                }
                Ok(Line::Row(row, is_short)) => {
                    short |= is_short;
                    Ok(row)
                }
                Err(problem) => {
                    bad += usize::from(!is_cut);
                    Err(problem)
                }
            };
            match row {
                Ok(row) if seen.insert(row.number) => rows.rows.push(row),
                Ok(_) => rows.repeated += 1,
                Err(problem) => {
                    rows.left_out += 1;
                    let error = RowError { line: i + 1, problem };
                    rows.first_left_out.get_or_insert(error);
                }
            }
        }
        let is_foreign = rows.rows.is_empty() && !head;
        if (is_foreign || bad * ROWS_TO_A_BAD_LINE > rows.rows.len())
            && let Some(error) = rows.first_left_out
        {
            return Err(error);
        }
        rows.rows.sort_unstable_by_key(|r| r.number);
        Ok(rows)
    }
}

/// Kind of a line.
enum Line {
    Nothing,
    /// Names of the columns.
    Head,
    /// A row, and whether its last column is missing.
    Row(Row, bool),
}

impl Line {
    fn read(line: &[u8], is_first: bool, layout: &Layout) -> Result<Line, String> {
        if line.len() > MOST_LINE {
            return Err(format!(
                "the line has more than {MOST_LINE} bytes: this is not a file of rows"
            ));
        }
        let line = std::str::from_utf8(line).map_err(|_| {
            "this is not text: give files of rows, or a pattern that leaves it out".to_owned()
        })?;
        let line = line.trim_end_matches('\r');
        if line.trim().is_empty() || line.starts_with('#') {
            return Ok(Line::Nothing);
        }
        if is_first && is_head(line, layout) {
            return Ok(Line::Head);
        }
        let is_short = line.split(layout.separator).count() < layout.columns.len();
        row(line, layout).map(|row| Line::Row(row, is_short))
    }
}

/// A first line without a number names the columns.
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
            "the line has {} columns instead of {}: `columns` and `separator` of the layout set the columns",
            cells.len(),
            layout.columns.len()
        ));
    }
    let id = cell(Column::Id);
    let id: u64 = id
        .parse()
        .map_err(|_| format!("the id '{}' is not a whole number", short(id)))?;
    let number = id.checked_sub(u64::from(layout.first_id));
    let number = number
        .and_then(|n| u32::try_from(n).ok())
        .filter(|n| *n < layout.messages);
    let number = number.ok_or_else(|| {
        format!(
            "the id {id} is not one of {} to {}: `messages` and `first_id` of the layout set the range",
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
            "the message was received before it was sent: take both times from one clock, and name \
             `columns` in their order"
                .into(),
        );
    }
    Ok(Row {
        number,
        sent,
        received,
    })
}

/// A time in ns; none if it is empty or marked as missing.
fn stamp(text: &str, layout: &Layout) -> Result<Option<i128>, String> {
    if matches!(
        text.to_ascii_lowercase().as_str(),
        "" | "-" | "nan" | "none" | "null" | "na"
    ) {
        return Ok(None);
    }
    let bad = || {
        format!(
            "'{}' is not a time: write a number of {}",
            short(text),
            layout.unit
        )
    };
    // Whole numbers are exact: nanoseconds since 1970 exceed the precision of a double.
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
    fn invalid_rows_are_reported_with_their_line() {
        let layout = layout("");
        for (bad, line, says) in [
            (&b"0,1,2\n1\n"[..], 2, "1 columns instead of 3"),
            (b"0,1,2,3", 1, "4 columns instead of 3"),
            (b"0,1,2\nid,sent,received\n", 2, "not a whole number"),
            (b"-1,1,2", 1, "not a whole number"),
            (b"3,1,2", 1, "not one of 0 to 2"),
            (b"18446744073709551615,1,2", 1, "not one of 0 to 2"),
            (b"0,,2", 1, "time of sending is empty"),
            (b"0,5,4", 1, "before it was sent"),
            (b"0,1e3,4", 1, "is not a time: write a number of ns"),
            (b"0,.,4", 1, "is not a time"),
            (b"0,--1,4", 1, "is not a time"),
            (b"0,123456789012345678901,4", 1, "is not a time"),
            (b"\xff\xfe", 1, "not text"),
            (&[b'7'; 5000], 1, "not a file of rows"),
        ] {
            let error = Rows::parse(bad, &layout).expect_err("refused");
            assert_eq!(error.line, line, "{error}");
            assert!(error.to_string().contains(says), "{error}");
        }
        assert_eq!(Rows::parse(b"", &layout), Ok(Rows::default()));
    }

    #[test]
    fn a_last_line_that_is_cut_off_anywhere_costs_itself_alone() {
        let layout = layout("");
        let whole = "id,sent_ns,recv_ns\n0,1478093245000000000,1478093245004000000\n1,1478093245010000000,1478093245013000000";
        let from = whole.rfind('\n').expect("lines") + 1;
        for end in from + 1..whole.len() {
            let rows = Rows::parse(&whole.as_bytes()[..end], &layout).expect(&whole[from..end]);
            let cut = &whole[from..end];
            // The text after the last separator may be the whole of an empty column.
            match cut.strip_suffix(',').is_some_and(|c| c.contains(',')) {
                true => assert_eq!((rows.rows.len(), rows.rows[1].received), (2, None), "{cut}"),
                false => {
                    let first = rows.first_left_out.expect(cut);
                    assert_eq!((rows.rows.len(), rows.left_out, first.line), (1, 1, 3), "{cut}");
                }
            }
        }
        assert_eq!(
            Rows::parse(whole.as_bytes(), &layout).map(|r| r.rows.len()),
            Ok(2)
        );
        // Only the head and a truncated line, or zeros from a file system that lost the end.
        for (bytes, rows) in [(&b"id,sent,received\n0,14"[..], 0), (b"0,1,2\n\0\0\0\0", 1)] {
            let read = Rows::parse(bytes, &layout).expect("rows");
            assert_eq!((read.rows.len(), read.left_out), (rows, 1));
        }
        // Writers that omit an empty last column may end without a line end.
        let read = Rows::parse(b"0,1\n1,2", &layout).expect("rows");
        assert_eq!((read.rows.len(), read.left_out), (2, 0));
    }

    #[test]
    fn a_bad_line_among_a_hundred_rows_costs_itself_alone() {
        let text = "files: \"{hz}/*.csv\"\npayload_bytes: 11\nmessages: 300\n";
        let layout = Layout::parse(text, "layout.yaml").expect("a layout");
        let line = |i: usize| format!("{i},{i}0,{i}5\n");
        let with = |bad: &[usize]| {
            let lines = (0..200).map(|i| {
                if bad.contains(&i) {
                    "x,\0\n".into()
                } else {
                    line(i)
                }
            });
            Rows::parse(lines.collect::<String>().as_bytes(), &layout)
        };
        let rows = with(&[70]).expect("rows");
        assert_eq!((rows.rows.len(), rows.left_out), (199, 1));
        assert_eq!(rows.first_left_out.map(|e| e.line), Some(71));
        assert_eq!(with(&[70, 80]).expect_err("too many").line, 71);
    }
}
