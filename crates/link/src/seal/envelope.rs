//! A sealed message as it crosses relays (`docs/wire/link.md`): only its destination hosts can read it, and
//! no relay can change it.

use proto::{Geometry, MAX_PARTS};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use ring::{digest, hmac};

/// First byte of a sealed envelope. Lower values are for compression.
pub(crate) const CODEC: u8 = 3;
/// Length of an authentication tag.
const TAG: usize = 16;
/// Length of the secret that several hosts share for one message.
pub(super) const SECRET: usize = 16;
/// Length of each destination's slot if there are several: the secret, sealed for that host alone.
const SLOT: usize = SECRET + TAG;
/// In place of the number of data parts: the message is packed, as in a fragment's head.
const PACKED: u8 = 128;
/// In place of the number of data parts: a message without content, which only proves that its topic belongs
/// to its source.
const NOTICE: u8 = 129;
/// This part of the nonce states what is sealed, so that nonces of one key never repeat.
const WHOLE: u32 = 0;
const SHARED: u32 = 1;
const TALLY: u32 = 2;
/// First byte of a tally. A greeting begins with its version.
const TALLIES: u8 = 2;
/// Length of a tally.
const TALLY_LEN: usize = 1 + 2 + 8 + 9 + TAG;

/// A key between two hosts, for one direction.
pub(super) struct DirectedKey {
    key: LessSafeKey,
    /// Distinguishes it from earlier and later keys.
    pub(super) id: u16,
}

impl DirectedKey {
    pub(super) fn new(key: &[u8; 32], id: u16) -> Option<Self> {
        let key = UnboundKey::new(&CHACHA20_POLY1305, key).ok()?;
        Some(DirectedKey {
            key: LessSafeKey::new(key),
            id,
        })
    }
}

/// A message's associated data. The receiver must use the same values to open it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Label {
    /// The digest of the topic's announcement ([`super::context`]).
    pub(crate) context: [u8; 32],
    pub(crate) number: u64,
    pub(crate) stamp: u64,
    pub(crate) origin: u64,
}

impl Label {
    fn bytes(&self, hosts: u64, serial: u64) -> Vec<u8> {
        let mut out = self.context.to_vec();
        for n in [self.number, self.stamp, self.origin, hosts, serial] {
            out.extend_from_slice(&n.to_le_bytes());
        }
        out
    }
}

/// The content of an envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// A message, possibly packed.
    Message(Geometry),
    /// Nothing.
    Notice,
}

/// Why an envelope cannot be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SealError {
    /// The bytes are malformed.
    #[error("malformed sealed envelope: wrong {0}")]
    Malformed(&'static str),
    /// It is for other hosts, or under a key that is unknown, or no longer known.
    #[error("the message is sealed with a key that this host does not know")]
    Key,
    /// Another host made it, or changed it.
    #[error("the seal of the message is not from its source")]
    Forged,
}

/// Seals `content`, which `shape` describes, for the hosts of `hosts`, whose keys are in the order of their
/// bits. `serial` must never repeat under any of the keys. `secret` is random, and is used if there are
/// several hosts.
pub(super) fn seal(
    label: &Label,
    (hosts, keys): (u64, &[&DirectedKey]),
    serial: u64,
    secret: &[u8; SECRET],
    shape: Shape,
    content: impl FnOnce(&mut [u8]),
) -> Option<Vec<u8>> {
    let mut out = vec![CODEC];
    put(&mut out, hosts);
    put(&mut out, serial);
    let aad = label.bytes(hosts, serial);
    let head = out.len();
    let slots = if keys.len() == 1 {
        2
    } else {
        (2 + SLOT) * keys.len()
    };
    let mut body = Vec::new();
    let len = match shape {
        Shape::Notice => {
            body.push(NOTICE);
            0
        }
        Shape::Message(g) => {
            body.push(if g.is_packed() {
                PACKED
            } else {
                g.part_lens().len() as u8
            });
            put(&mut body, g.control_len().into());
            g.part_lens().iter().for_each(|n| put(&mut body, (*n).into()));
            g.total_len() as usize
        }
    };
    // One allocation for everything, in which the body is sealed in place.
    out.reserve(slots + body.len() + len + TAG);
    out.resize(head + slots, 0);
    let at = out.len();
    out.extend_from_slice(&body);
    let from = out.len();
    out.resize(from + len, 0);
    content(&mut out[from..]);
    let shared = match keys.len() {
        1 => None,
        _ => Some(body_key(secret)?),
    };
    let (key, of_what) = match (&shared, keys) {
        (Some(key), _) => (key, SHARED),
        (None, [one]) => (&one.key, WHOLE),
        (None, _) => return None,
    };
    let tag = key
        .seal_in_place_separate_tag(nonce(of_what, serial), Aad::from(&aad), &mut out[at..])
        .ok()?;
    out.extend_from_slice(tag.as_ref());
    if shared.is_none() {
        out[head..at].copy_from_slice(&keys.first()?.id.to_le_bytes());
        return Some(out);
    }
    // Any host that can open it could make another body under the same secret, so each host's slot
    // authenticates this body.
    let vouched = [&aad[..], digest::digest(&digest::SHA256, &out[at..]).as_ref()].concat();
    for (i, key) in keys.iter().enumerate() {
        let slot = head + i * (2 + SLOT);
        out[slot..slot + 2].copy_from_slice(&key.id.to_le_bytes());
        let sealed = &mut out[slot + 2..slot + 2 + SECRET];
        sealed.copy_from_slice(secret);
        let tag = (key.key)
            .seal_in_place_separate_tag(nonce(SHARED, serial), Aad::from(&vouched), sealed)
            .ok()?;
        out[slot + 2 + SECRET..slot + 2 + SLOT].copy_from_slice(tag.as_ref());
    }
    Some(out)
}

/// Returns whether these are the bytes of a sealed message.
pub(crate) fn is_sealed(bytes: &[u8]) -> bool {
    bytes.first() == Some(&CODEC)
}

/// Opens an envelope in place, for the host with the bit `own`. Returns its shape, and the start and end of
/// its content.
pub(super) fn open(
    label: &Label,
    own: u64,
    key: &DirectedKey,
    bytes: &mut [u8],
) -> Result<(Shape, usize, usize), SealError> {
    let malformed = SealError::Malformed;
    if !is_sealed(bytes) {
        return Err(malformed("codec"));
    }
    let mut at = 1;
    let hosts = take(bytes, &mut at).ok_or(malformed("hosts"))?;
    let serial = take(bytes, &mut at).ok_or(malformed("serial"))?;
    if hosts & own == 0 || !own.is_power_of_two() {
        return Err(SealError::Key);
    }
    let aad = label.bytes(hosts, serial);
    let count = hosts.count_ones() as usize;
    let slot = if count == 1 { 2 } else { 2 + SLOT };
    let place = (hosts & (own - 1)).count_ones() as usize;
    let body = at + slot * count;
    if bytes.len() < body + TAG {
        return Err(malformed("length"));
    }
    let (head, sealed) = bytes.split_at_mut(body);
    let slot = &mut head[at + slot * place..][..slot];
    if u16::from_le_bytes([slot[0], slot[1]]) != key.id {
        return Err(SealError::Key);
    }
    let shared = if count == 1 {
        None
    } else {
        let vouched = [&aad[..], digest::digest(&digest::SHA256, sealed).as_ref()].concat();
        let opened = (key.key).open_in_place(nonce(SHARED, serial), Aad::from(&vouched), &mut slot[2..]);
        let secret = opened.map_err(|_| SealError::Forged)?;
        let secret = <&[u8; SECRET]>::try_from(&*secret).map_err(|_| SealError::Forged)?;
        Some(body_key(secret).ok_or(SealError::Forged)?)
    };
    let (by, of_what) = match &shared {
        Some(key) => (key, SHARED),
        None => (&key.key, WHOLE),
    };
    let plain = by
        .open_in_place(nonce(of_what, serial), Aad::from(&aad), sealed)
        .map_err(|_| SealError::Forged)?;
    let (shape, from) = read_shape(plain)?;
    let to = body + plain.len();
    Ok((shape, body + from, to))
}

/// Fuzz target for bytes from relays, under a known key: an input that opens is identical to its sealed form.
pub(crate) fn fuzz(data: &[u8]) {
    let (Some(key), label) = (DirectedKey::new(&[1; 32], 0x0201), GOLDEN) else {
        return;
    };
    let _ = super::greeting::Greeting::read((1, 2), data);
    if let Ok((tally, serial)) = Tally::open(&key, data) {
        assert_eq!(tally.seal(&key, serial).as_deref(), Some(data));
    }
    for own in [1, 2] {
        let mut bytes = data.to_vec();
        if let Ok((shape, from, to)) = open(&label, own, &key, &mut bytes) {
            let len = match shape {
                Shape::Message(g) => g.total_len() as usize,
                Shape::Notice => 0,
            };
            assert_eq!(to - from, len);
        }
    }
}

/// The label of golden messages.
const GOLDEN: Label = Label {
    context: [7; 32],
    number: 300,
    stamp: 1_000_000_007,
    origin: 9,
};

/// How many of a host's messages were opened here, and whether it should report the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) opened: u64,
    pub(super) asks: bool,
}

impl Tally {
    pub(super) fn seal(self, key: &DirectedKey, serial: u64) -> Option<Vec<u8>> {
        let mut out = vec![TALLIES];
        out.extend_from_slice(&key.id.to_le_bytes());
        out.extend_from_slice(&serial.to_le_bytes());
        let at = out.len();
        out.extend_from_slice(&self.opened.to_le_bytes());
        out.push(u8::from(self.asks));
        let tag = key
            .key
            .seal_in_place_separate_tag(nonce(TALLY, serial), Aad::empty(), &mut out[at..]);
        out.extend_from_slice(tag.ok()?.as_ref());
        Some(out)
    }

    /// Returns whether these bytes are a tally rather than a greeting.
    pub(super) fn is_one(bytes: &[u8]) -> bool {
        bytes.first() == Some(&TALLIES)
    }

    /// Opens a tally. Also returns its serial, which only grows.
    pub(super) fn open(key: &DirectedKey, bytes: &[u8]) -> Result<(Tally, u64), SealError> {
        let Ok(mut bytes) = <[u8; TALLY_LEN]>::try_from(bytes) else {
            return Err(SealError::Malformed("tally"));
        };
        if !Self::is_one(&bytes) {
            return Err(SealError::Malformed("kind"));
        }
        let [_, a, b, serial @ .., _] = &bytes;
        let Some((serial, _)) = serial.split_first_chunk::<8>() else {
            return Err(SealError::Malformed("tally"));
        };
        let serial = u64::from_le_bytes(*serial);
        if u16::from_le_bytes([*a, *b]) != key.id {
            return Err(SealError::Key);
        }
        let plain = (key.key).open_in_place(nonce(TALLY, serial), Aad::empty(), &mut bytes[11..]);
        let Ok([opened @ .., asks]) = plain.map_err(|_| SealError::Forged).map(|p| &*p) else {
            return Err(SealError::Forged);
        };
        let opened = <[u8; 8]>::try_from(opened).map_err(|_| SealError::Malformed("tally"))?;
        let tally = Tally {
            opened: u64::from_le_bytes(opened),
            asks: *asks == 1,
        };
        Ok((tally, serial))
    }
}

/// Reads the shape in front of the content, and checks the content's length against it.
fn read_shape(plain: &[u8]) -> Result<(Shape, usize), SealError> {
    let malformed = SealError::Malformed;
    let (parts, mut at) = (*plain.first().ok_or(malformed("shape"))?, 1);
    let mut length = || {
        let n = take(plain, &mut at).and_then(|n| u32::try_from(n).ok());
        n.ok_or(malformed("shape"))
    };
    let shape = match parts {
        NOTICE => Shape::Notice,
        PACKED => Shape::Message(Geometry::packed(length()?)),
        n if usize::from(n) <= MAX_PARTS => {
            let control = length()?;
            let parts = (0..n).map(|_| length()).collect::<Result<Vec<u32>, _>>()?;
            Shape::Message(Geometry::new(control, &parts).map_err(|_| malformed("shape"))?)
        }
        _ => return Err(malformed("shape")),
    };
    let len = match shape {
        Shape::Message(g) => g.total_len() as usize,
        Shape::Notice => 0,
    };
    if plain.len() - at != len {
        return Err(malformed("content"));
    }
    Ok((shape, at))
}

/// The key of a body whose secret several hosts share.
fn body_key(secret: &[u8; SECRET]) -> Option<LessSafeKey> {
    let key = hmac::sign(
        &hmac::Key::new(hmac::HMAC_SHA256, secret),
        b"ropewalk seal 1 body",
    );
    UnboundKey::new(&CHACHA20_POLY1305, key.as_ref())
        .ok()
        .map(LessSafeKey::new)
}

fn nonce(of_what: u32, serial: u64) -> Nonce {
    let mut nonce = [0; 12];
    nonce[..4].copy_from_slice(&of_what.to_le_bytes());
    nonce[4..].copy_from_slice(&serial.to_le_bytes());
    Nonce::assume_unique_for_key(nonce)
}

/// Appends a variable-length integer (RFC 9000, section 16), below 2⁶².
fn put(out: &mut Vec<u8>, n: u64) {
    match n {
        0..0x40 => out.push(n as u8),
        0x40..0x4000 => out.extend_from_slice(&(n as u16 | 0x4000).to_be_bytes()),
        0x4000..0x4000_0000 => out.extend_from_slice(&(n as u32 | 0x8000_0000).to_be_bytes()),
        _ => out.extend_from_slice(&(n | 0xC000_0000_0000_0000).to_be_bytes()),
    }
}

fn take(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let first = *bytes.get(*at)?;
    let len = 1usize << (first >> 6);
    let all = bytes.get(*at..at.checked_add(len)?)?;
    *at += len;
    let head = u64::from(first & 0x3F);
    Some(all[1..].iter().fold(head, |n, b| n << 8 | u64::from(*b)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label() -> Label {
        GOLDEN
    }

    fn key(n: u8) -> DirectedKey {
        DirectedKey::new(&[n; 32], u16::from(n)).expect("a key")
    }

    fn sealed(hosts: u64, keys: &[&DirectedKey], text: &[u8]) -> Vec<u8> {
        let shape = Shape::Message(Geometry::new(text.len() as u32, &[]).expect("a shape"));
        let fill = |to: &mut [u8]| to.copy_from_slice(text);
        seal(&label(), (hosts, keys), 70_000, &[5; SECRET], shape, fill).expect("seals")
    }

    fn opened(label: &Label, own: u64, key: &DirectedKey, bytes: &[u8]) -> Result<Vec<u8>, SealError> {
        let mut bytes = bytes.to_vec();
        let (_, from, to) = open(label, own, key, &mut bytes)?;
        Ok(bytes[from..to].to_vec())
    }

    #[test]
    fn only_the_addressed_hosts_open_a_sealed_message() {
        let (a, b, c) = (key(1), key(2), key(3));
        for (hosts, keys) in [(0b100, vec![&a]), (0b111, vec![&a, &b, &c])] {
            let bytes = sealed(hosts, &keys, b"go on");
            assert!(!bytes.windows(5).any(|w| w == b"go on"), "in the clear");
            let bits: Vec<u64> = (0..3).map(|i| 1 << i).filter(|bit| hosts & bit != 0).collect();
            for (bit, key) in std::iter::zip(bits, keys) {
                assert_eq!(opened(&label(), bit, key, &bytes).expect("opens"), b"go on");
                let other = DirectedKey::new(&[9; 32], key.id).expect("a key");
                assert_eq!(opened(&label(), bit, &other, &bytes), Err(SealError::Forged));
            }
            assert_eq!(opened(&label(), 0b1000, &a, &bytes), Err(SealError::Key));
        }
        // The overhead: for one host, and for each of several.
        assert_eq!(sealed(1, &[&a], b"12345").len() - 5, 1 + 1 + 4 + 2 + 2 + 16);
        assert_eq!(
            sealed(3, &[&a, &b], b"12345").len() - 5,
            1 + 1 + 4 + 2 * 34 + 2 + 16
        );
    }

    #[test]
    fn another_number_stamp_topic_or_byte_is_refused() {
        let (a, b) = (key(1), key(2));
        for (hosts, keys) in [(0b1, vec![&a]), (0b11, vec![&a, &b])] {
            let bytes = sealed(hosts, &keys, b"go on");
            let good = label();
            for bad in [
                Label { number: 301, ..good },
                Label { stamp: 1, ..good },
                Label { origin: 0, ..good },
                Label {
                    context: [8; 32],
                    ..good
                },
            ] {
                assert_eq!(opened(&bad, 1, &a, &bytes), Err(SealError::Forged), "{bad:?}");
            }
            for n in 0..bytes.len() {
                assert!(opened(&good, 1, &a, &bytes[..n]).is_err(), "cut at {n}");
                let mut changed = bytes.clone();
                changed[n] ^= 0x10;
                // Another host's slot does not matter here.
                let others = hosts == 0b11 && (6 + 34..6 + 68).contains(&n);
                assert_eq!(opened(&good, 1, &a, &changed).is_err(), !others, "byte {n}");
            }
        }
    }

    #[test]
    fn a_host_that_opens_a_message_cannot_forge_another_from_it() {
        let (a, b) = (key(1), key(2));
        let genuine = sealed(0b11, &[&a, &b], b"stop!");
        // `a` knows the common secret, and puts its own body behind the slot of `b`.
        let mut forged = sealed(0b11, &[&a, &key(9)], b"go on");
        forged[6 + 34..6 + 68].copy_from_slice(&genuine[6 + 34..6 + 68]);
        assert_eq!(opened(&label(), 0b10, &b, &forged), Err(SealError::Forged));
        assert_eq!(opened(&label(), 0b10, &b, &genuine).expect("opens"), b"stop!");
    }

    /// Other implementations must read these, too. They are also the seeds of the fuzz target.
    #[test]
    fn golden_messages_are_read() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        let path = format!("{root}/tests/vectors/link/sealed.txt");
        let (a, b) = (DirectedKey::new(&[1; 32], 0x0201).expect("a key"), key(2));
        let tally = Tally {
            opened: 1000,
            asks: true,
        };
        let parts = Shape::Message(Geometry::new(2, &[3]).expect("a shape"));
        let fill = |to: &mut [u8]| to.copy_from_slice(&b"go on"[..to.len()]);
        let shaped = seal(&label(), (1, &[&a]), 2, &[5; SECRET], parts, fill).expect("seals");
        let notice = seal(&label(), (1, &[&a]), 3, &[5; SECRET], Shape::Notice, |_| {}).expect("seals");
        let all = [
            ("one host", sealed(1, &[&a], b"go on")),
            ("two hosts", sealed(3, &[&a, &b], b"go on")),
            ("a data part", shaped),
            ("notice", notice),
            ("tally", tally.seal(&a, 4).expect("seals")),
        ];
        let mut lines = String::new();
        for (what, bytes) in &all {
            let hex: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
            lines += &format!("{hex} {what}\n");
        }
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&path, &lines).expect("a writable file");
            let seeds = format!("{root}/fuzz/corpus/link_sealed");
            std::fs::create_dir_all(&seeds).expect("a folder");
            for (what, bytes) in &all {
                std::fs::write(format!("{seeds}/{}", what.replace(' ', "_")), bytes)
                    .expect("a writable file");
            }
        }
        assert_eq!(std::fs::read_to_string(&path).expect("reads"), lines);
    }

    #[test]
    fn tallies_are_their_host_s_alone() {
        let a = key(1);
        let tally = Tally {
            opened: 1 << 40,
            asks: true,
        };
        let bytes = tally.seal(&a, 77).expect("seals");
        assert_eq!(bytes.len(), TALLY_LEN);
        assert_eq!(Tally::open(&a, &bytes), Ok((tally, 77)));
        for n in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[n] ^= 1;
            assert!(Tally::open(&a, &changed).is_err(), "byte {n}");
            assert!(Tally::open(&a, &bytes[..n]).is_err(), "cut at {n}");
        }
    }

    #[test]
    fn shapes_are_kept() {
        let a = key(1);
        let parts = Geometry::new(3, &[0, 70, 1]).expect("a shape");
        for shape in [
            Shape::Notice,
            Shape::Message(parts),
            Shape::Message(Geometry::packed(100)),
            Shape::Message(Geometry::new(0, &[]).expect("a shape")),
        ] {
            let bytes = seal(&label(), (1, &[&a]), 1, &[0; SECRET], shape, |to| to.fill(3));
            let mut bytes = bytes.expect("seals");
            let (read, from, to) = open(&label(), 1, &a, &mut bytes).expect("opens");
            assert_eq!(read, shape);
            assert!(bytes[from..to].iter().all(|b| *b == 3));
        }
    }

    #[test]
    fn numbers_of_every_length_are_read() {
        for n in [0, 63, 64, 16_383, 16_384, (1 << 30) - 1, 1 << 30, (1 << 62) - 1] {
            let mut bytes = Vec::new();
            put(&mut bytes, n);
            let mut at = 0;
            assert_eq!((take(&bytes, &mut at), at), (Some(n), bytes.len()));
            assert_eq!(take(&bytes[..bytes.len() - 1], &mut 0), None);
        }
    }
}
