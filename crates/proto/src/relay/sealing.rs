//! What keeps relays from reading and changing what they carry: the border to whoever has the keys.

use super::FlowKey;
use crate::announcement::{Announcement, Via};
use crate::body::Message;

/// A message of this host that others are to carry.
#[derive(Clone, Copy, Debug)]
pub struct Sealing<'a> {
    /// Its flow.
    pub key: &'a FlowKey,
    /// How the flow is announced, without its `via`.
    pub announcement: &'a Announcement,
    /// Whose it is and for whom.
    pub via: &'a Via,
    /// Its number in the flow.
    pub number: u64,
    /// The hosts that it is for on this way, bits of [`Via::to`].
    pub to: u64,
    /// The neighbour's own bit, 0 if it is none of the hosts: it may have the message unsealed.
    pub own: u64,
}

/// What became of a message that was to be sealed.
#[derive(Clone, Debug)]
pub enum Sealed<B> {
    /// It goes as it is: there are no keys, or what it says proves itself.
    Clear,
    /// Sealed for these hosts. The others have shown no key yet.
    For(B, u64),
    /// No host has shown a key yet. Who seals keeps it, and offers it again when one has.
    Later,
    /// No host has shown a key yet, and it is not kept.
    Nobody,
}

/// Seals messages for the hosts that they are for.
pub trait Sealer<B> {
    /// Seals one, as far as keys are known.
    fn seal(&mut self, of: &Sealing<'_>, message: &Message<B>) -> Sealed<B>;

    /// There is no way to hosts that a message of a latched topic is for: it may be kept for them.
    fn missed(&mut self, of: &Sealing<'_>, message: &Message<B>) {
        let _ = (of, message);
    }
}

/// Without keys everything goes as it is.
impl<B> Sealer<B> for () {
    fn seal(&mut self, _: &Sealing<'_>, _: &Message<B>) -> Sealed<B> {
        Sealed::Clear
    }
}
