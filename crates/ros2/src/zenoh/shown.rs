//! The nodes that this bridge shows to others, and the tokens for them.

use super::ends::End;
use super::lock;
use super::seen;
use super::token::{Endpoint, Token};
use crate::wire::{Port, Shown};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use zenoh::liveliness::LivelinessToken;
use zenoh::{Session, Wait};

/// The tokens of this bridge.
#[derive(Default)]
pub(super) struct Tokens {
    declared: BTreeMap<String, LivelinessToken>,
    /// Numbers of nodes by namespace and name, and of their endpoints.
    nodes: BTreeMap<(String, String), u64>,
    endpoints: BTreeMap<(u64, Port), u64>,
    next: u64,
}

/// The parts that all tokens of this bridge share.
pub(super) struct Own {
    pub(super) domain: u32,
    pub(super) session: String,
    pub(super) enclave: String,
}

impl Tokens {
    /// Declares tokens for these nodes and their endpoints, and ends those that are no longer wanted. Endpoints take
    /// the identities of their tokens.
    pub(super) fn show(
        &mut self,
        session: &Session,
        own: &Own,
        shown: &[Shown],
        ends: &BTreeMap<Port, Arc<End>>,
    ) -> Result<(), zenoh::Error> {
        let mut wanted = BTreeSet::new();
        let (mut nodes, mut endpoints) = (BTreeSet::new(), BTreeSet::new());
        let mut named = BTreeSet::new();
        for node in shown {
            let place = (node.namespace.clone(), node.name.clone());
            let number = number(&mut self.nodes, &mut self.next, place.clone());
            nodes.insert(place);
            let token = |entity, endpoint| Token {
                session: own.session.clone(),
                node: number,
                entity,
                enclave: own.enclave.clone(),
                namespace: node.namespace.clone(),
                name: node.name.clone(),
                endpoint,
            };
            wanted.extend(token(number, None).key(own.domain));
            for port in &node.ports {
                let Some(end) = ends.get(port) else { continue };
                let entity = self::number(&mut self.endpoints, &mut self.next, (number, *port));
                endpoints.insert((number, *port));
                let endpoint = Endpoint {
                    kind: end.kind,
                    name: end.what.name.clone(),
                    type_name: end.what.type_name.clone(),
                    hash: end.hash(),
                    qos: end.qos,
                };
                let Some(key) = token(entity, Some(endpoint)).key(own.domain) else {
                    continue;
                };
                // An endpoint of several nodes takes the identity of the first.
                if named.insert(*port) {
                    *lock(&end.id) = seen::id(&key);
                }
                wanted.insert(key);
            }
        }
        for key in &wanted {
            if !self.declared.contains_key(key) {
                let token = session.liveliness().declare_token(key.clone()).wait()?;
                self.declared.insert(key.clone(), token);
            }
        }
        self.declared.retain(|key, _| wanted.contains(key));
        self.nodes.retain(|place, _| nodes.contains(place));
        self.endpoints.retain(|at, _| endpoints.contains(at));
        Ok(())
    }
}

fn number<K: Ord>(numbers: &mut BTreeMap<K, u64>, next: &mut u64, key: K) -> u64 {
    *numbers.entry(key).or_insert_with(|| {
        *next += 1;
        *next
    })
}
