//! A stream of H.264 whose pictures are grey: macroblocks of plain samples (I_PCM), so that no encoder is needed.

/// Macroblocks of a row, and rows.
const SIZE: (usize, usize) = (4, 3);
/// Width and height in pixels.
pub(crate) const PIXELS: (usize, usize) = (16 * SIZE.0, 16 * SIZE.1);

/// What a picture refers to.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// Nothing. Two of them in a row have different numbers.
    Idr(u32),
    /// The one before; its `frame_num`.
    P(u32),
}

/// A picture of one grey, 16 for black to 235 for white; without one, a copy of the picture before.
pub(crate) fn picture(kind: Kind, grey: Option<u8>) -> Vec<u8> {
    let mut bits = Bits::default();
    bits.number(0);
    let is_idr = matches!(kind, Kind::Idr(_));
    bits.number(if is_idr { 7 } else { 5 });
    bits.number(0);
    match kind {
        Kind::Idr(number) => {
            bits.put(0, 4);
            bits.number(number);
            // Marking: neither flag.
            bits.put(0, 2);
        }
        Kind::P(number) => {
            bits.put(number % 16, 4);
            // References as usual, and marking.
            bits.put(0, 3);
        }
    }
    bits.number(0);
    // No deblocking.
    bits.number(1);
    for _ in 0..SIZE.0 * SIZE.1 {
        let Some(grey) = grey else { break };
        if !is_idr {
            bits.number(0);
        }
        bits.number(if is_idr { 25 } else { 30 });
        bits.align();
        bits.bytes.extend([grey; 256]);
        bits.bytes.extend([128; 128]);
    }
    if grey.is_none() {
        bits.number(u32::try_from(SIZE.0 * SIZE.1).expect("fits"));
    }
    bits.unit(if is_idr { 0x65 } else { 0x41 })
}

/// Parameters of the stream, as they stand before a key frame: numbers of 4 bits, pictures in the order of decoding.
pub(crate) fn parameters() -> Vec<u8> {
    let mut sps = Bits::default();
    sps.bytes.extend([66, 0xc0, 10]);
    for number in [0, 0, 2, 1] {
        sps.number(number);
    }
    sps.put(0, 1);
    sps.number(u32::try_from(SIZE.0 - 1).expect("fits"));
    sps.number(u32::try_from(SIZE.1 - 1).expect("fits"));
    sps.put(0b1100, 4);
    let mut pps = Bits::default();
    pps.number(0);
    pps.number(0);
    pps.put(0, 2);
    for _ in 0..3 {
        pps.number(0);
    }
    pps.put(0, 3);
    for _ in 0..3 {
        pps.number(0);
    }
    // Slices state whether they are deblocked.
    pps.put(0b100, 3);
    [sps.unit(0x67), pps.unit(0x68)].concat()
}

#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    /// Bits of the last byte that are used; 0: all.
    used: u8,
}

impl Bits {
    fn put(&mut self, value: u32, count: u32) {
        for i in (0..count).rev() {
            if self.used == 0 {
                self.bytes.push(0);
            }
            let bit = u8::from(value >> i & 1 == 1);
            *self.bytes.last_mut().expect("a byte") |= bit << (7 - self.used);
            self.used = (self.used + 1) % 8;
        }
    }

    /// ue(v), and se(v) of 0.
    fn number(&mut self, value: u32) {
        let length = (value + 1).ilog2();
        self.put(0, length);
        self.put(value + 1, length + 1);
    }

    fn align(&mut self) {
        self.used = 0;
    }

    /// A NAL unit in Annex B.
    fn unit(mut self, head: u8) -> Vec<u8> {
        self.put(1, 1);
        let mut unit = vec![0, 0, 0, 1, head];
        let mut zeros = 0;
        for byte in self.bytes {
            if zeros >= 2 && byte <= 3 {
                unit.push(3);
                zeros = 0;
            }
            zeros = if byte == 0 { zeros + 1 } else { 0 };
            unit.push(byte);
        }
        unit
    }
}
