//! The destination of an accepted topic: a publisher on this host's bus, or a service.

use super::{Inbound, Route};
use crate::config;
use crate::names::{self, Line};
use bus::{PublisherOptions, TopicType};
use proto::{Announcement, PeerId, RemoteTopic, Verdict};

impl Inbound {
    /// Takes a topic of the host `source`, which `peer` brings.
    pub(super) fn takes_topic(
        &mut self,
        peer: PeerId,
        topic: RemoteTopic,
        source: PeerId,
        a: &Announcement,
    ) -> Verdict {
        let name = self.peer(peer).to_owned();
        let service = Line::parse(&a.name).filter(|line| !line.is_topic());
        if let (Some(services), Some(line)) = (&mut self.services, service) {
            let verdict = services.calls.announced((peer, topic), source, line, a);
            let done = match verdict {
                Verdict::Accept => "",
                Verdict::Refuse => ": refused",
            };
            self.changes
                .push(format!("{name} sends {} ({}){done}", a.name, a.type_name));
            return verdict;
        }
        let on_bus = self
            .peers
            .get(source.0 as usize)
            .map(|p| config::on_bus(p, &a.name));
        let kind = TopicType {
            topic: on_bus.unwrap_or_else(|| a.name.clone()),
            type_name: a.type_name.clone(),
            type_hash: a.type_hash,
            flavour: names::stated(a.flavour),
            definition: a.definition.as_str().into(),
        };
        // A late joiner on this host's bus is also one for the topic.
        let history = if a.latched { a.depth.min(4096) } else { 0 };
        // The bus compares requests of subscribers here with the publishers' offers there, not with the
        // link's own reliability.
        let mut options = PublisherOptions::default().with_history(history);
        if let Some(reliable) = a.offers_reliable {
            options = options.with_reliability(match reliable {
                true => bus::Reliability::Reliable,
                false => bus::Reliability::BestEffort,
            });
        }
        match self.publisher((source, a.name.clone()), kind, options) {
            Ok(publisher) => {
                let route = Route {
                    publisher,
                    owner: source,
                    max_message: self.max_message(&a.name),
                    lost: None,
                };
                self.routes.insert((peer, topic), route);
                self.changes
                    .push(format!("{name} sends {} ({})", a.name, a.type_name));
                Verdict::Accept
            }
            Err(error) => {
                self.changes.push(format!(
                    "{name} offers {}, which the bus rejects: {error}",
                    a.name
                ));
                Verdict::Refuse
            }
        }
    }
}
