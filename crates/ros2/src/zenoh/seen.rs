//! Nodes and endpoints of others, from their tokens, while these exist. Bounded, whatever others declare.

use super::token::{MAX_TOKEN, Token};
use crate::wire::{Id, Named, Picture, Seen, SeenNode, SeenParticipant, counts};
use bridge::nodes::Kind;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use twox_hash::XxHash3_128;

/// Maximum number of endpoints of others, and of nodes.
const MAX_ENDPOINTS: usize = 4_096;
const MAX_NODES: usize = 1_024;
/// Maximum number of endpoints whose messages have a different identity than their token.
const MAX_ALIASES: usize = 1_024;
/// How long tokens that a lost router reported are kept once there is a router again.
const SETTLING: Duration = Duration::from_secs(5);

/// The nodes and endpoints of others.
#[derive(Debug, Default)]
pub(super) struct Others {
    /// Whether this bridge carries what other bridges send.
    from_bridges: bool,
    tokens: BTreeMap<Id, Entry>,
    endpoints: usize,
    /// Endpoints by identities that differ from those of their tokens.
    aliases: BTreeMap<Id, Id>,
    /// Whether there was a router, and when it was last missing after that.
    had_router: bool,
    lost: Option<Instant>,
    refused: BTreeMap<&'static str, u64>,
}

#[derive(Debug)]
struct Entry {
    token: Token,
    /// Whether its token has ended, possibly only as seen from here.
    is_gone: bool,
    /// Whether a message arrived under its token's identity.
    is_heard: bool,
}

/// The identity that rmw_zenoh derives from a token.
pub(super) fn id(key: &str) -> Id {
    XxHash3_128::oneshot(key.as_bytes()).to_le_bytes()
}

impl Others {
    /// No others yet. `from_bridges`: whether this bridge carries what other bridges send.
    pub(super) fn new(from_bridges: bool) -> Self {
        Others {
            from_bridges,
            ..Others::default()
        }
    }

    /// Handles a declared token. Returns whether something has changed.
    pub(super) fn begins(&mut self, key: &str, domain: u32, own: &str) -> bool {
        if key.len() > MAX_TOKEN {
            self.refuse("announcements");
            return false;
        }
        let id = id(key);
        if let Some(known) = self.tokens.get_mut(&id) {
            return std::mem::take(&mut known.is_gone);
        }
        let Some(token) = Token::read(key, domain) else {
            self.refuse("announcements");
            return false;
        };
        if token.session == own {
            return false;
        }
        self.aliases.remove(&id);
        let (reason, is_full) = match token.endpoint {
            Some(_) => ("endpoints", self.endpoints >= MAX_ENDPOINTS),
            None => ("participants", self.tokens.len() - self.endpoints >= MAX_NODES),
        };
        if is_full {
            self.refuse(reason);
            return false;
        }
        self.endpoints += usize::from(token.endpoint.is_some());
        let entry = Entry {
            token,
            is_gone: false,
            is_heard: false,
        };
        self.tokens.insert(id, entry);
        true
    }

    /// Handles the end of a token, or of the path to it.
    pub(super) fn ends(&mut self, key: &str) -> bool {
        let entry = self.tokens.get_mut(&id(key));
        entry.is_some_and(|e| !std::mem::replace(&mut e.is_gone, true))
    }

    /// Forgets endpoints that are gone. While a router that existed is missing, and for a while after, none is gone:
    /// tokens that come back are the same as before, so nothing is delivered twice.
    pub(super) fn settle(&mut self, has_router: bool, now: Instant) {
        self.had_router |= has_router;
        if self.had_router && !has_router {
            self.lost = Some(now);
        }
        if self.lost.is_some_and(|lost| now.duration_since(lost) < SETTLING) {
            return;
        }
        let endpoints = &mut self.endpoints;
        self.tokens.retain(|_, entry| {
            *endpoints -= usize::from(entry.is_gone && entry.token.endpoint.is_some());
            !entry.is_gone
        });
        let tokens = &self.tokens;
        self.aliases.retain(|_, of| tokens.contains_key(of));
    }

    pub(super) fn picture(&self) -> Picture {
        let mut out = Picture::default();
        let mut nodes: BTreeMap<(Id, u64, &str, &str), Vec<Id>> = BTreeMap::new();
        for (id_of, Entry { token, .. }) in &self.tokens {
            let participant = id(&token.session);
            let known = out
                .participants
                .entry(participant)
                .or_insert_with(|| SeenParticipant {
                    enclave: token.enclave.clone(),
                    ..SeenParticipant::default()
                });
            known.bridge = known.bridge.or(token.bridge());
            let node = nodes.entry((participant, token.node, &token.namespace, &token.name));
            let node = node.or_default();
            let Some(endpoint) = &token.endpoint else {
                continue;
            };
            node.push(*id_of);
            let seen = Seen {
                id: *id_of,
                kind: endpoint.kind,
                what: Named {
                    name: endpoint.name.clone(),
                    type_name: endpoint.type_name.clone(),
                    hashes: [endpoint.hash, None],
                    ..Named::default()
                },
                qos: endpoint.qos,
                participant,
            };
            out.endpoints.insert(*id_of, seen);
        }
        for ((participant, _, namespace, name), endpoints) in nodes {
            if let Some(known) = out.participants.get_mut(&participant) {
                known.nodes.push(SeenNode {
                    namespace: namespace.to_owned(),
                    name: name.to_owned(),
                    endpoints,
                });
            }
        }
        out
    }

    /// Number of endpoints of a kind with this name and type, excluding those of bridges that do not count.
    pub(super) fn count(&self, kind: Kind, what: &Named, hash: Option<[u8; 32]>) -> usize {
        let fits = |entry: &&Entry| {
            let endpoint = entry.token.endpoint.as_ref();
            endpoint.is_some_and(|e| {
                e.kind == kind && e.name == what.name && e.type_name == what.type_name && e.hash == hash
            }) && counts(kind, entry.token.bridge(), self.from_bridges)
        };
        self.tokens.values().filter(fits).count()
    }

    /// Returns the endpoint that sent a message on a topic. Some libraries give their messages a different identity
    /// than their token has. The first such identity is assigned to a publisher of the topic that has not sent yet. If
    /// there is none, the token is still on its way.
    pub(super) fn sender(&mut self, sender: Id, what: &Named) -> Id {
        if let Some(entry) = self.tokens.get_mut(&sender) {
            entry.is_heard = true;
            return sender;
        }
        if let Some(of) = self.aliases.get(&sender) {
            return *of;
        }
        let taken: Vec<Id> = self.aliases.values().copied().collect();
        let fits = |(id, entry): &(&Id, &Entry)| {
            let endpoint = entry.token.endpoint.as_ref();
            endpoint.is_some_and(|e| {
                e.kind == Kind::Publisher && e.name == what.name && e.type_name == what.type_name
            }) && !entry.is_heard
                && counts(Kind::Publisher, entry.token.bridge(), self.from_bridges)
                && !taken.contains(id)
        };
        let Some(of) = self.tokens.iter().find(fits).map(|(id, _)| *id) else {
            return sender;
        };
        if self.aliases.len() >= MAX_ALIASES {
            self.refuse("identities");
            return sender;
        }
        self.aliases.insert(sender, of);
        of
    }

    /// Whether messages with this identity may arrive.
    pub(super) fn knows(&self, sender: &Id) -> bool {
        self.tokens.contains_key(sender) || self.aliases.contains_key(sender)
    }

    pub(super) fn refuse(&mut self, reason: &'static str) {
        self.refuse_some(reason, 1);
    }

    pub(super) fn refuse_some(&mut self, reason: &'static str, count: u64) {
        if count > 0 {
            let counter = self.refused.entry(reason).or_default();
            *counter = counter.saturating_add(count);
        }
    }

    pub(super) fn refused(&self) -> BTreeMap<&'static str, u64> {
        self.refused.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18";

    fn key(session: &str, entity: usize, kind: &str, enclave: &str) -> String {
        format!(
            "@ros2_lv/0/{session}/0/{entity}/{kind}/{enclave}/%/talker/%chatter/std_msgs::msg::dds_::String_/{HASH}/::,7:,:,:,,"
        )
    }

    fn chatter() -> Named {
        Named {
            name: "/chatter".into(),
            type_name: "std_msgs/msg/String".into(),
            ..Named::default()
        }
    }

    #[test]
    fn identities_are_those_of_rmw_zenoh() {
        // As Python's xxhash library computes it, low half first.
        let key = "@ros2_lv/0/aac3178e146ba6f1fc6e6a4085e77f21/0/10/MP/%/%/talker";
        let hex: String = id(key).iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(hex, "da1680f71da5627c7e3391557df55986");
    }

    #[test]
    fn nodes_and_endpoints_come_and_go() {
        let mut others = Others::default();
        let now = Instant::now();
        let one = key("a1", 1, "MP", "%");
        assert!(others.begins(&one, 0, "b2"));
        assert!(!others.begins(&one, 0, "b2"));
        assert!(!others.begins(&key("b2", 1, "MP", "%"), 0, "b2"));
        assert!(!others.begins("@ros2_lv/0/none", 0, "b2"));
        assert_eq!(others.refused()["announcements"], 1);
        let picture = others.picture();
        assert_eq!(picture.endpoints.len(), 1);
        let participant = picture.participants.values().next().unwrap();
        assert_eq!(participant.nodes[0].endpoints, [id(&one)]);
        assert_eq!(participant.nodes[0].name, "talker");
        assert!(others.ends(&one) && !others.ends(&one));
        others.settle(true, now);
        assert!(others.picture().participants.is_empty());
    }

    #[test]
    fn entities_of_a_lost_router_stay_until_a_router_returns() {
        let mut others = Others::default();
        let start = Instant::now();
        let (one, other) = (key("a1", 1, "MP", "%"), key("a1", 2, "MP", "%"));
        others.begins(&one, 0, "b2");
        others.begins(&other, 0, "b2");
        others.settle(true, start);
        others.ends(&one);
        others.ends(&other);
        others.settle(false, start + Duration::from_secs(100));
        others.settle(true, start + Duration::from_secs(101));
        assert_eq!(others.picture().endpoints.len(), 2);
        assert!(others.begins(&one, 0, "b2"));
        others.settle(true, start + Duration::from_secs(106));
        assert_eq!(
            others.picture().endpoints.into_keys().collect::<Vec<_>>(),
            [id(&one)]
        );
    }

    #[test]
    fn endpoints_and_nodes_are_bounded() {
        let mut others = Others::default();
        for n in 0..MAX_ENDPOINTS + 10 {
            others.begins(&key("a1", n, "MS", "%"), 0, "b2");
        }
        for n in 0..MAX_NODES + 10 {
            others.begins(&format!("@ros2_lv/0/a{n}/0/0/NN/%/%/node"), 0, "b2");
        }
        assert_eq!(others.refused()["endpoints"], 10);
        assert_eq!(others.refused()["participants"], 10);
        // An endpoint that ends makes room.
        others.ends(&key("a1", 0, "MS", "%"));
        others.settle(true, Instant::now());
        assert!(others.begins(&key("a1", MAX_ENDPOINTS, "MS", "%"), 0, "b2"));
    }

    #[test]
    fn a_message_of_an_unknown_identity_is_of_a_publisher_that_was_not_heard() {
        let mut others = Others::default();
        let keys = [1, 2].map(|n| key("a1", n, "MP", "%"));
        let bridge = key("a3", 1, "MP", "%ropewalk_bridge%00000007");
        for key in keys.iter().chain([&bridge]) {
            others.begins(key, 0, "b2");
        }
        assert_eq!(others.sender(id(&keys[0]), &chatter()), id(&keys[0]));
        assert_eq!(others.sender([9; 16], &chatter()), id(&keys[1]));
        assert_eq!(others.sender([9; 16], &chatter()), id(&keys[1]));
        assert_eq!(others.sender([8; 16], &chatter()), [8; 16]);
        assert_eq!(others.count(Kind::Publisher, &chatter(), None), 0);
        let hash = super::super::keys::hash_of(HASH);
        assert_eq!(others.count(Kind::Publisher, &chatter(), hash), 2);
    }
}
