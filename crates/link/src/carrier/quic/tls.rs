//! Mutual TLS 1.3 from a host's bundle.

use super::congestion::{Counters, Unbound};
use super::pieces::MOST_PIECES;
use crate::carrier::socket::MAX_PAYLOAD;
use crate::carrier::team::admission::AdmissionKey;
use crate::carrier::team::{self, IDLE, Mutual};
use crate::keys::{Bundle, KeysError};
use noq_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use noq_proto::{
    AckFrequencyConfig, ClientConfig, ConnectionId, IdleTimeout, ServerConfig, TransportConfig, VarInt,
};
use rustls::server::danger::ClientCertVerifier;
use std::sync::Arc;
use std::time::Duration;

/// Assumed time for a dialled peer's first answer. QUIC retransmits its first packet after three times that,
/// which is longer than an unanswered attempt lasts: the carrier repeats attempts instead
/// ([`crate::carrier::team::dial`]). Each packet to a host out of reach stays in the device queue for dozens
/// of milliseconds, ahead of packets for others.
const FIRST_ANSWER: Duration = Duration::from_millis(1_100);
/// Room for one datagram and noq's bookkeeping of it.
const SEND_BUFFER: usize = MAX_PAYLOAD + 128;
/// On a wire, room for one datagram that is split.
const WIRE_SEND_BUFFER: usize = MOST_PIECES * SEND_BUFFER;
/// The datagrams of one packet, which are read at once.
const RECEIVE_BUFFER: usize = 64 << 10;
/// On a wire, the datagrams of packets that arrived together.
const WIRE_RECEIVE_BUFFER: usize = 256 << 10;

/// The parts of a connection's configuration that depend on the keys.
pub(super) struct Tls {
    client: Arc<QuicClientConfig>,
    server: ServerConfig,
    /// Checks whether a certificate is still valid.
    pub(super) verifier: Arc<dyn ClientCertVerifier>,
    pub(super) admission: AdmissionKey,
    habits: Habits,
}

/// The parts of a connection's configuration that depend on the path.
#[derive(Clone, Copy)]
pub(super) struct Habits {
    /// Number of packets that one acknowledgement covers.
    pub(super) ack_every: u32,
    /// The path is a wire.
    pub(super) wire: bool,
}

impl Tls {
    pub(super) fn new(bundle: &Bundle, habits: Habits) -> Result<Self, KeysError> {
        let Mutual {
            client,
            server,
            verifier,
            admission,
        } = Mutual::new(bundle)?;
        let malformed = |e: &dyn std::fmt::Display| team::malformed(bundle, e);
        let server = QuicServerConfig::try_from(server).map_err(|e| malformed(&e))?;
        let mut server = ServerConfig::with_crypto(Arc::new(server));
        // Incoming connections are decided at once, so one is enough.
        server
            .max_incoming(16)
            .incoming_buffer_size(1 << 16)
            .incoming_buffer_size_total(1 << 18);
        server.validation_token.sent(0);
        Ok(Tls {
            client: Arc::new(QuicClientConfig::try_from(client).map_err(|e| malformed(&e))?),
            server,
            verifier,
            admission,
            habits,
        })
    }

    /// Configuration of a connection that this host makes.
    ///
    /// A QUIC client chooses the destination connection id of its first packet (RFC 9000, section 7.2): here
    /// it is the admission token.
    pub(super) fn client(&self, counters: Arc<Counters>) -> ClientConfig {
        let mut config = ClientConfig::new(self.client.clone());
        let admission = self.admission.clone();
        let mut transport = self.transport(counters);
        transport.initial_rtt(FIRST_ANSWER);
        config
            .transport_config(Arc::new(transport))
            .initial_dst_cid_provider(Arc::new(move || ConnectionId::new(&admission.make())));
        config
    }

    /// Configuration of connections that other hosts make.
    pub(super) fn server(&self, counters: Arc<Counters>) -> Arc<ServerConfig> {
        let mut config = self.server.clone();
        config.transport_config(Arc::new(self.transport(counters)));
        Arc::new(config)
    }

    fn transport(&self, counters: Arc<Counters>) -> TransportConfig {
        let mut ack = AckFrequencyConfig::default();
        // On a half-duplex radio an acknowledgement costs as much air as a third of a data frame.
        ack.ack_eliciting_threshold(self.habits.ack_every.into())
            .reordering_threshold(VarInt::from_u32(0));
        let mtu = MAX_PAYLOAD as u16;
        let mut transport = TransportConfig::default();
        transport
            .max_concurrent_bidi_streams(VarInt::from_u32(0))
            .max_concurrent_uni_streams(VarInt::from_u32(0))
            .max_idle_timeout(IdleTimeout::try_from(IDLE).ok())
            .ack_frequency_config(Some(ack))
            .packet_threshold(64)
            // The path MTU is found outside QUIC (`path_mtu.rs`), which would not go below 1,200 bytes.
            // Longer packets are sent in parts.
            .initial_mtu(mtu)
            .min_mtu(mtu)
            .mtu_discovery_config(None)
            .enable_segmentation_offload(self.habits.wire)
            .allow_spin(false)
            .datagram_send_buffer_size(match self.habits.wire {
                true => WIRE_SEND_BUFFER,
                false => SEND_BUFFER,
            })
            .datagram_receive_buffer_size(Some(match self.habits.wire {
                true => WIRE_RECEIVE_BUFFER,
                false => RECEIVE_BUFFER,
            }))
            .congestion_controller_factory(Arc::new(Unbound(counters)));
        transport
    }
}
