//! Frames on a serial line: COBS between zeros, with a checksum.
//!
//! A frame is the datagram followed by its CRC-32 (IEEE 802.3, little-endian), encoded by consistent-overhead
//! byte stuffing (Cheshire and Baker 1999) so that it contains no zero, between two zeros. After any garbage
//! on the line, the next zero starts a new frame.

/// Bytes of the checksum.
const CRC: usize = 4;

/// Most bytes that a frame for `len` bytes takes on the line: checksum, stuffing, and the two zeros.
pub(crate) const fn framed(len: usize) -> usize {
    let inner = len + CRC;
    // One byte before, and one for each 254.
    inner + inner / 254 + 1 + 2
}

/// Appends the frame of `datagram` to `line`.
pub(crate) fn encode(datagram: &[u8], line: &mut Vec<u8>) {
    let mut inner = Vec::with_capacity(datagram.len() + CRC);
    inner.extend_from_slice(datagram);
    inner.extend_from_slice(&crc32fast::hash(datagram).to_le_bytes());
    // The leading zero ends any garbage that would spoil this frame.
    line.push(0);
    line.extend_from_slice(&cobs::encode_vec(&inner));
    line.push(0);
}

/// Finds frames in bytes that arrive in pieces of any size.
#[derive(Debug)]
pub(crate) struct Deframer {
    /// The received bytes of the current frame, still encoded.
    frame: Vec<u8>,
    datagram: Vec<u8>,
    max: usize,
    /// The frame is too long: skip to its end.
    skip: bool,
    /// Number of malformed frames.
    pub(crate) bad: u64,
}

impl Deframer {
    /// Creates a deframer for datagrams of at most `max` bytes.
    pub(crate) fn new(max: usize) -> Self {
        Deframer {
            frame: Vec::with_capacity(framed(max)),
            datagram: vec![0; framed(max)],
            max,
            skip: false,
            bad: 0,
        }
    }

    /// Takes bytes from the front of `line` until a datagram is complete, and returns it; `None` if it took
    /// all bytes.
    pub(crate) fn next(&mut self, line: &mut &[u8]) -> Option<&[u8]> {
        while let Some(end) = line.iter().position(|b| *b == 0) {
            self.keep(&line[..end]);
            *line = &line[end + 1..];
            if let Some(len) = self.finish() {
                return self.datagram.get(..len);
            }
        }
        self.keep(line);
        *line = &[];
        None
    }

    fn keep(&mut self, piece: &[u8]) {
        self.skip |= self.frame.len() + piece.len() > framed(self.max);
        if !self.skip {
            self.frame.extend_from_slice(piece);
        }
    }

    /// Decodes the current frame and returns the datagram's length.
    fn finish(&mut self) -> Option<usize> {
        let skipped = std::mem::take(&mut self.skip);
        // Adjacent frames have nothing between their zeros.
        if self.frame.is_empty() && !skipped {
            return None;
        }
        let decoded = cobs::decode(&self.frame, &mut self.datagram).ok();
        self.frame.clear();
        let len = decoded.filter(|_| !skipped).and_then(|report| {
            let inner = self.datagram.get(..report.frame_size())?;
            let (datagram, crc) = inner.split_last_chunk::<CRC>()?;
            (crc32fast::hash(datagram).to_le_bytes() == *crc).then_some(datagram.len())
        });
        let len = len.filter(|n| (1..=self.max).contains(n));
        self.bad = self.bad.saturating_add(u64::from(len.is_none()));
        len
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: usize = 600;

    fn datagrams() -> Vec<Vec<u8>> {
        let lens = [1, 2, 253, 254, 255, 508, 509, 510, MAX];
        let mut all: Vec<Vec<u8>> = lens
            .iter()
            .map(|n| (0..*n).map(|i| (i % 251) as u8).collect())
            .collect();
        all.push(vec![0; MAX]);
        all.push(vec![255; MAX]);
        all
    }

    fn read(deframer: &mut Deframer, mut line: &[u8], step: usize) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        while !line.is_empty() {
            let (mut piece, rest) = line.split_at(step.min(line.len()));
            while let Some(d) = deframer.next(&mut piece) {
                all.push(d.to_vec());
            }
            line = rest;
        }
        all
    }

    #[test]
    fn frames_come_whole_in_pieces_of_any_size() {
        let mut line = Vec::new();
        for d in datagrams() {
            let before = line.len();
            encode(&d, &mut line);
            assert!(line.len() - before <= framed(d.len()), "{}", d.len());
        }
        for step in [1, 2, 7, 300, 10_000] {
            let mut deframer = Deframer::new(MAX);
            assert_eq!(read(&mut deframer, &line, step), datagrams());
            assert_eq!(deframer.bad, 0);
        }
    }

    #[test]
    fn after_garbage_the_next_frame_is_whole() {
        let mut state = 7u64;
        for round in 0..2000 {
            let mut line: Vec<u8> = (0..round % 700)
                .map(|_| {
                    state = state
                        .wrapping_mul(6364136223846793005)
                        .wrapping_add(1442695040888963407);
                    (state >> 56) as u8
                })
                .collect();
            encode(b"I am whole", &mut line);
            let mut deframer = Deframer::new(MAX);
            let got = read(&mut deframer, &line, 64);
            assert_eq!(got.last().map(Vec::as_slice), Some(&b"I am whole"[..]), "{round}");
        }
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let mut line = Vec::new();
        encode(b"a datagram with some \0 bytes \0", &mut line);
        for bit in 0..8 * line.len() {
            let mut bad = line.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            let got = read(&mut Deframer::new(MAX), &bad, 1000);
            // The outer zeros may be lost; what matters is that no wrong datagram is returned.
            assert!(
                got.iter().all(|d| d == b"a datagram with some \0 bytes \0"),
                "bit {bit}"
            );
        }
    }
}
