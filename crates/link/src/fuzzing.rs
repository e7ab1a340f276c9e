//! What the fuzz targets call. Not part of the interface.

use crate::Config;
use crate::carrier::serial::frame::{Deframer, encode};
use crate::keys::Ledger;

/// A configuration file: any text gives a configuration or one line that says what is wrong.
pub fn config(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Err(error) = Config::parse(text) {
        assert_eq!(error.to_string().lines().count(), 1, "{error}");
    }
}

/// An envelope: whatever it says, nothing is unpacked beyond its shape, and what unpacks has that shape.
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

/// The front of a request or a reply: what is read is written alike. What follows it is the server's or the caller's.
pub fn call(data: &[u8]) {
    use crate::services::header::{Header, LEN};
    use crate::services::letter::inner;
    let Some((head, rest)) = data.split_first_chunk::<LEN>() else {
        return;
    };
    if let Ok(header) = Header::parse(head) {
        assert_eq!(header.encode(), *head);
    }
    // A shape made of the rest: without its header it is shorter by just that, or it is none.
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

/// Bytes of a serial line: whatever comes, a frame after it is whole, and nothing that comes out is too long.
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

/// A team's list of certificates: what is read is written alike.
pub fn ledger(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Ok(ledger) = Ledger::parse(text) {
        assert_eq!(Ledger::parse(&ledger.to_string()), Ok(ledger));
    }
}

#[cfg(test)]
mod tests {
    fn mutated(name: &str, target: fn(&[u8])) {
        let folder = format!("{}/../../fuzz/corpus/{name}", env!("CARGO_MANIFEST_DIR"));
        let mut seeds = 0;
        let mut state = 1u64;
        for entry in std::fs::read_dir(folder).expect("the corpus is there") {
            let good = std::fs::read(entry.expect("an entry").path()).expect("reads");
            target(&good);
            for round in 0..20_000 {
                let mut bad = good.clone();
                for _ in 0..1 + round % 4 {
                    state = state
                        .wrapping_mul(6364136223846793005)
                        .wrapping_add(1442695040888963407);
                    let at = (state >> 33) as usize % bad.len();
                    bad[at] = (state >> 20) as u8;
                }
                target(&bad[..bad.len() - (state >> 50) as usize % bad.len() / 2]);
            }
            seeds += 1;
        }
        assert!(seeds >= 1);
    }

    #[test]
    fn mutated_envelopes_are_refused_or_unpacked() {
        mutated("link_envelope", super::envelope);
    }

    #[test]
    fn mutated_calls_are_refused_or_read() {
        mutated("link_call", super::call);
    }

    #[test]
    fn mutated_lines_are_survived() {
        mutated("serial_line", super::serial_line);
    }

    #[test]
    fn mutated_ledgers_are_refused_or_read() {
        mutated("keys_ledger", super::ledger);
    }

    #[test]
    fn the_corpus_is_replayed() {
        let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/link_config");
        let mut seeds = 0;
        for entry in std::fs::read_dir(corpus).expect("the corpus is there") {
            super::config(&std::fs::read(entry.expect("an entry").path()).expect("reads"));
            seeds += 1;
        }
        assert!(seeds >= 2);
    }

    #[test]
    fn cut_and_mutated_configurations_are_refused_or_read() {
        let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/link_config/robot");
        let good = std::fs::read(corpus).expect("reads");
        super::config(&good);
        for cut in 0..good.len() {
            super::config(&good[..cut]);
        }
        let mut state = 1u64;
        for _ in 0..5000 {
            let mut bad = good.clone();
            for _ in 0..3 {
                state = state
                    .wrapping_mul(6364136223846793005)
                    .wrapping_add(1442695040888963407);
                let at = (state >> 33) as usize % bad.len();
                bad[at] = b" \n:-{}[]&*!'\"09azM"[(state >> 20) as usize % 18];
            }
            super::config(&bad);
        }
    }
}
