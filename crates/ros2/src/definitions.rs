//! Finds definitions by the names that nodes of the domain announce. A lookup reads folders, so results, found or not,
//! are cached for a while, and lookups per participant are limited.

use crate::hub::lock;
use crate::wire::Id;
use schema::{DefinitionError, Registry, Schema, Service};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Maximum number of cached names, and how long they are kept.
const MAX_KNOWN: usize = 1024;
const REMEMBERED: Duration = Duration::from_secs(10);
/// Maximum number of lookups per second for one participant.
const MAX_LOOKED_FOR: usize = 16;
const PERIOD: Duration = Duration::from_secs(1);

type Found<T> = BTreeMap<String, (Result<T, DefinitionError>, Instant)>;

/// Definitions of messages, services and actions.
#[derive(Debug)]
pub(crate) struct Definitions {
    registry: Registry,
    topics: Mutex<Found<Schema>>,
    services: Mutex<Found<Service>>,
    /// Number of lookups by participant, and the start of the current period.
    lookups: Mutex<(BTreeMap<Id, usize>, Option<Instant>)>,
}

impl Definitions {
    pub(crate) fn new(registry: Registry) -> Self {
        Definitions {
            registry,
            topics: Mutex::default(),
            services: Mutex::default(),
            lookups: Mutex::default(),
        }
    }

    /// Returns the type of a topic, for a participant; `None` if it made too many lookups.
    pub(crate) fn schema(&self, name: &str, of: Id) -> Option<Result<Schema, DefinitionError>> {
        self.find(&self.topics, name, of, |registry| registry.schema(name))
    }

    /// Returns the type of a service; likewise.
    pub(crate) fn service(&self, name: &str, of: Id) -> Option<Result<Service, DefinitionError>> {
        self.find(&self.services, name, of, |registry| registry.service(name))
    }

    fn find<T: Clone>(
        &self,
        known: &Mutex<Found<T>>,
        name: &str,
        of: Id,
        look: impl FnOnce(&Registry) -> Result<T, DefinitionError>,
    ) -> Option<Result<T, DefinitionError>> {
        let now = Instant::now();
        let mut known = lock(known);
        known.retain(|_, (_, at)| now.saturating_duration_since(*at) < REMEMBERED);
        if let Some((found, _)) = known.get(name) {
            return Some(found.clone());
        }
        if known.len() >= MAX_KNOWN || !self.may_look(of, now) {
            return None;
        }
        let found = look(&self.registry);
        known.insert(name.to_owned(), (found.clone(), now));
        Some(found)
    }

    fn may_look(&self, of: Id, now: Instant) -> bool {
        let mut lookups = lock(&self.lookups);
        let (count, since) = &mut *lookups;
        if since.is_none_or(|since| now.saturating_duration_since(since) >= PERIOD) {
            (*count, *since) = (BTreeMap::new(), Some(now));
        }
        let count = count.entry(of).or_default();
        *count += 1;
        *count <= MAX_LOOKED_FOR
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schema::Flavour;

    #[test]
    fn names_without_number_are_looked_for_slowly_and_cost_others_nothing() {
        let definitions = Definitions::new(Registry::new(Flavour::Ros2));
        let begun = Instant::now();
        let looked = |n| definitions.schema(&format!("a/msg/B{n}"), [1; 16]).is_some();
        let count = (0..500).filter(|n| looked(*n)).count();
        // More only if the test took longer than a second.
        let most = MAX_LOOKED_FOR * (1 + begun.elapsed().as_secs() as usize);
        assert!((MAX_LOOKED_FOR..=most).contains(&count), "{count}");
        assert!(looked(0), "it is known that there is none");
        assert!(
            definitions
                .schema("std_msgs/msg/String", [2; 16])
                .is_some_and(|s| s.is_ok())
        );
        assert!(
            definitions
                .schema("std_msgs/msg/String", [1; 16])
                .is_some_and(|s| s.is_ok())
        );
        assert!(
            definitions
                .service("std_srvs/srv/SetBool", [2; 16])
                .is_some_and(|s| s.is_ok())
        );
        for n in 0..2 * MAX_KNOWN {
            let mut of = [3; 16];
            of[..8].copy_from_slice(&n.to_le_bytes());
            definitions.schema(&format!("a/msg/C{n}"), of);
        }
        assert!(lock(&definitions.topics).len() <= MAX_KNOWN);
    }
}
