//! Lines from another process.

/// Splits received bytes into lines with a maximum length.
#[derive(Debug)]
pub(super) struct Lines {
    bytes: Vec<u8>,
    /// Bytes that were already searched.
    seen: usize,
    longest: usize,
}

impl Lines {
    pub(super) fn new(longest: usize) -> Lines {
        Lines {
            bytes: Vec::new(),
            seen: 0,
            longest,
        }
    }

    /// Adds received bytes. Take all lines before the next call: so at most the longest line and one of these is
    /// stored.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the next complete line, without its end.
    ///
    /// # Errors
    /// It is too long.
    pub(super) fn next(&mut self) -> Result<Option<Vec<u8>>, String> {
        let end = self.bytes[self.seen..].iter().position(|b| *b == b'\n');
        let length = end.map_or(self.bytes.len(), |end| self.seen + end);
        if length > self.longest {
            return Err(format!("a line of more than {} bytes", self.longest));
        }
        if end.is_none() {
            self.seen = length;
            return Ok(None);
        }
        let rest = self.bytes.split_off(length + 1);
        let mut line = std::mem::replace(&mut self.bytes, rest);
        line.pop();
        self.seen = 0;
        Ok(Some(line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_whole_however_they_are_cut() {
        let text = b"one\n\ntwo three\nrest";
        for step in 1..text.len() {
            let (mut lines, mut all) = (Lines::new(9), Vec::new());
            for piece in text.chunks(step) {
                lines.push(piece);
                while let Some(line) = lines.next().expect("short enough") {
                    all.push(String::from_utf8(line).expect("text"));
                }
            }
            assert_eq!(all, ["one", "", "two three"], "{step}");
        }
    }

    #[test]
    fn a_line_without_end_is_no_line() {
        let mut lines = Lines::new(4);
        lines.push(b"1234");
        assert_eq!(lines.next(), Ok(None));
        lines.push(b"5");
        assert!(lines.next().is_err_and(|e| e.contains("4 bytes")));
        let mut lines = Lines::new(4);
        lines.push(b"12345\n");
        assert!(lines.next().is_err());
    }
}
