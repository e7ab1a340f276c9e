//! TLS 1.3, mutual, from a host's bundle.

use super::congestion::{Counters, Unbound};
use super::pieces::MOST_PIECES;
use crate::carrier::socket::MAX_PAYLOAD;
use crate::carrier::team::knock::Knock;
use crate::carrier::team::{self, IDLE, Mutual};
use crate::keys::{Bundle, KeysError};
use noq_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use noq_proto::{
    AckFrequencyConfig, ClientConfig, ConnectionId, IdleTimeout, ServerConfig, TransportConfig, VarInt,
};
use rustls::server::danger::ClientCertVerifier;
use std::sync::Arc;
use std::time::Duration;

/// What a dialled peer's first answer is reckoned to take. QUIC repeats its first packet after three times that, which is
/// longer than an attempt lives that nobody answers: attempts are repeated themselves ([`crate::carrier::team::dial`]), and to a host that
/// is out of reach each of these packets stands in the device queue for dozens of milliseconds, before what is for others.
const FIRST_ANSWER: Duration = Duration::from_millis(1_100);
/// Room for one datagram, and noq's bookkeeping of it.
const SEND_BUFFER: usize = MAX_PAYLOAD + 128;
/// On a wire for one datagram that is cut.
const WIRE_SEND_BUFFER: usize = MOST_PIECES * SEND_BUFFER;
/// What one packet holds is read at once.
const RECEIVE_BUFFER: usize = 64 << 10;
/// On a wire what packets hold that came together.
const WIRE_RECEIVE_BUFFER: usize = 256 << 10;

/// Everything of a connection that follows from the keys.
pub(super) struct Tls {
    client: Arc<QuicClientConfig>,
    server: ServerConfig,
    /// Says whether a certificate still counts.
    pub(super) verifier: Arc<dyn ClientCertVerifier>,
    pub(super) knock: Knock,
    habits: Habits,
}

/// What of a connection follows from the path.
#[derive(Clone, Copy)]
pub(super) struct Habits {
    /// Packets that are acknowledged together.
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
            knock,
        } = Mutual::new(bundle)?;
        let malformed = |e: &dyn std::fmt::Display| team::malformed(bundle, e);
        let server = QuicServerConfig::try_from(server).map_err(|e| malformed(&e))?;
        let mut server = ServerConfig::with_crypto(Arc::new(server));
        // Decided upon at once, so one is enough.
        server
            .max_incoming(16)
            .incoming_buffer_size(1 << 16)
            .incoming_buffer_size_total(1 << 18);
        server.validation_token.sent(0);
        Ok(Tls {
            client: Arc::new(QuicClientConfig::try_from(client).map_err(|e| malformed(&e))?),
            server,
            verifier,
            knock,
            habits,
        })
    }

    /// For a connection that we make.
    ///
    /// A QUIC client chooses the destination connection id of its first packet (RFC 9000, section 7.2): ours is the knock.
    pub(super) fn client(&self, counters: Arc<Counters>) -> ClientConfig {
        let mut config = ClientConfig::new(self.client.clone());
        let knock = self.knock.clone();
        let mut transport = self.transport(counters);
        transport.initial_rtt(FIRST_ANSWER);
        config
            .transport_config(Arc::new(transport))
            .initial_dst_cid_provider(Arc::new(move || ConnectionId::new(&knock.make())));
        config
    }

    /// For connections that others make.
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
            // What passes is found beside QUIC (`path_mtu.rs`), which would not go below 1,200 bytes; what does not goes in parts.
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
