//! The admission token: a sender that cannot prove knowledge of the team's shared secret gets no answer at
//! all.
//!
//! The token consists of 8 random bytes and 8 bytes of their HMAC-SHA256 under the team's secret. A server
//! checks it before it keeps or sends anything. A host that overhears a token can repeat it, but then faces
//! TLS (decision 072).

use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};

const RANDOM: usize = 8;
const PROOF: usize = 8;

/// Length of a token, in bytes.
pub(in crate::carrier) const TOKEN_LEN: usize = RANDOM + PROOF;

#[derive(Clone)]
pub(in crate::carrier) struct AdmissionKey(hmac::Key);

impl AdmissionKey {
    pub(in crate::carrier) fn new(secret: &[u8; 32]) -> Self {
        AdmissionKey(hmac::Key::new(hmac::HMAC_SHA256, secret))
    }

    /// Makes a fresh token.
    pub(in crate::carrier) fn make(&self) -> [u8; TOKEN_LEN] {
        let mut id = [0; TOKEN_LEN];
        let (random, proof) = id.split_at_mut(RANDOM);
        // Without random numbers the handshake fails anyway.
        let _ = SystemRandom::new().fill(random);
        proof.copy_from_slice(&hmac::sign(&self.0, random).as_ref()[..PROOF]);
        id
    }

    /// Returns whether `id` was made with the secret. Runs in constant time.
    pub(in crate::carrier) fn accepts(&self, id: &[u8]) -> bool {
        if id.len() != TOKEN_LEN {
            return false;
        }
        let (random, proof) = id.split_at(RANDOM);
        let good = hmac::sign(&self.0, random);
        let differ = std::iter::zip(proof, good.as_ref()).fold(0, |all, (a, b)| all | (a ^ b));
        differ == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_admission_tokens_of_the_team_are_accepted() {
        let (ours, theirs) = (AdmissionKey::new(&[1; 32]), AdmissionKey::new(&[2; 32]));
        let id = ours.make();
        assert!(ours.accepts(&id) && !theirs.accepts(&id));
        assert_ne!(ours.make(), id);
        for at in 0..id.len() {
            let mut bad = id.to_vec();
            bad[at] ^= 1;
            assert!(!ours.accepts(&bad), "{at}");
        }
        assert!(!ours.accepts(&id[..15]) && !ours.accepts(&[]));
    }
}
