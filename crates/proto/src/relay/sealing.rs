//! Sealing, which keeps relays from reading or changing what they carry: the interface to the holder of the keys.

use super::FlowKey;
use crate::announcement::{Announcement, Via};
use crate::body::Message;

/// A message of this host that others carry.
#[derive(Clone, Copy, Debug)]
pub struct Sealing<'a> {
    /// Its flow.
    pub key: &'a FlowKey,
    /// The announcement of the flow, without its `via`.
    pub announcement: &'a Announcement,
    /// Its source and destinations.
    pub via: &'a Via,
    /// Its number in the flow.
    pub number: u64,
    /// Its destinations on this route, as bits of [`Via::to`].
    pub to: u64,
    /// The neighbour's own bit, 0 if it is not a destination: it may have the message unsealed.
    pub own: u64,
}

/// Result of sealing a message.
#[derive(Clone, Debug)]
pub enum Sealed<B> {
    /// It is sent as it is: there are no keys, or its content proves itself.
    Clear,
    /// Sealed for these hosts. The others have not shown a key yet.
    For(B, u64),
    /// No host has shown a key yet. The sealer keeps the message and offers it again once one has.
    Later,
    /// No host has shown a key yet, and the message is not kept.
    Nobody,
}

/// Seals messages for their destinations.
pub trait Sealer<B> {
    /// Seals a message, as far as keys are known.
    fn seal(&mut self, of: &Sealing<'_>, message: &Message<B>) -> Sealed<B>;

    /// There is no route to some destinations of a message of a latched topic: it may be kept for them.
    fn missed(&mut self, of: &Sealing<'_>, message: &Message<B>) {
        let _ = (of, message);
    }
}

/// Without keys everything is sent as it is.
impl<B> Sealer<B> for () {
    fn seal(&mut self, _: &Sealing<'_>, _: &Message<B>) -> Sealed<B> {
        Sealed::Clear
    }
}
