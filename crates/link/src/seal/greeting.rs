//! How a host proves its identity to another one, over any relays, and announces its key
//! (`docs/wire/link.md`).

use ring::signature::{ED25519, Ed25519KeyPair, UnparsedPublicKey};
use rustls::pki_types::CertificateDer;

const VERSION: u8 = 1;
/// Prefix of the signed bytes, so that no other signature by the key can pass as one of a greeting.
const PURPOSE: &[u8] = b"ropewalk greeting 1";
const FIXED: usize = 1 + 1 + 32 + 16 + 16 + 8 + 2;
const SIGNATURE: usize = 64;
/// The longest certificate that is read, in bytes.
const MAX_CERTIFICATE: usize = 2048;
/// The longest greeting, in bytes.
pub(crate) const MAX_LEN: usize = FIXED + MAX_CERTIFICATE + SIGNATURE;
/// OBJECT IDENTIFIER 1.3.101.112 (RFC 8410): the host's key is an Ed25519 key.
const OID: &str = "1.3.101.112";

/// A greeting from one host to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Greeting<'a> {
    /// Whether it requests an answer.
    pub(super) asks: bool,
    /// Its X25519 key for the receiver.
    pub(super) public: [u8; 32],
    /// An unpredictable number for the receiver to echo.
    pub(super) challenge: [u8; 16],
    /// The latest challenge received from the other host.
    pub(super) echo: [u8; 16],
    /// Id of the session with the receiver; 0 if there is none.
    pub(super) session: u64,
    pub(super) certificate: &'a [u8],
}

/// Why a greeting is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum GreetingError {
    #[error("malformed greeting: wrong {0}")]
    Malformed(&'static str),
    #[error("the greeting is not signed with the key of its certificate")]
    Signature,
}

/// Sender and receiver, by host ids.
pub(super) type Between = (u64, u64);

impl<'a> Greeting<'a> {
    /// The bytes of a greeting, signed by `key`.
    pub(super) fn sign(&self, between: Between, key: &Ed25519KeyPair) -> Vec<u8> {
        let mut out = Vec::with_capacity(FIXED + self.certificate.len() + SIGNATURE);
        out.push(VERSION);
        out.push(u8::from(self.asks));
        out.extend_from_slice(&self.public);
        out.extend_from_slice(&self.challenge);
        out.extend_from_slice(&self.echo);
        out.extend_from_slice(&self.session.to_le_bytes());
        out.extend_from_slice(&(self.certificate.len() as u16).to_le_bytes());
        out.extend_from_slice(self.certificate);
        let signature = key.sign(&signed(between, &out));
        out.extend_from_slice(signature.as_ref());
        out
    }

    /// Reads a greeting and checks that the key of its certificate signed it. Does not check the
    /// certificate's owner and validity.
    pub(super) fn read(between: Between, bytes: &'a [u8]) -> Result<Self, GreetingError> {
        let malformed = GreetingError::Malformed;
        let Some((head, rest)) = bytes.split_first_chunk::<FIXED>() else {
            return Err(malformed("length"));
        };
        let [version, asks, numbers @ .., l0, l1] = head;
        let len = usize::from(u16::from_le_bytes([*l0, *l1]));
        if *version != VERSION || *asks > 1 {
            return Err(malformed("version"));
        }
        if len > MAX_CERTIFICATE || rest.len() != len + SIGNATURE {
            return Err(malformed("certificate's length"));
        }
        let (certificate, signature) = rest.split_at(len);
        let public = verified(certificate).ok_or(malformed("certificate"))?;
        let said = signed(between, &bytes[..FIXED + len]);
        let key = UnparsedPublicKey::new(&ED25519, public);
        key.verify(&said, signature)
            .map_err(|_| GreetingError::Signature)?;
        let (public, numbers) = part::<32>(numbers);
        let (challenge, numbers) = part::<16>(numbers);
        let (echo, numbers) = part::<16>(numbers);
        let (session, _) = part::<8>(numbers);
        Ok(Greeting {
            asks: *asks == 1,
            public,
            challenge,
            echo,
            session: u64::from_le_bytes(session),
            certificate,
        })
    }

    pub(super) fn certificate(&self) -> CertificateDer<'static> {
        CertificateDer::from(self.certificate.to_vec())
    }
}

fn signed((from, to): Between, said: &[u8]) -> Vec<u8> {
    [PURPOSE, &from.to_le_bytes(), &to.to_le_bytes(), said].concat()
}

fn part<const N: usize>(bytes: &[u8]) -> ([u8; N], &[u8]) {
    // The head is as long as its parts.
    bytes
        .split_first_chunk::<N>()
        .map_or(([0; N], &[]), |(p, rest)| (*p, rest))
}

/// The Ed25519 key of a certificate.
fn verified(certificate: &[u8]) -> Option<Vec<u8>> {
    let (rest, parsed) = x509_parser::parse_x509_certificate(certificate).ok()?;
    let key = parsed.public_key();
    let fits = rest.is_empty() && key.algorithm.algorithm.to_id_string() == OID;
    fits.then(|| key.subject_public_key.data.to_vec())
}

#[cfg(test)]
mod tests {
    use super::super::identity::Identity;
    use super::*;
    use crate::keys::{Bundle, Team};
    use std::time::Duration;

    #[test]
    fn a_greeting_is_its_host_s_to_one_other_and_whole() {
        let folder = tempfile::tempdir().expect("a folder");
        let team = Team::create(&folder.path().join("team"), "rovers").expect("makes");
        let day = Duration::from_secs(86_400);
        let bundle = team.add_host("robot", day).expect("makes");
        let bundle = Bundle::load(&bundle, "robot").expect("counts");
        let identity = Identity::new(&bundle).expect("an Ed25519 key");
        let greeting = Greeting {
            asks: true,
            public: [1; 32],
            challenge: [2; 16],
            echo: [3; 16],
            session: 4,
            certificate: &identity.certificate,
        };
        let bytes = greeting.sign((10, 20), &identity.key);
        println!("a greeting has {} bytes", bytes.len());
        if std::env::var_os("BLESS").is_some() {
            let path = concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/../../fuzz/corpus/link_sealed/greeting"
            );
            std::fs::write(path, &bytes).expect("a writable file");
        }
        assert_eq!(Greeting::read((10, 20), &bytes), Ok(greeting));
        for between in [(10, 21), (20, 10)] {
            assert_eq!(Greeting::read(between, &bytes), Err(GreetingError::Signature));
        }
        for n in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[n] ^= 0x20;
            assert!(Greeting::read((10, 20), &changed).is_err(), "byte {n}");
            assert!(Greeting::read((10, 20), &bytes[..n]).is_err(), "cut at {n}");
        }
        assert!(identity.counts(&identity.certificate, "robot"));
        assert!(
            !identity.counts(&identity.certificate, "base"),
            "another host's name"
        );
    }
}
