//! Keys as text: Z85 (ZeroMQ's RFC 32), five characters for four bytes.
//!
//! The crate `zmq` has functions for it, but its decoder leaks the text of each key, and libzmq's accepts characters
//! outside the alphabet without an error.

const ALPHABET: &[u8; 85] =
    b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";

/// Returns the text of a key.
pub(super) fn encode(key: &[u8; 32]) -> String {
    let mut text = String::with_capacity(40);
    for four in key.chunks_exact(4) {
        let value = four.iter().fold(0, |value, byte| value << 8 | u32::from(*byte));
        let digit = |power: u32| char::from(ALPHABET[(value / 85_u32.pow(power) % 85) as usize]);
        text.extend((0..5).rev().map(digit));
    }
    text
}

/// Returns the key of a text. `None`: it is not 40 characters of the alphabet, or five of them exceed 32 bits.
pub(super) fn decode(text: &str) -> Option<[u8; 32]> {
    let mut key = [0; 32];
    if text.len() != 40 {
        return None;
    }
    for (five, four) in text.as_bytes().chunks_exact(5).zip(key.chunks_exact_mut(4)) {
        let value = five.iter().try_fold(0_u64, |value, character| {
            let digit = ALPHABET.iter().position(|c| c == character)?;
            Some(value * 85 + digit as u64)
        })?;
        four.copy_from_slice(&u32::try_from(value).ok()?.to_be_bytes());
    }
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The test vector of RFC 32, four times.
    #[test]
    fn the_vector_of_the_rfc_is_encoded_and_decoded() {
        let bytes = [0x86, 0x4F, 0xD2, 0x6F, 0xB5, 0x59, 0xF7, 0x5B].repeat(4);
        let text = "HelloWorld".repeat(4);
        assert_eq!(encode(bytes.as_slice().try_into().unwrap()), text);
        assert_eq!(decode(&text).unwrap().as_slice(), bytes);
    }

    #[test]
    fn values_beyond_32_bits_or_the_alphabet_are_no_key() {
        // 85^5 - 1 is above 2^32 - 1, which is "%nSc0".
        let key = |five: &str| decode(&five.repeat(8));
        assert_eq!(key("%nSc0"), Some([0xFF; 32]));
        for five in [
            "%nSc1",
            "#####",
            "    \"",
            "0000~",
            "0000\0",
            "\u{e9}000",
            "0000\n",
        ] {
            assert_eq!(key(five), None, "{five:?}");
        }
        assert_eq!(decode("00000"), None);
        assert_eq!(decode(&"0".repeat(45)), None);
    }

    proptest! {
        #[test]
        fn every_key_is_written_as_libzmq_writes_it(key: [u8; 32]) {
            let text = encode(&key);
            prop_assert_eq!(&text, &::zmq::z85_encode(&key).unwrap());
            prop_assert_eq!(decode(&text), Some(key));
        }

        #[test]
        fn any_text_gives_a_verdict_and_a_key_only_for_its_own_text(text in "[ -~]{38,42}") {
            if let Some(key) = decode(&text) {
                prop_assert_eq!(encode(&key), text);
            }
        }
    }
}
