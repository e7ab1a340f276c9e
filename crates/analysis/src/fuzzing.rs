//! Entry points of the fuzz targets. Not part of the interface.

use crate::model;
use crate::plan::{HostCosts, Known, System, Trace};
use crate::raw::layout::Layout;
use crate::raw::rows::Rows;
use crate::report::{Document, html};
use std::collections::BTreeMap;

/// A layout, a line of `---`, and rows: any bytes give rows or an error of one line.
pub fn raw(data: &[u8]) {
    let at = data.windows(5).position(|w| w == b"\n---\n");
    let (layout, rows) = at.map_or((data, &[][..]), |at| (&data[..at + 1], &data[at + 5..]));
    let Ok(text) = std::str::from_utf8(layout) else {
        return;
    };
    match Layout::parse(text, "fuzz") {
        Err(error) => one_line(&error.to_string()),
        Ok(layout) => match Rows::parse(rows, &layout) {
            Err(error) => one_line(&error.to_string()),
            Ok(rows) => assert!(rows.rows.iter().all(|r| r.number < layout.messages)),
        },
    }
}

/// A result: any text gives cells, models and a page, or an error of one line.
pub fn result(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    match model::read(text) {
        Err(error) => one_line(&error.to_string()),
        Ok(read) => {
            let samples: Vec<_> = read.samples.iter().map(|(_, s)| s.clone()).collect();
            let mut knees: Vec<_> = read.knees.iter().map(|(_, k)| k.clone()).collect();
            knees.extend(model::knees(&samples));
            knees.truncate(4);
            if let Ok(v) = model::validate("fuzz", &samples, &knees) {
                assert!(v.lines().iter().all(|l| !l.is_empty()));
            }
        }
    }
    if let Ok(document) = Document::parse(text, "fuzz".into()) {
        assert!(html("fuzz", &[document]).ends_with("</html>\n"));
    }
    if let Err(error) = HostCosts::parse(text) {
        one_line(&error);
    }
}

/// A system to plan: any text gives one, or an error of one line.
pub fn system(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Err(error) = System::parse(text, "fuzz", &Nothing) {
        one_line(&error.to_string());
    }
}

fn one_line(text: &str) {
    assert_eq!(text.lines().count(), 1, "{text}");
}

struct Nothing;

impl Known for Nothing {
    fn size(&self, _: &str) -> Result<u64, String> {
        Ok(8)
    }

    fn recording(&self, _: &str) -> Result<BTreeMap<String, Trace>, String> {
        Ok(BTreeMap::new())
    }
}

#[cfg(test)]
mod tests {
    fn replay(target: &str, run: fn(&[u8])) {
        let corpus = format!("{}/../../fuzz/corpus/{target}", env!("CARGO_MANIFEST_DIR"));
        let files = std::fs::read_dir(&corpus).unwrap_or_else(|e| panic!("{corpus}: {e}"));
        let mut count = 0;
        for file in files {
            let data = std::fs::read(file.expect("an entry").path()).expect("a file");
            // Also truncated files and files with one changed byte.
            for cut in [data.len(), data.len() / 2, data.len() / 3] {
                run(&data[..cut]);
            }
            for at in (0..data.len()).step_by(31) {
                let mut changed = data.clone();
                changed[at] ^= 0x11;
                run(&changed);
            }
            count += 1;
        }
        assert!(count > 0, "{corpus} is empty");
    }

    #[test]
    fn corpora_are_read_or_refused() {
        replay("analysis_raw", super::raw);
        replay("analysis_result", super::result);
        replay("analysis_system", super::system);
    }
}
