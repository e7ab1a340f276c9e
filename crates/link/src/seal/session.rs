//! The keys between this host and another, from one agreement to the next.

use super::envelope::DirectedKey;
use ring::agreement::{EphemeralPrivateKey, UnparsedPublicKey, X25519, agree_ephemeral};
use ring::hkdf::{HKDF_SHA256, KeyType, Prk, Salt};
use ring::rand::SystemRandom;
use std::collections::BTreeMap;

/// How far below the newest a topic's message numbers are remembered.
const SPAN: u64 = 1024;
const WORDS: usize = SPAN as usize / 64;
/// Most topics of one host for which numbers are remembered.
const MAX_WINDOWS: usize = 1024;

/// A key pair for one agreement.
pub(super) struct Pending {
    private: EphemeralPrivateKey,
    pub(super) public: [u8; 32],
}

impl Pending {
    /// `None` if the system provides no random numbers.
    pub(super) fn new(random: &SystemRandom) -> Option<Self> {
        let private = EphemeralPrivateKey::generate(&X25519, random).ok()?;
        let public = private.compute_public_key().ok()?;
        let public = public.as_ref().try_into().ok()?;
        Some(Pending { private, public })
    }

    /// Agrees with the key that the host `theirs` presented to this host, `own`. Returns `None` for an
    /// invalid key.
    pub(super) fn agree(self, own: u64, theirs: u64, key: &[u8; 32]) -> Option<Session> {
        let public = self.public;
        let other = UnparsedPublicKey::new(&X25519, key);
        let salt = Salt::new(HKDF_SHA256, b"ropewalk seal 1");
        let secret = agree_ephemeral(self.private, &other, |secret| salt.extract(secret)).ok()?;
        let (out, back) = ((own, &public), (theirs, key));
        // The same order at both ends.
        let (low, high) = if own < theirs { (out, back) } else { (back, out) };
        let id = expand::<8>(&secret, b"session", low, high)?;
        Some(Session {
            own: public,
            theirs: *key,
            // 0 stands for none.
            id: u64::from_le_bytes(id).max(1),
            seals: directed(&secret, out, back)?,
            opens: directed(&secret, back, out)?,
            confirmed: false,
            windows: BTreeMap::new(),
        })
    }
}

/// The keys of two hosts after an agreement.
pub(super) struct Session {
    pub(super) own: [u8; 32],
    pub(super) theirs: [u8; 32],
    pub(super) id: u64,
    pub(super) seals: DirectedKey,
    pub(super) opens: DirectedKey,
    /// Whether the other host has proved that it has them too.
    pub(super) confirmed: bool,
    /// Received numbers of each topic, by the digest of its announcement.
    windows: BTreeMap<[u8; 32], Window>,
}

impl Session {
    /// Returns whether a message of the topic with this number was received.
    pub(super) fn has(&self, context: &[u8; 32], number: u64) -> bool {
        self.windows.get(context).is_some_and(|w| w.has(number))
    }

    /// Returns whether the topic was proved to be the host's.
    pub(super) fn knows(&self, context: &[u8; 32]) -> bool {
        self.windows.contains_key(context)
    }

    /// Records a number. Returns false if that is impossible.
    pub(super) fn note(&mut self, context: &[u8; 32], number: u64) -> bool {
        if self.windows.len() >= MAX_WINDOWS && !self.windows.contains_key(context) {
            return false;
        }
        self.windows.entry(*context).or_default().note(number);
        true
    }
}

/// The received numbers. Those below the span count as received.
#[derive(Default)]
struct Window {
    bits: [u64; WORDS],
    /// One more than the newest number.
    top: u64,
}

impl Window {
    fn has(&self, number: u64) -> bool {
        let Some(age) = self.top.checked_sub(number).filter(|age| *age > 0) else {
            return false;
        };
        age > SPAN || self.bits[(number % SPAN / 64) as usize] >> (number % 64) & 1 == 1
    }

    fn note(&mut self, number: u64) {
        if number >= self.top {
            if number - self.top >= SPAN {
                self.bits = [0; WORDS];
            } else {
                for n in self.top..number {
                    self.bits[(n % SPAN / 64) as usize] &= !(1 << (n % 64));
                }
            }
            self.top = number.saturating_add(1);
        }
        self.bits[(number % SPAN / 64) as usize] |= 1 << (number % 64);
    }
}

type End<'a> = (u64, &'a [u8; 32]);

/// The key for messages from the end `from` to the end `to`.
fn directed(secret: &Prk, from: End<'_>, to: End<'_>) -> Option<DirectedKey> {
    let key = expand::<32>(secret, b"key", from, to)?;
    let id = expand::<2>(secret, b"id", from, to)?;
    DirectedKey::new(&key, u16::from_le_bytes(id))
}

struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

fn expand<const N: usize>(secret: &Prk, what: &[u8], from: End<'_>, to: End<'_>) -> Option<[u8; N]> {
    let (a, b) = (from.0.to_le_bytes(), to.0.to_le_bytes());
    let info = [what, &a, from.1, &b, to.1];
    let mut out = [0; N];
    secret.expand(&info, Length(N)).ok()?.fill(&mut out).ok()?;
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::super::envelope::{Label, SECRET, Shape, open, seal};
    use super::*;

    #[test]
    fn both_ends_have_the_same_keys_and_each_direction_its_own() {
        let random = SystemRandom::new();
        let pending = || Pending::new(&random).expect("random numbers");
        let (a, b) = (pending(), pending());
        let (of_a, of_b) = (a.public, b.public);
        let a = a.agree(5, 9, &of_b).expect("agrees");
        let b = b.agree(9, 5, &of_a).expect("agrees");
        assert_eq!(a.id, b.id);
        let label = Label {
            context: [1; 32],
            number: 1,
            stamp: 2,
            origin: 3,
        };
        let mut sealed =
            seal(&label, (1, &[&a.seals]), 1, &[0; SECRET], Shape::Notice, |_| {}).expect("seals");
        let reflected = open(&label, 1, &a.opens, &mut sealed.clone());
        assert!(reflected.is_err(), "one end's seal is not the other's");
        open(&label, 1, &b.opens, &mut sealed).expect("opens");
        assert!(pending().agree(5, 9, &[0; 32]).is_none(), "a key of small order");
    }

    #[test]
    fn a_number_comes_once() {
        let mut w = Window::default();
        assert!(!w.has(0) && !w.has(u64::MAX));
        for n in [5, 3, 64, 4, 70, 1_000] {
            assert!(!w.has(n), "{n}");
            w.note(n);
            assert!(w.has(n), "{n}");
        }
        assert!(!w.has(6) && !w.has(999) && !w.has(1_001));
        w.note(5_000);
        assert!(w.has(1_000) && w.has(3), "too old to know");
        assert!(!w.has(4_999) && !w.has(4_000), "never came");
        w.note(5_000 + SPAN / 2);
        assert!(w.has(5_000) && !w.has(5_001));
        w.note(u64::MAX);
        assert!(w.has(5_000));
    }

    #[test]
    fn topics_of_a_host_that_are_remembered_are_bounded() {
        let random = SystemRandom::new();
        let pending = || Pending::new(&random).expect("random numbers");
        let theirs = pending().public;
        let mut session = pending().agree(5, 9, &theirs).expect("agrees");
        let context = |n: usize| {
            let mut context = [0; 32];
            context[..8].copy_from_slice(&n.to_le_bytes());
            context
        };
        assert!((0..MAX_WINDOWS).all(|n| session.note(&context(n), 1)));
        assert!(!session.note(&context(MAX_WINDOWS), 1));
        assert!(session.note(&context(0), 2) && session.windows.len() == MAX_WINDOWS);
    }
}
