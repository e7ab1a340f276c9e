//! The engine.

use crate::body::{Body, Message, Sink};
use crate::config::*;
use crate::statistics::*;
use core::time::Duration;
use stats::{DropReason, Time};

/// What [`Radio::poll_transmit`] has to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transmit {
    /// The buffer holds a datagram: hand it to `peer`'s carrier now. It is already charged as sent.
    Datagram {
        /// Where it goes.
        peer: PeerId,
        /// Of what importance it is, for DSCP: the topic's priority, or 127 for the protocol's own.
        priority: u8,
    },
    /// Something waits for the pacer: ask again at this time, or earlier if something was offered.
    Wait(Time),
    /// Nothing to send.
    Idle,
}

/// Why a datagram was not understood. It was counted and had no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PacketError {
    /// It came from an unknown peer id.
    #[error("no such peer")]
    NoSuchPeer,
}

/// One host's side of one radio; see the crate's page.
pub struct Radio<B> {
    _b: core::marker::PhantomData<B>,
}

#[allow(unused_variables, missing_docs)]
impl<B: Body> Radio<B> {
    /// A radio without peers.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn new(config: RadioConfig) -> Result<Self, ConfigError> {
        assert!(config.airtime.is_valid());
        todo!()
    }
    pub fn add_peer(&mut self, now: Time, config: PeerConfig) -> Result<PeerId, PeerError> {
        todo!()
    }
    pub fn remove_peer(&mut self, now: Time, peer: PeerId, sink: &mut impl Sink) {
        todo!()
    }
    pub fn add_topic(&mut self, now: Time, peer: PeerId, config: TopicConfig) -> Result<TopicId, TopicError> {
        todo!()
    }
    pub fn set_priority(&mut self, now: Time, topic: TopicId, priority: u8) -> Result<(), TopicError> {
        todo!()
    }
    pub fn set_depth(&mut self, now: Time, topic: TopicId, depth: u32) -> Result<(), TopicError> {
        todo!()
    }
    pub fn set_deadline(&mut self, topic: TopicId, deadline: Option<Duration>) -> Result<(), TopicError> {
        todo!()
    }
    pub fn set_max_rate(&mut self, topic: TopicId, hz: Option<f64>) -> Result<(), TopicError> {
        todo!()
    }
    /// Err: this very message was dropped (and counted) for that reason.
    pub fn offer(&mut self, now: Time, topic: TopicId, message: Message<B>) -> Result<(), DropReason> {
        todo!()
    }
    pub fn poll_transmit(&mut self, now: Time, datagram: &mut Vec<u8>) -> Transmit {
        todo!()
    }
    /// The carrier did not take the datagram of the last `poll_transmit`: counted.
    pub fn carrier_refused(&mut self, peer: PeerId) {
        todo!()
    }
    pub fn handle(
        &mut self,
        now: Time,
        peer: PeerId,
        datagram: &[u8],
        sink: &mut impl Sink,
    ) -> Result<(), PacketError> {
        todo!()
    }
    pub fn next_timeout(&self) -> Option<Time> {
        todo!()
    }
    pub fn handle_timeout(&mut self, now: Time, sink: &mut impl Sink) {
        todo!()
    }
    pub fn set_airtime(&mut self, airtime: crate::AirtimeModel) -> Result<(), ConfigError> {
        todo!()
    }
    pub fn topic_stats(&self, topic: TopicId) -> Option<TopicStats> {
        todo!()
    }
    pub fn topics(&self) -> Vec<(TopicId, TopicStats)> {
        todo!()
    }
    pub fn remote_topics(&self, peer: PeerId) -> Vec<(RemoteTopic, RemoteTopicStats)> {
        todo!()
    }
    pub fn peer_stats(&self, peer: PeerId) -> Option<PeerStats> {
        todo!()
    }
    pub fn stats(&self) -> RadioStats {
        todo!()
    }
}
