//! Entry points of the fuzz targets. Not part of the interface.

use crate::Config;
use crate::carrier::serial::frame::{Deframer, encode};
use crate::compress::Unpacker;
use crate::control::Change;
use crate::inbound::Inbound;
use crate::keys::Ledger;
use crate::outgoing::Outgoing;
use crate::tf::{TfConfig, TfFilter};
use bus::{Bus, TopicType};
use proto::{AirtimeModel, PeerConfig, PeerId, Radio, RadioConfig, ReceiveLimits, Transmit};
use schema::{Flavour, Registry, Schema};
use stats::Time;
use std::cell::RefCell;
use std::time::Duration;

/// A configuration file: any text yields a configuration or a one-line error.
pub fn config(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Err(error) = Config::parse(text) {
        assert_eq!(error.to_string().lines().count(), 1, "{error}");
    }
}

/// An envelope: for any input, nothing is unpacked beyond its shape, and an unpacked message has that shape.
pub fn envelope(data: &[u8]) {
    use crate::compress::envelope::{Engine, Envelope, MAX_MESSAGE};
    let Ok(envelope) = Envelope::open(data) else {
        return;
    };
    let total = envelope.geometry.total_len();
    assert!(total <= MAX_MESSAGE);
    // The memory would be shared memory, which a publisher bounds.
    if total <= 1 << 20 {
        let lens = std::iter::once(&envelope.geometry.control_len())
            .chain(envelope.geometry.part_lens())
            .copied()
            .collect::<Vec<u32>>();
        let mut places: Vec<Vec<u8>> = lens.iter().map(|n| vec![0; *n as usize]).collect();
        let _ = envelope.unpack(&mut Engine::default(), places.iter_mut().map(Vec::as_mut_slice));
    }
}

/// A peer's record of its ROS 2 nodes.
pub fn nodes(data: &[u8]) {
    crate::nodes::fuzz(data);
}

/// Bytes from relays: sealed messages, greetings and tallies.
pub fn sealed(data: &[u8]) {
    crate::seal::envelope::fuzz(data);
}

/// The header of a request or a reply: what parses encodes to the same bytes. The rest belongs to the server
/// or the caller.
pub fn call(data: &[u8]) {
    use crate::engine::calls::header::{Header, LEN, inner};
    let Some((head, rest)) = data.split_first_chunk::<LEN>() else {
        return;
    };
    if let Ok(header) = Header::parse(head) {
        assert_eq!(header.encode(), *head);
    }
    // A shape made of the remaining bytes: without its header it is shorter by the header's length, or it is
    // invalid.
    let lens: Vec<u32> = (rest.chunks_exact(4).take(proto::MAX_PARTS + 1))
        .map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
        .collect();
    if let Some((control, parts)) = lens.split_first()
        && let Ok(whole) = proto::Geometry::new(*control, parts)
        && let Some(inner) = inner(&whole)
    {
        assert_eq!(inner.total_len() + LEN as u32, whole.total_len());
        assert_eq!(inner.part_lens(), whole.part_lens());
    }
}

/// Pieces of long datagrams, each after its length. For any input, a joined datagram is not too long and ends
/// with its last piece, and a datagram after it is complete.
pub fn pieces(data: &[u8]) {
    use crate::carrier::quic::pieces::{HEAD, Joiner, MARK, MOST};
    use bytes::Bytes;
    let mut joiner = Joiner::default();
    let mut rest = data;
    while let Some((len, behind)) = rest.split_first() {
        let (piece, behind) = behind.split_at(behind.len().min(usize::from(*len)));
        rest = behind;
        if joiner.take(Bytes::copy_from_slice(piece)) == Ok(true) {
            let whole = joiner.whole();
            let joined = piece.first() == Some(&MARK);
            assert!(!joined || (1..=MOST).contains(&whole.len()));
            assert!(whole.ends_with(&piece[if joined { HEAD } else { 0 }..]));
        }
    }
    let first = Bytes::from_static(&[MARK, 0, 0, 2, 0, 0, 0, 7]);
    let last = Bytes::from_static(&[MARK, 0, 0, 2, 0, 1, 0, 8]);
    assert_eq!((joiner.take(first), joiner.take(last)), (Ok(false), Ok(true)));
    assert_eq!(joiner.whole(), [7, 8]);
}

/// Parts of packets that are too long for a path.
pub fn parts(data: &[u8]) {
    crate::carrier::quic::parts::fuzz(data);
}

/// A stream of datagrams; the first byte determines how it is split. For any input, at most one datagram and
/// the latest bytes are kept, the returned datagrams are neither empty nor too long, and an impossible length
/// is a permanent error.
pub fn stream(data: &[u8]) {
    use crate::carrier::tls::frames::{Cutter, HEAD, MOST};
    let Some((piece, rest)) = data.split_first() else {
        return;
    };
    let (mut cutter, mut out) = (Cutter::default(), 0);
    for bytes in rest.chunks(usize::from(*piece) + 1) {
        cutter.put(bytes);
        loop {
            match cutter.next() {
                Ok(Some(datagram)) => {
                    assert!((1..=MOST).contains(&datagram.len()));
                    out += HEAD + datagram.len();
                }
                Ok(None) => break,
                Err(error) => {
                    assert_eq!(cutter.next(), Err(error));
                    return;
                }
            }
        }
        assert!(cutter.kept() < HEAD + MOST);
    }
    assert_eq!(out + cutter.kept(), rest.len());
}

/// Bytes of a serial line. For any input, a frame after it is complete, and no returned datagram is too long.
pub fn serial_line(data: &[u8]) {
    const MAX: usize = 600;
    let mut deframer = Deframer::new(MAX);
    let mut rest = data;
    while !rest.is_empty() {
        if let Some(datagram) = deframer.next(&mut rest) {
            assert!((1..=MAX).contains(&datagram.len()));
            let mut line = Vec::new();
            encode(datagram, &mut line);
            let mut again = Deframer::new(MAX);
            assert_eq!(again.next(&mut &line[..]), Some(datagram));
        }
    }
    let mut line = Vec::new();
    encode(b"whole", &mut line);
    let mut rest = &line[..];
    let mut last = None;
    while !rest.is_empty() {
        last = deframer.next(&mut rest).map(<[u8]>::to_vec).or(last);
    }
    assert_eq!(last.as_deref(), Some(&b"whole"[..]));
}

/// A team's list of certificates: what parses prints to an equal list.
pub fn ledger(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Ok(ledger) = Ledger::parse(text) {
        assert_eq!(Ledger::parse(&ledger.to_string()), Ok(ledger));
    }
}

/// Changes of a topic as an operator requests them, one per line.
pub fn change(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Err(error) = Change::parse(&text.lines().collect::<Vec<_>>()) {
        let text = error.to_string();
        assert!(text.len() < 1_000 + data.len(), "{text}");
    }
}

thread_local! {
    /// Filters that live on for a while, as a link's do, and the number of messages that they took.
    static TRANSFORMS: RefCell<(Schema, [TfFilter; 2], u32)> = RefCell::new(filters());
}

fn filters() -> (Schema, [TfFilter; 2], u32) {
    let schema = Registry::new(Flavour::Ros1).schema("tf2_msgs/TFMessage");
    let schema = schema.expect("a type that is known");
    let filter = |name: &str| {
        let topic = TopicType {
            topic: name.into(),
            type_name: schema.name().into(),
            type_hash: schema.md5(),
            flavour: Default::default(),
            definition: schema.definition().into(),
        };
        let config = TfConfig {
            rate: Some(10.0),
            ..TfConfig::default()
        };
        TfFilter::new(&config, &topic).expect("a type that is filtered")
    };
    let both = [filter("/tf"), filter("/tf_static")];
    (schema, both, 0)
}

/// Transforms as another process of the host publishes them. The first byte determines how they are split
/// into parts, and whether they are static.
pub fn transforms(data: &[u8]) {
    let Some((cut, bytes)) = data.split_first() else {
        return;
    };
    let (control, part) = bytes.split_at(bytes.len().saturating_sub(usize::from(cut >> 1)));
    let parts: &[&[u8]] = if part.is_empty() { &[] } else { &[part] };
    TRANSFORMS.with_borrow_mut(|all| {
        if all.2 >= 256 {
            *all = filters();
        }
        let (schema, filters, taken) = all;
        *taken += 1;
        let now = clock::monotonic();
        if let Some(sent) = filters[usize::from(cut & 1)].apply(now, control, parts) {
            let read = schema.decode(&sent.control, &sent.slices());
            assert!(read.is_ok(), "the filter's output is readable");
        }
    });
}

/// A daemon behind its carrier: an authenticated peer's input makes publishers on a real bus and fills blocks
/// of its memory. It takes the frames of [`proto::fuzzing::honest_packets`], whose topics are `/0` to `/6`.
pub struct Gateway {
    radio: Radio<Outgoing>,
    peer: PeerId,
    inbound: Inbound,
    now: Time,
    taken: u64,
    datagram: Vec<u8>,
}

impl Gateway {
    /// Creates it on this bus.
    pub fn new(bus: Bus) -> Self {
        let topics: String = (0..7)
            .map(|i| format!("  - {{name: /{i}, direction: in}}\n"))
            .collect();
        let text = format!(
            "host: base\nradio: {{bind: '127.0.0.1:1', rate: auto}}\npeers:\n  - {{name: robot, address: '127.0.0.1:2'}}\ntopics:\n{topics}"
        );
        let config = Config::parse(&text).expect("a good configuration");
        let wanted = config.topics.iter().map(|t| t.name.clone()).collect();
        let mut inbound = Inbound::new(bus, wanted, &config, 1);
        inbound.unpack_by(Unpacker::start().expect("a thread"));
        let mut radio = Radio::new(RadioConfig {
            receive: ReceiveLimits {
                max_message: 1 << 16,
                max_partial: 16,
                max_topics: 8,
                ..ReceiveLimits::default()
            },
            ..RadioConfig::new(1, AirtimeModel::unlimited())
        })
        .expect("valid");
        let peer = radio.add_peer(Time::ZERO, PeerConfig::default()).expect("valid");
        Gateway {
            radio,
            peer,
            inbound,
            now: Time::ZERO,
            taken: 0,
            datagram: Vec::new(),
        }
    }

    /// Handles one input as [`proto::fuzzing::packet`] does, and advances the time a little.
    pub fn packet(&mut self, data: &[u8]) {
        let Some((mode, bytes)) = data.split_first() else {
            return;
        };
        self.taken += 1;
        let posed = match mode & 1 {
            0 => bytes.to_vec(),
            _ => proto::fuzzing::posed(1_000 + self.taken, bytes),
        };
        let _ = self.radio.handle(self.now, self.peer, &posed, &mut self.inbound);
        if self.taken.is_multiple_of(16) {
            self.now += Duration::from_millis(3);
            self.radio.handle_timeout(self.now, &mut self.inbound);
            self.inbound
                .flows
                .run_relay(self.now, &mut self.radio)
                .expect("topics are bounded");
            for _ in 0..8 {
                if !matches!(
                    self.radio.poll_transmit(self.now, &mut self.datagram),
                    Transmit::Datagram { .. }
                ) {
                    break;
                }
            }
            let _ = self.inbound.changes();
        }
        if self.taken.is_multiple_of(512) {
            self.inbound.sweep(self.now);
            let _ = self.inbound.recent(clock::realtime());
        }
    }

    /// Messages delivered so far in the peer's current session.
    pub fn delivered(&self) -> u64 {
        let topics = self.radio.remote_topics(self.peer);
        topics.map(|(_, t)| t.delivered).sum()
    }
}
