//! Entry points of the fuzz targets. Not part of the interface.

use crate::frame::{Decoder, Event};
use crate::{Access, Request, parse_json, upgrade};

/// Reads a request's head and what decides about it.
pub fn head(data: &[u8]) {
    match Request::parse(data) {
        Ok(Some((request, size))) => {
            assert!(size <= data.len());
            let access = Access::default();
            if let Err(refusal) = access.role(&request) {
                assert_eq!(refusal.to_string().lines().count(), 1);
            }
            let offered = upgrade::offered(&request);
            if let Ok(accepted) = upgrade::accept(&request, offered.first().cloned()) {
                // Nothing of the client's may start another line.
                assert!(accepted.head().lines().count() <= 6);
            }
        }
        Ok(None) => {}
        Err(error) => assert_eq!(error.to_string().lines().count(), 1),
    }
    let _ = parse_json(data);
}

/// Reads frames in chunks, whose length is the first byte: the result must be that of one chunk.
pub fn frames(data: &[u8]) {
    const MAX: usize = 4096;
    let Some((first, data)) = data.split_first() else {
        return;
    };
    let read = |chunk: usize| {
        let mut decoder = Decoder::new(MAX);
        let mut events: Vec<Event> = Vec::new();
        for bytes in data.chunks(chunk) {
            decoder.feed(bytes);
            loop {
                match decoder.next() {
                    Ok(Some(event)) => events.push(event),
                    Ok(None) => break,
                    Err(error) => return (events, Some(error)),
                }
            }
            assert!(decoder.held() <= 2 * MAX + 14 + chunk);
        }
        (events, None)
    };
    assert_eq!(read(usize::from(*first) + 1), read(data.len().max(1)));
}

/// Reads a message of a Foxglove client, as text and as bytes.
pub fn foxglove(data: &[u8]) {
    use crate::foxglove::message::Message;
    let text = Message::text(&String::from_utf8_lossy(data)).map_err(|e| e.to_string());
    let binary = Message::binary(data).map_err(|e| e.to_string());
    for error in [text.err(), binary.err()].into_iter().flatten() {
        assert!(error.lines().count() <= 1, "{error}");
    }
}
