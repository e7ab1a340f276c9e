//! A fountain code over one message: RaptorQ (RFC 6330), with the whole message as one source block.
//!
//! The first symbols are the message itself, cut into pieces; any number of others can be made. The receiver computes
//! the message from slightly more symbols than there are pieces, whichever they are. The library asserts on its input,
//! so everything is checked here first (decision 092).

use crate::body::Body;
use core::panic::AssertUnwindSafe;
use raptorq::{
    EncodingPacket, ObjectTransmissionInformation, PayloadId, SourceBlockDecoder, SourceBlockEncoder,
    SourceBlockEncodingPlan,
};
use std::panic::catch_unwind;
use std::sync::Arc;

/// Most symbols that a message is cut into (K'max, RFC 6330, section 5.1.2).
const MAX_SOURCE: u32 = 56_403;
/// Bound on symbol numbers (RFC 6330 has 24 bits, of which padding takes some).
pub(crate) const MAX_ID: u32 = 1 << 23;
/// Smaller symbols are not worth their headers.
const MIN_SYMBOL: u16 = 64;
/// Symbols beyond the number of pieces to wait for before the first attempt: with these, one attempt in a million fails
/// (RFC 6330, section 1), and a failure costs as much as a success.
pub(crate) const SPARE: u32 = 2;
/// Memory that an arriving message takes, as a multiple of its length: its block, the symbols and, during the
/// computation, the equations and the result.
pub(crate) const MEMORY: u64 = 4;

/// How a message is cut into symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Bytes of the message.
    total: u32,
    /// Bytes of a symbol.
    symbol: u16,
    /// Symbols that are the message itself.
    source: u32,
}

impl Shape {
    /// A message of `total` bytes in symbols of `symbol` bytes, if that is possible.
    pub(crate) fn new(total: u32, symbol: u16) -> Option<Shape> {
        let source = total.div_ceil(symbol.max(1).into());
        let valid = symbol >= MIN_SYMBOL && (1..=MAX_SOURCE).contains(&source);
        valid.then_some(Shape {
            total,
            symbol,
            source,
        })
    }

    pub(crate) fn symbol(&self) -> u16 {
        self.symbol
    }

    /// Number of symbols that are the message itself.
    pub(crate) fn source(&self) -> u32 {
        self.source
    }

    /// The bytes of the message that are symbol `id`, without padding; `None` if it is not one of the first.
    pub(crate) fn bytes(&self, id: u32) -> Option<(u32, u32)> {
        let from = u32::from(self.symbol)
            .checked_mul(id)
            .filter(|_| id < self.source)?;
        Some((from, self.total.min(from.saturating_add(self.symbol.into()))))
    }

    /// Length of all pieces, including padding.
    fn padded(&self) -> usize {
        self.source as usize * usize::from(self.symbol)
    }

    /// One source block, one sub-block.
    fn information(&self) -> ObjectTransmissionInformation {
        ObjectTransmissionInformation::new(self.padded() as u64, self.symbol, 1, 1, 1)
    }
}

/// Makes the symbols that are not the message itself.
#[derive(Clone)]
pub(crate) struct Encoder {
    shape: Shape,
    block: Arc<SourceBlockEncoder>,
}

impl Encoder {
    /// Copies the message and precomputes the data from which all symbols are made. Takes some ten milliseconds for 10
    /// MB.
    fn new(shape: Shape, body: &impl Body) -> Encoder {
        let mut bytes = vec![0; shape.padded()];
        body.copy_at(0, &mut bytes[..shape.total as usize]);
        // Not `SourceBlockEncoder::new`: that keeps the plans of the last lengths forever.
        let plan = SourceBlockEncodingPlan::generate(shape.source as u16);
        let block = SourceBlockEncoder::with_encoding_plan(0, &shape.information(), &bytes, &plan);
        Encoder {
            shape,
            block: Arc::new(block),
        }
    }

    /// Symbol `id`, not one of the first. Takes some microseconds.
    pub(crate) fn symbol(&self, id: u32) -> Vec<u8> {
        let made = self.block.repair_packets(id.saturating_sub(self.shape.source), 1);
        made.into_iter().next().map(|p| p.split().1).unwrap_or_default()
    }
}

/// Computes a message from its symbols.
struct Decoder {
    shape: Shape,
    block: SourceBlockDecoder,
}

impl Decoder {
    fn new(shape: Shape) -> Decoder {
        Decoder {
            shape,
            block: SourceBlockDecoder::new(0, &shape.information(), shape.padded() as u64),
        }
    }

    fn decode(&mut self, symbols: Vec<(u32, Vec<u8>)>) -> Option<Vec<u8>> {
        let right =
            |(id, bytes): &(u32, Vec<u8>)| *id < MAX_ID && bytes.len() == usize::from(self.shape.symbol);
        let packets = symbols.into_iter().filter(right);
        let packets = packets.map(|(id, bytes)| EncodingPacket::new(PayloadId::new(0, id), bytes));
        // The sender chooses which equations are solved, and the library asserts while solving.
        let block = AssertUnwindSafe(&mut self.block);
        let packets = AssertUnwindSafe(packets);
        catch_unwind(move || {
            let (AssertUnwindSafe(block), AssertUnwindSafe(packets)) = (block, packets);
            block.decode(packets)
        })
        .ok()
        .flatten()
    }
}

/// Work that takes too long for the thread that drives a radio: get it from [`crate::Radio::next_job`], [`Job::run`] it
/// on another thread, and pass the result to [`crate::Radio::job_done`]. Jobs may run in any order, and may be dropped
/// along with the radio.
#[must_use = "its message waits for it"]
pub struct Job<B>(u64, Task<B>);

enum Task<B> {
    Encode(Shape, B),
    Decode(Decoding),
}

/// The received part of a message, for a thread that computes the rest.
pub(crate) struct Decoding {
    decoder: Box<Decoder>,
    symbols: Vec<(u32, Vec<u8>)>,
}

impl Decoding {
    /// With the symbols that arrived since an `earlier` attempt, or with all symbols.
    pub(crate) fn new(shape: Shape, earlier: Option<Failed>, symbols: Vec<(u32, Vec<u8>)>) -> Self {
        let decoder = earlier.map_or_else(|| Box::new(Decoder::new(shape)), |f| f.0);
        Decoding { decoder, symbols }
    }
}

/// An attempt that needs more symbols, with the symbols so far.
pub(crate) struct Failed(Box<Decoder>);

/// Result of a [`Job`].
pub struct JobDone(pub(crate) u64, pub(crate) Computed);

pub(crate) enum Computed {
    Encoder(Encoder),
    /// The message, padded.
    Message(Vec<u8>),
    Failed(Failed),
}

impl<B: Body> Job<B> {
    pub(crate) fn encode(id: u64, shape: Shape, body: B) -> Self {
        Job(id, Task::Encode(shape, body))
    }

    pub(crate) fn decode(id: u64, decoding: Decoding) -> Self {
        Job(id, Task::Decode(decoding))
    }

    /// Runs it. Blocks for some ten milliseconds per 10 MB.
    pub fn run(self) -> JobDone {
        let computed = match self.1 {
            Task::Encode(shape, body) => Computed::Encoder(Encoder::new(shape, &body)),
            Task::Decode(Decoding { mut decoder, symbols }) => match decoder.decode(symbols) {
                Some(bytes) => Computed::Message(bytes),
                None => Computed::Failed(Failed(decoder)),
            },
        };
        JobDone(self.0, computed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(n: usize) -> Vec<u8> {
        (0..n).map(|i| (i * 7 + i / 251) as u8).collect()
    }

    fn piece(shape: Shape, message: &[u8], id: u32) -> Vec<u8> {
        let (from, to) = shape.bytes(id).expect("one of the first");
        let mut bytes = message[from as usize..to as usize].to_vec();
        bytes.resize(usize::from(shape.symbol), 0);
        bytes
    }

    #[test]
    fn any_symbols_give_the_message() {
        for (len, symbol) in [(1, 64), (640, 64), (5_000, 64), (100_001, 300), (400_000, 1_400)] {
            let shape = Shape::new(len, symbol).expect("fits");
            let message = message(len as usize);
            let encoder = Encoder::new(shape, &message);
            // Every third piece is lost.
            let pieces = (0..shape.source()).filter(|id| id % 3 != 1);
            let pieces = pieces
                .map(|id| (id, piece(shape, &message, id)))
                .collect::<Vec<_>>();
            let missing = shape.source() - pieces.len() as u32;
            let first = shape.source() + 40;
            let made = (first..first + missing + SPARE).map(|id| (id, encoder.symbol(id)));
            let symbols = pieces.iter().cloned().chain(made).collect();
            let job: Job<Vec<u8>> = Job::decode(7, Decoding::new(shape, None, symbols));
            let JobDone(7, Computed::Message(bytes)) = job.run() else {
                panic!("{len} B in symbols of {symbol} B are not computed");
            };
            assert!(bytes[..len as usize] == message, "{len}");
        }
    }

    #[test]
    fn too_few_symbols_are_kept_for_the_next_attempt() {
        let shape = Shape::new(50_000, 500).expect("fits");
        let message = message(50_000);
        let encoder = Encoder::new(shape, &message);
        let some = (200..280).map(|id| (id, encoder.symbol(id))).collect();
        let job: Job<Vec<u8>> = Job::decode(1, Decoding::new(shape, None, some));
        let JobDone(_, Computed::Failed(failed)) = job.run() else {
            panic!("computed from too few");
        };
        let wrong = vec![(MAX_ID, vec![0; 500]), (5, vec![1; 499])];
        let rest = (300..330)
            .map(|id| (id, encoder.symbol(id)))
            .chain(wrong)
            .collect();
        let job: Job<Vec<u8>> = Job::decode(2, Decoding::new(shape, Some(failed), rest));
        let JobDone(2, Computed::Message(bytes)) = job.run() else {
            panic!("not computed");
        };
        assert!(bytes == message);
    }

    #[test]
    fn shapes_have_bounds() {
        assert_eq!(Shape::new(0, 64), None);
        assert_eq!(Shape::new(64, 63), None);
        assert_eq!(Shape::new(u32::MAX, 0), None);
        assert_eq!(Shape::new(u32::MAX, 64), None);
        assert_eq!(Shape::new(MAX_SOURCE * 64 + 1, 64), None);
        let largest = Shape::new(MAX_SOURCE * 64, 64).expect("the largest");
        assert_eq!(
            largest.bytes(MAX_SOURCE - 1),
            Some((MAX_SOURCE * 64 - 64, MAX_SOURCE * 64))
        );
        assert_eq!(largest.bytes(MAX_SOURCE), None);
        let odd = Shape::new(130, 64).expect("fits");
        assert_eq!((odd.source(), odd.bytes(2)), (3, Some((128, 130))));
        let huge = Shape::new(u32::MAX, u16::MAX).map(|s| s.source());
        assert_eq!(huge, None);
        assert!(Shape::new(56_403 * 65_535, u16::MAX).is_some());
    }
}
