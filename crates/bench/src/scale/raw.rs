//! Raw data: `id,sent_ns,recv_ns` rows, one file per sender.

use super::System;
use super::point::Point;
use std::fs;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The first line of a file.
pub(super) const HEAD: &str = "id,sent_ns,recv_ns";
/// Maximum length of a line: three numbers of 20 digits.
const LINE: u64 = 64;

/// A message, on the clock of its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// The message's number times the number of answers to each, plus the answer's number.
    pub(super) id: u64,
    pub(super) sent_ns: u64,
    /// `None`: not back when the log closed.
    pub(super) recv_ns: Option<u64>,
}

impl Row {
    pub(super) fn took_ns(&self) -> Option<u64> {
        Some(self.recv_ns?.saturating_sub(self.sent_ns))
    }
}

/// Writes a sender's rows.
pub(super) fn write(path: &Path, rows: impl Iterator<Item = Row>) -> io::Result<()> {
    let mut out = BufWriter::new(fs::File::create(path)?);
    writeln!(out, "{HEAD}")?;
    for Row { id, sent_ns, recv_ns } in rows {
        match recv_ns {
            Some(recv_ns) => writeln!(out, "{id},{sent_ns},{recv_ns}")?,
            None => writeln!(out, "{id},{sent_ns},")?,
        }
    }
    out.flush()
}

/// Reads a sender's rows, in order of their numbers, at most `most`.
///
/// # Errors
/// What is wrong with the file, with its name and line.
pub(super) fn read(path: &Path, most: u64) -> Result<Vec<Row>, String> {
    let wrong = |line: u64, what: &str| format!("{}:{line}: {what}", path.display());
    let file = fs::File::open(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let mut file = BufReader::new(file);
    let (mut rows, mut text) = (Vec::new(), String::new());
    for line in 1.. {
        text.clear();
        match (&mut file).take(LINE).read_line(&mut text) {
            Ok(0) if line > 1 => break,
            Ok(_) => {}
            Err(e) => return Err(wrong(line, &e.to_string())),
        }
        let Some(text) = text.strip_suffix('\n') else {
            return Err(wrong(line, "the line is too long, or the file was cut short"));
        };
        if line == 1 {
            if text != HEAD {
                return Err(wrong(1, &format!("it does not begin with {HEAD}")));
            }
            continue;
        }
        if rows.len() as u64 == most {
            return Err(wrong(line, &format!("more than the maximum of {most} rows")));
        }
        rows.push(parse(text).ok_or_else(|| wrong(line, "not id,sent_ns,recv_ns"))?);
    }
    rows.sort_by_key(|r| r.id);
    Ok(rows)
}

fn parse(line: &str) -> Option<Row> {
    let mut words = line.split(',');
    let row = Row {
        id: words.next()?.parse().ok()?,
        sent_ns: words.next()?.parse().ok()?,
        recv_ns: match words.next()? {
            "" => None,
            word => Some(word.parse().ok()?),
        },
    };
    words.next().is_none().then_some(row)
}

/// Returns the file of a sender in a run's folder.
pub(super) fn file(run: &Path, sender: u32) -> PathBuf {
    run.join(format!("sender{sender}.csv"))
}

/// The file that describes a data set for `ropewalk bench analyze`.
pub(super) const LAYOUT: &str = "layout.yaml";

/// Returns a data set's description.
pub(super) fn describe(point: &Point, system: System, warm_up: f64, linger: Duration) -> String {
    let rows = point.rows();
    format!(
        "# experiment {}, topology {:?}, {} of the processors; on the sender's clock, received is empty where nothing was back\n\
         files: \"{{hz}}hz/{{nodes}}nodes/run{{run}}/*.csv\"\ncolumns: [id, sent, received]\nunit: ns\npayload_bytes: {}\n\
         messages: {rows}\ncloses_after: {}s\nwarm_up: {}\nsenders: half\nsystem: {}\nmedium: {}\nhosts: {}\n",
        point.experiment,
        point.topology,
        point.cpu_share,
        point.bytes,
        linger.as_secs(),
        (rows as f64 * warm_up) as u64,
        system.name(),
        point.medium.name(system),
        point.hosts,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_as_they_were_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = file(folder.path(), 3);
        let rows = [
            Row {
                id: 0,
                sent_ns: 5,
                recv_ns: Some(9),
            },
            Row {
                id: 1,
                sent_ns: 7,
                recv_ns: None,
            },
        ];
        write(&path, rows.into_iter()).expect("writes");
        assert_eq!(read(&path, 2).expect("reads"), rows);
        assert_eq!((rows[0].took_ns(), rows[1].took_ns()), (Some(4), None));
        assert!(
            read(&path, 1)
                .expect_err("too many")
                .contains("sender3.csv:3: more than the maximum of 1 rows")
        );
    }

    #[test]
    fn a_description_counts_the_rows_of_a_sender() {
        let point = Point {
            topology: super::super::Topology::Full,
            ..super::super::point::example()
        };
        let text = describe(&point, System::Rospy, 0.1, Duration::from_secs(5));
        for line in [
            "messages: 800\n",
            "warm_up: 80\n",
            "closes_after: 5s\n",
            "system: rospy\nmedium: loopback\n",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
    }

    #[test]
    fn invalid_raw_data_is_refused_with_its_place() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x.csv");
        let long = "1".repeat(100);
        for (text, why) in [
            ("", ":1: "),
            ("id,sent\n", ":1: it does not begin"),
            ("id,sent_ns,recv_ns\n1,2\n", ":2: not id"),
            ("id,sent_ns,recv_ns\n1,2,3,4\n", ":2: not id"),
            ("id,sent_ns,recv_ns\n1,2,-3\n", ":2: not id"),
            ("id,sent_ns,recv_ns\n1,2,3\n4,5,6", ":3: the line is too long"),
            (
                &format!("id,sent_ns,recv_ns\n{long}\n"),
                ":2: the line is too long",
            ),
        ] {
            fs::write(&path, text).expect("writes");
            let error = read(&path, 10).expect_err(text);
            assert!(error.contains(why), "{text}: {error}");
        }
        fs::write(&path, b"id,sent_ns,recv_ns\n\xff\xfe\n").expect("writes");
        assert!(read(&path, 10).is_err());
        assert!(read(&folder.path().join("none.csv"), 10).is_err());
    }
}
