//! Plain tables for people.

/// How a column is aligned.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// A table with a header; columns are as wide as their widest cell.
pub struct Table {
    head: Vec<(&'static str, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows; each column has a title and an alignment.
    pub fn new(head: &[(&'static str, Align)]) -> Self {
        Table {
            head: head.to_vec(),
            rows: Vec::new(),
        }
    }

    /// Adds a row with as many cells as there are columns. Control characters in cells are escaped.
    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.push(cells.into());
    }

    /// The same for a variable number of columns.
    pub fn push(&mut self, cells: Vec<String>) {
        let printable = |cell: String| stats::text::printable(&cell).into_owned();
        self.rows.push(cells.into_iter().map(printable).collect());
    }

    /// The lines of the table, without trailing spaces.
    pub fn lines(&self) -> Vec<String> {
        let width = |i: usize| {
            let cells = self
                .rows
                .iter()
                .filter_map(|r| r.get(i))
                .map(|c| c.chars().count());
            cells.chain([self.head[i].0.chars().count()]).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.head.len()).map(width).collect();
        let head = self.head.iter().map(|h| h.0.to_owned()).collect();
        std::iter::once(&head)
            .chain(&self.rows)
            .map(|row| self.line(row, &widths))
            .collect()
    }

    fn line(&self, row: &[String], widths: &[usize]) -> String {
        let cells = row
            .iter()
            .zip(widths)
            .zip(&self.head)
            .map(|((cell, width), head)| {
                let pad = " ".repeat(width.saturating_sub(cell.chars().count()));
                if head.1 == Align::Left {
                    format!("{cell}{pad}")
                } else {
                    format!("{pad}{cell}")
                }
            });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut t = Table::new(&[("topic", Align::Left), ("Hz", Align::Right)]);
        t.row(["/scan".into(), "30.0".into()]);
        t.row(["/camera/image".into(), "6.7".into()]);
        t.row(["/a\u{1b}\n".into(), "1".into()]);
        assert_eq!(
            t.lines(),
            [
                "topic            Hz",
                "/scan          30.0",
                "/camera/image   6.7",
                "/a\\u001b\\n        1"
            ]
        );
    }
}
