//! Code that carriers between hosts of one team share: keys, admission, when to dial, and the choice of the
//! connection.

pub(super) mod admission;
pub(super) mod dial;
pub(super) mod incoming;
#[cfg(test)]
pub(super) mod pair;
pub(super) mod standing;
pub(super) mod watch;

use crate::keys::{Bundle, KeysError, host_of};
use admission::AdmissionKey;
use dial::Dial;
use rustls::client::Resumption;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The protocol's name in TLS. Another version of the wire format gets another name.
const ALPN: &[u8] = b"ropewalk-link/4";
/// A handshake that takes longer is given up.
pub(super) const HANDSHAKE: Duration = Duration::from_secs(10);
/// Interval at which to check the certificates of open connections again, which may have expired.
pub(super) const RECHECK: Duration = Duration::from_secs(60);
/// Interval at which to check for renewed keys.
pub(super) const RENEWAL: Duration = Duration::from_millis(250);
/// A connection without traffic for this long ends, and its peer is dialled again.
pub(super) const IDLE: Duration = Duration::from_secs(30);
/// How long the cause of a failed attempt is reported: longer than the pause between two attempts.
const RECENT: Duration = Duration::from_secs(30);
/// A datagram or a connection comes from a peer's address, but without proof of the team's secret.
pub(super) const OTHER_TEAM: &str = "the host there does not know this team's secret, so its keys are from \
                                     another team: create keys for it with `ropewalk keys host` in this \
                                     team, and copy them there";
/// How long the log does not repeat a message of repeated attempts.
const SILENT: Duration = Duration::from_secs(30);

/// A peer of a carrier between hosts of one team.
#[derive(Clone, Debug)]
pub struct TeamPeer {
    /// The name in its certificate.
    pub name: String,
    /// The address to dial. The peer may connect from another one.
    pub address: SocketAddr,
}

/// A carrier's knowledge of a peer.
pub(super) struct Known {
    pub(super) name: String,
    pub(super) address: SocketAddr,
    /// Whether this host is first by name.
    pub(super) first: bool,
    pub(super) dial: Dial,
    pub(super) last_logged: LastLogged,
    /// The address from which it last authenticated.
    pub(super) proven: Option<IpAddr>,
    /// Why the last attempt to reach it failed, and when.
    trouble: Option<(Cow<'static, str>, Instant)>,
}

/// Reason of a peer that ends a connection because another host with this host's name is connected at the
/// same time.
pub(super) const IS_ANOTHER: &str = "another host with this host's name and keys is connected there and has \
                                     precedence: create keys for each host (`ropewalk keys host`) and \
                                     restart this link";

/// Number of peers expected at an address: those configured there, and those that authenticated from there.
pub(super) fn expected<'a>(peers: impl Iterator<Item = &'a Known>, from: IpAddr) -> usize {
    let from = from.to_canonical();
    let is_there = |p: &&Known| {
        p.address.ip().to_canonical() == from || p.proven.is_some_and(|a| a.to_canonical() == from)
    };
    peers.filter(is_there).count()
}

impl Known {
    /// A peer as seen by `host`.
    pub(super) fn new(peer: TeamPeer, host: &str, now: Instant) -> Self {
        let first = *host < *peer.name;
        Known {
            name: peer.name,
            address: peer.address,
            first,
            dial: Dial::new(now, first),
            last_logged: LastLogged::default(),
            proven: None,
            trouble: None,
        }
    }

    /// Records why the peer cannot be reached.
    pub(super) fn meets(&mut self, trouble: impl Into<Cow<'static, str>>, now: Instant) {
        self.trouble = Some((trouble.into(), now));
    }

    /// Why it recently could not be reached.
    pub(super) fn trouble(&self) -> Option<String> {
        let (text, at) = self.trouble.as_ref()?;
        (at.elapsed() < RECENT).then(|| text.clone().into_owned())
    }

    /// Logs, once in a while, that two hosts claim to be this peer.
    pub(super) fn log_other_host(&mut self, from: IpAddr, now: Instant) {
        let text = format!("another host from {from}");
        if self.last_logged.is_new(&text, now) {
            tracing::warn!(
                peer = self.name,
                %from,
                "a second host has this peer's name and keys, and is refused while the first is connected: \
                 create keys for each host (`ropewalk keys host`)"
            );
        }
    }
}

/// Mutual TLS 1.3 from a host's bundle.
pub(super) struct Mutual {
    pub(super) client: rustls::ClientConfig,
    pub(super) server: rustls::ServerConfig,
    /// Checks whether a certificate is still valid.
    pub(super) verifier: Arc<dyn ClientCertVerifier>,
    pub(super) admission: AdmissionKey,
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
            admission: AdmissionKey::new(bundle.admission_secret()),
        })
    }
}

/// The error for keys that TLS rejects.
pub(super) fn malformed(bundle: &Bundle, problem: &dyn std::fmt::Display) -> KeysError {
    KeysError::Malformed {
        path: bundle.folder().to_owned(),
        problem: format!("TLS rejects the keys: {problem}"),
    }
}

/// Checks whether the certificate of the other end is still valid, if it presented one.
pub(super) fn counts(
    verifier: &Arc<dyn ClientCertVerifier>,
    shown: Option<&CertificateDer<'_>>,
) -> Result<(), rustls::Error> {
    let shown = shown.ok_or(rustls::Error::NoCertificatesPresented)?;
    verifier.verify_client_cert(shown, &[], UnixTime::now()).map(drop)
}

static REFUSED_HOSTS: clock::Quiet = clock::Quiet::new();
static UNLISTED: clock::Quiet = clock::Quiet::new();

/// Logs the refusal of an unknown host, rarely: a flood of them must not fill the disk.
pub(super) fn log_refused_host(from: IpAddr, reason: &dyn std::fmt::Display) {
    if let Some(more) = REFUSED_HOSTS.lets() {
        tracing::warn!("refused the host at {from}: {reason}{}", since(more));
    }
}

/// Logs, rarely, the refusal of a host of the team that is not a peer.
pub(super) fn log_unlisted_host(from: IpAddr, certificate: Option<&CertificateDer<'_>>) {
    if let Some(more) = UNLISTED.lets() {
        let host = certificate.and_then(host_of).unwrap_or_default();
        tracing::warn!(
            "refused {host} of the team, at {from}: list it under `peers`, or stop its link{}",
            since(more)
        );
    }
}

/// How many such messages were left out.
fn since(more: u64) -> String {
    match more {
        0 => String::new(),
        more => format!(" ({more} more since the last such message)"),
    }
}

/// The meaning of a TLS alert between hosts of a team (RFC 8446, section 6).
pub(super) fn alert(code: u8) -> String {
    let text = match code {
        42 | 43 | 46 => "the certificate is not valid",
        44 => "the certificate was revoked: create a new one with `ropewalk keys host`",
        45 => "the certificate has expired, or a clock is wrong: create a new one with `ropewalk keys host`",
        48 => {
            "the certificate is from another team: both hosts need keys of the same team (`ropewalk keys \
               --help`)"
        }
        49 => "access is denied",
        112 => "a different host answers there: check the peer's name and address under `peers`",
        116 => "no certificate was presented",
        120 => "it speaks another version of the link's protocol: run the same release on both",
        _ => return format!("TLS alert {code}"),
    };
    text.to_owned()
}

/// Limits the log messages about a peer's connections.
#[derive(Debug, Default)]
pub(super) struct LastLogged(Option<(String, Instant)>);

impl LastLogged {
    /// Returns whether `text` was not logged recently.
    pub(super) fn is_new(&mut self, text: &str, now: Instant) -> bool {
        let again = (self.0.as_ref()).is_some_and(|(last_logged, at)| {
            last_logged == text && now.saturating_duration_since(*at) < SILENT
        });
        if !again {
            self.0 = Some((text.to_owned(), now));
        }
        !again
    }
}
