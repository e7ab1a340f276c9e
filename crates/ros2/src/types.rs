//! The types of the domain's topics and services. Nodes announce a name and a hash. The bridge finds the definition in
//! folders, among those built into this program, or at an endpoint of the bus with the same type.

use crate::hub::Hub;
use crate::wire::{Named, Seen};
use bridge::TopicRule;
use bus::{ServiceInfo, Survey};
use schema::{DefinitionError, Flavour, Registry, Schema, Service};

/// Highest priority on a link.
const MAX_PRIORITY: u8 = 127;

/// Why a type cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TypeError {
    #[error("its type is {found}, but the rule requires {wanted}: correct the rule's `type`, or remove it")]
    Rule { found: String, wanted: String },
    #[error(
        "its type {name} has the hash {theirs}, but the definition found here has {ours}: add the folder of the package that its nodes are built with to `definitions`"
    )]
    Hash {
        name: String,
        theirs: String,
        ours: String,
    },
    #[error("too many type lookups at once: that of {0} is delayed")]
    Busy(String),
    #[error(
        "the definition of its type {name} cannot be used: {source}; add the folder of its package to `definitions`"
    )]
    Definition { name: String, source: DefinitionError },
}

/// Topics and services of the bus at a given time.
pub(crate) struct OnBus {
    pub(crate) survey: Survey,
    pub(crate) services: Vec<ServiceInfo>,
}

impl OnBus {
    pub(crate) fn new(survey: Survey) -> Self {
        let services = survey.services();
        OnBus { survey, services }
    }

    /// Returns the definition of a type with this hash, as an endpoint of the bus states it.
    fn topic(&self, hub: &Hub, name: &str, hash: [u8; 32]) -> Option<Schema> {
        let mut topics = self.survey.topics.iter();
        let info = topics.find(|t| t.topic.type_name == name && t.topic.flavour.rihs01 == hash)?;
        hub.node.schema_of(info).ok()
    }

    fn service(&self, hub: &Hub, name: &str, request: [u8; 32]) -> Option<Service> {
        let mut services = self.services.iter().filter(|s| s.service.type_name == name);
        services.find_map(|info| {
            let service = hub.node.schema_of_service(info).ok()?;
            states(&service, request).then_some(service)
        })
    }
}

/// Whether a service has this hash: endpoints state that of the request, or of the service.
fn states(service: &Service, hash: [u8; 32]) -> bool {
    service.request().flavour() == Flavour::Ros2
        && (service.request().type_hash() == hash || service.type_hash() == hash)
}

fn plain(ros2: &str) -> String {
    match ros2.split('/').collect::<Vec<_>>()[..] {
        [package, _, name] => format!("{package}/{name}"),
        _ => ros2.to_owned(),
    }
}

fn hex(hash: [u8; 32]) -> String {
    let digits: String = hash.iter().map(|b| format!("{b:02x}")).collect();
    format!("RIHS01_{digits}")
}

fn asked(what: &Named, rule: Option<&str>) -> Result<(), TypeError> {
    match rule {
        Some(wanted) if wanted != what.type_name && wanted != plain(&what.type_name) => {
            Err(TypeError::Rule {
                found: what.type_name.clone(),
                wanted: wanted.to_owned(),
            })
        }
        _ => Ok(()),
    }
}

/// Returns the type of a topic of the domain, marked with the rule's priority.
pub(crate) fn of_topic(hub: &Hub, bus: &OnBus, seen: &Seen, rule: &TopicRule) -> Result<Schema, TypeError> {
    let what = &seen.what;
    asked(what, rule.kind.as_deref())?;
    let known = hub.definitions.schema(&what.type_name, seen.participant);
    let known = known.ok_or_else(|| TypeError::Busy(what.type_name.clone()))?;
    let Some(hash) = what.hashes[0] else {
        return marked(known.map_err(|e| unknown(what, e))?, rule);
    };
    match known {
        Ok(schema) if schema.type_hash() == hash => marked(schema, rule),
        known => match bus.topic(hub, &plain(&what.type_name), hash) {
            Some(schema) => marked(schema, rule),
            None => {
                let schema = known.map_err(|e| unknown(what, e))?;
                Err(differs(what, hash, schema.type_hash()))
            }
        },
    }
}

/// Returns the type of a service of the domain.
pub(crate) fn of_service(
    hub: &Hub,
    bus: &OnBus,
    seen: &Seen,
    rule: Option<&str>,
) -> Result<Service, TypeError> {
    let what = &seen.what;
    asked(what, rule)?;
    let known = hub.definitions.service(&what.type_name, seen.participant);
    let known = known.ok_or_else(|| TypeError::Busy(what.type_name.clone()))?;
    let Some(hash) = what.hashes[0] else {
        return known.map_err(|e| unknown(what, e));
    };
    match known {
        Ok(service) if states(&service, hash) => Ok(service),
        known => match bus.service(hub, &plain(&what.type_name), hash) {
            Some(service) => Ok(service),
            None => {
                let service = known.map_err(|e| unknown(what, e))?;
                Err(differs(what, hash, service.request().type_hash()))
            }
        },
    }
}

fn unknown(what: &Named, source: DefinitionError) -> TypeError {
    TypeError::Definition {
        name: what.type_name.clone(),
        source,
    }
}

fn differs(what: &Named, theirs: [u8; 32], ours: [u8; 32]) -> TypeError {
    TypeError::Hash {
        name: what.type_name.clone(),
        theirs: hex(theirs),
        ours: hex(ours),
    }
}

/// Links read the priority in the first line of a definition.
fn marked(schema: Schema, rule: &TopicRule) -> Result<Schema, TypeError> {
    let Some(priority) = rule.priority else {
        return Ok(schema);
    };
    let name = schema.ros2_name();
    let read = || {
        let mut registry = Registry::new(Flavour::Ros2);
        registry.add_embedded(&name, &format!("# priority: {priority}\n{}", schema.definition()))?;
        registry.schema(&name)
    };
    read().map_err(|source| TypeError::Definition {
        name: name.clone(),
        source,
    })
}

/// The priority that the first line of a definition requests, as links read it.
fn priority(schema: &Schema) -> Option<u8> {
    let definition = schema.definition();
    let line = definition.lines().next()?.strip_prefix("# priority:")?;
    line.trim().parse().ok().filter(|p| *p <= MAX_PRIORITY)
}

/// Describes a topic of this type in the domain.
pub(crate) fn named_topic(name: &str, schema: &Schema) -> Named {
    Named {
        name: name.to_owned(),
        type_name: schema.ros2_name(),
        hashes: [Some(schema.type_hash()), None],
        priority: priority(schema),
        ..Named::default()
    }
}

/// Describes a service of this type in the domain.
pub(crate) fn named_service(name: &str, service: &Service) -> Named {
    let request = service.request().ros2_name();
    Named {
        name: name.to_owned(),
        type_name: request.strip_suffix("_Request").unwrap_or(&request).to_owned(),
        hashes: [
            Some(service.request().type_hash()),
            Some(service.response().type_hash()),
        ],
        service: Some(service.type_hash()),
        ..Named::default()
    }
}
