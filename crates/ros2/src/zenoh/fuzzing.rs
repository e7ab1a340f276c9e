//! Entry points for fuzzing data from a network: keys of tokens and attachments. Each panics if a round trip changes
//! the data.

use super::attachment::Attachment;
use super::keys;
use super::token::{Token, enclave_of};

/// Reads a key that may be a token's.
pub fn token(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let Some(mut token) = Token::read(text, 0) else {
        return;
    };
    let key = token.key(0).expect("a type that was read is one");
    assert_eq!(Token::read(&key, 0).as_ref(), Some(&token), "{text}");
    if let Some(endpoint) = &token.endpoint
        && let Some(key) = keys::of(
            0,
            &endpoint.name,
            &endpoint.type_name,
            endpoint.hash.unwrap_or_default(),
        )
    {
        assert!(
            key.split('/')
                .all(|part| !part.is_empty() && !part.contains(['*', '$', '?', '#'])),
            "{key}"
        );
    }
    if let Some(mark) = token.bridge() {
        token.enclave = enclave_of(mark);
        assert_eq!(token.bridge(), Some(mark));
    }
}

/// Reads an attachment.
pub fn attachment(bytes: &[u8]) {
    if let Some(attachment) = Attachment::decode(bytes) {
        assert!(bytes.starts_with(&attachment.encode()));
        attachment.time();
    }
}
