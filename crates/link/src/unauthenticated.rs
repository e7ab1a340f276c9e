//! The packets that an unknown host can send to a link, for tests and benchmarks of floods. Not part of the
//! interface.

use noq_proto::crypto::rustls::QuicClientConfig;
use noq_proto::{
    ClientConfig, ConnectionId, ConnectionIdGenerator, Endpoint, EndpointConfig, EndpointEvent,
    RandomConnectionIdGenerator,
};
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Instant;

/// The secret in the file [`crate::keys::ADMISSION_SECRET`].
pub fn admission_secret(text: &str) -> Option<[u8; 32]> {
    let mut secret = [0; 32];
    for (i, b) in secret.iter_mut().enumerate() {
        *b = u8::from_str_radix(text.get(2 * i..2 * i + 2)?, 16).ok()?;
    }
    Some(secret)
}

/// A QUIC client without a certificate, with or without the team's admission secret.
pub fn client(admission_secret: Option<[u8; 32]>) -> ClientConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("ring has TLS 1.3")
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"ropewalk-link/4".to_vec()];
    let crypto = QuicClientConfig::try_from(tls).expect("ring has QUIC's first cipher");
    let mut config = ClientConfig::new(Arc::new(crypto));
    if let Some(secret) = admission_secret {
        let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &secret);
        config.initial_dst_cid_provider(Arc::new(move || {
            let random = RandomConnectionIdGenerator::new(8).generate_cid();
            let mut id = random.to_vec();
            id.extend_from_slice(&ring::hmac::sign(&key, &random).as_ref()[..8]);
            ConnectionId::new(&id)
        }));
    }
    config
}

/// First packets of handshakes that never continue.
pub struct UnauthenticatedPeer {
    endpoint: Endpoint,
    config: ClientConfig,
}

impl UnauthenticatedPeer {
    /// Creates one with or without the team's admission secret.
    pub fn new(admission_secret: Option<[u8; 32]>) -> Self {
        UnauthenticatedPeer {
            endpoint: Endpoint::new(Arc::new(EndpointConfig::default()), None, false),
            config: client(admission_secret),
        }
    }

    /// The first packet of another handshake with the host `name` at `target`; `None` if no handshake can
    /// start.
    pub fn first_packet(&mut self, name: &str, target: SocketAddr) -> Option<Vec<u8>> {
        let now = Instant::now();
        let begun = self.endpoint.connect(now, self.config.clone(), target, name);
        let (handle, mut connection) = begun.ok()?;
        let mut packet = Vec::new();
        let sent = connection.poll_transmit(now, NonZeroUsize::MIN, &mut packet);
        self.endpoint.handle_event(handle, EndpointEvent::drained());
        sent.map(|_| packet)
    }
}
