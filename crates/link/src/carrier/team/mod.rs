//! What carriers between hosts of one team share: keys, who is let in, when to dial, and which connection counts.

pub(super) mod dial;
pub(super) mod incoming;
pub(super) mod knock;
#[cfg(test)]
pub(super) mod pair;
pub(super) mod standing;
pub(super) mod watch;

use crate::keys::{Bundle, KeysError, host_of};
use crate::quiet::Quiet;
use dial::Dial;
use knock::Knock;
use rustls::client::Resumption;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What TLS calls our protocol; another version of the wire format gets another name.
const ALPN: &[u8] = b"ropewalk-link/4";
/// A handshake that takes longer is given up.
pub(super) const HANDSHAKE: Duration = Duration::from_secs(10);
/// How often certificates of open connections are looked at again, for those that expired meanwhile.
pub(super) const RECHECK: Duration = Duration::from_secs(60);
/// How often renewed keys are asked for.
pub(super) const RENEWAL: Duration = Duration::from_millis(250);
/// A peer that is away for longer is dialled anew.
pub(super) const IDLE: Duration = Duration::from_secs(30);
/// What kept a peer from being reached counts for so long: longer than the pause between two attempts.
const RECENT: Duration = Duration::from_secs(30);
/// A datagram or a connection comes from where a peer is, without what only the team knows.
pub(super) const STRANGE: &str = "what comes from there does not know this team's secret: its keys are of another team (copy it a set                                   made by `ropewalk keys host` of this one)";
/// How long the log does not repeat what attempts bring up again and again.
const SILENT: Duration = Duration::from_secs(30);

/// A peer of a carrier between hosts of one team.
#[derive(Clone, Debug)]
pub struct TeamPeer {
    /// The name in its certificate.
    pub name: String,
    /// Where to dial it. It may come from elsewhere.
    pub address: SocketAddr,
}

/// What a carrier keeps of a peer.
pub(super) struct Known {
    pub(super) name: String,
    pub(super) address: SocketAddr,
    /// We are first by name.
    pub(super) first: bool,
    pub(super) dial: Dial,
    pub(super) said: Said,
    /// Whence it last proved who it is.
    pub(super) proven: Option<IpAddr>,
    /// Why it was not reached last, and when that was seen.
    trouble: Option<(Cow<'static, str>, Instant)>,
}

/// Why a peer ends a connection, where it hears another host of this one's name at the same time.
pub(super) const IS_ANOTHER: &str = "another host with this one's name and keys is connected there, and stays: make keys for each host \
                                     (`ropewalk keys host`) and restart this link";

/// How many peers are expected at an address: they are configured there, or proved from there who they are.
pub(super) fn expected<'a>(peers: impl Iterator<Item = &'a Known>, from: IpAddr) -> usize {
    let from = from.to_canonical();
    let is_there = |p: &&Known| {
        p.address.ip().to_canonical() == from || p.proven.is_some_and(|a| a.to_canonical() == from)
    };
    peers.filter(is_there).count()
}

impl Known {
    /// As `host` knows it.
    pub(super) fn new(peer: TeamPeer, host: &str, now: Instant) -> Self {
        let first = *host < *peer.name;
        Known {
            name: peer.name,
            address: peer.address,
            first,
            dial: Dial::new(now, first),
            said: Said::default(),
            proven: None,
            trouble: None,
        }
    }

    /// Something keeps it from being reached.
    pub(super) fn meets(&mut self, trouble: impl Into<Cow<'static, str>>, now: Instant) {
        self.trouble = Some((trouble.into(), now));
    }

    /// What did so lately.
    pub(super) fn trouble(&self) -> Option<String> {
        let (text, at) = self.trouble.as_ref()?;
        (at.elapsed() < RECENT).then(|| text.clone().into_owned())
    }

    /// Tells in the log, once in a while, that two hosts are this peer.
    pub(super) fn tell_of_another(&mut self, from: IpAddr, now: Instant) {
        let text = format!("another host from {from}");
        if self.said.is_new(&text, now) {
            tracing::warn!(
                peer = self.name,
                %from,
                "a second host has this peer's name and keys, and is turned away while the first is heard: make keys for each host (`ropewalk keys host`)"
            );
        }
    }
}

/// TLS 1.3, mutual, from a host's bundle.
pub(super) struct Mutual {
    pub(super) client: rustls::ClientConfig,
    pub(super) server: rustls::ServerConfig,
    /// Says whether a certificate still counts.
    pub(super) verifier: Arc<dyn ClientCertVerifier>,
    pub(super) knock: Knock,
}

impl Mutual {
    pub(super) fn new(bundle: &Bundle) -> Result<Self, KeysError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let malformed = |e: rustls::Error| malformed(bundle, &e);
        let verifier = bundle.client_verifier(provider.clone())?;
        let mut server = rustls::ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(malformed)?
            .with_client_cert_verifier(verifier.clone())
            .with_single_cert(bundle.chain(), bundle.key())
            .map_err(malformed)?;
        server.alpn_protocols = vec![ALPN.to_vec()];
        // No resumption, so no 0-RTT: early data can be replayed (RFC 8446, section 8).
        server.send_tls13_tickets = 0;
        server.max_early_data_size = 0;
        let mut client = rustls::ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(malformed)?
            .with_webpki_verifier(bundle.server_verifier(provider)?)
            .with_client_auth_cert(bundle.chain(), bundle.key())
            .map_err(malformed)?;
        client.alpn_protocols = vec![ALPN.to_vec()];
        client.resumption = Resumption::disabled();
        client.enable_early_data = false;
        Ok(Mutual {
            client,
            server,
            verifier,
            knock: Knock::new(bundle.knock()),
        })
    }
}

/// Keys that TLS refuses.
pub(super) fn malformed(bundle: &Bundle, problem: &dyn std::fmt::Display) -> KeysError {
    KeysError::Malformed {
        path: bundle.folder().to_owned(),
        problem: format!("TLS refuses the keys: {problem}"),
    }
}

/// Whether what the other end showed still counts, if it showed anything.
pub(super) fn counts(
    verifier: &Arc<dyn ClientCertVerifier>,
    shown: Option<&CertificateDer<'_>>,
) -> Result<(), rustls::Error> {
    let shown = shown.ok_or(rustls::Error::NoCertificatesPresented)?;
    verifier.verify_client_cert(shown, &[], UnixTime::now()).map(drop)
}

static STRANGERS: Quiet = Quiet::new();
static UNLISTED: Quiet = Quiet::new();

/// Tells in the log, seldom, that a stranger was refused: a flood of them is to fill no disk.
pub(super) fn tell_of_stranger(from: IpAddr, reason: &dyn std::fmt::Display) {
    if let Some(more) = STRANGERS.lets() {
        tracing::warn!(%from, %reason, more, "a host was refused");
    }
}

/// Tells in the log, seldom, that a host was refused whose certificate is the team's, and that is no peer.
pub(super) fn tell_of_unlisted(from: IpAddr, certificate: Option<&CertificateDer<'_>>) {
    if let Some(more) = UNLISTED.lets() {
        let host = certificate.and_then(host_of).unwrap_or_default();
        tracing::warn!(host, %from, more, "a host of the team was refused: list it under `peers`, or stop its link");
    }
}

/// What an alert of TLS means between hosts of a team (RFC 8446, section 6).
pub(super) fn alert(code: u8) -> String {
    let text = match code {
        42 | 43 | 46 => "the certificate does not count",
        44 => "the certificate was revoked: make a new one with `ropewalk keys host`",
        45 => "the certificate has expired, or a clock is wrong: make a new one with `ropewalk keys host`",
        48 => "the certificate is of another team: both hosts need keys that one `ropewalk keys team` made",
        49 => "access is denied",
        112 => {
            "it is another host than the one that is expected there: check its name under `peers`, and the address"
        }
        116 => "there is no certificate",
        120 => "it speaks another version of the link's protocol: run the same release on both",
        _ => return format!("TLS alert {code}"),
    };
    text.to_owned()
}

/// What to say of a peer's connections in the log, once in a while.
#[derive(Debug, Default)]
pub(super) struct Said(Option<(String, Instant)>);

impl Said {
    /// Whether `text` was not said of late.
    pub(super) fn is_new(&mut self, text: &str, now: Instant) -> bool {
        let again = (self.0.as_ref())
            .is_some_and(|(said, at)| said == text && now.saturating_duration_since(*at) < SILENT);
        if !again {
            self.0 = Some((text.to_owned(), now));
        }
        !again
    }
}
