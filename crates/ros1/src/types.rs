//! The types of topics and services: what the peer announces, what is known here, and whether the two agree.

use crate::config::{ServiceRule, TopicRule};
use crate::header::Header;
use crate::hub::Hub;
use schema::{DefinitionError, Flavour, Registry, Schema, Service};

/// Why a peer's type cannot be used. The text continues after the peer's name.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TypeError {
    #[error("does not announce its type: it may be a relay that does not know it yet")]
    Undescribed,
    #[error("has {found}, but the rule requires {wanted}: correct the rule's `type`, or remove it")]
    Rule { found: String, wanted: String },
    #[error(
        "has {name} with md5 {theirs}, but the definition {whose} has {ours}: build both against the same {file}"
    )]
    Sum {
        name: String,
        theirs: String,
        ours: String,
        whose: &'static str,
        file: String,
    },
    #[error(
        "has {name}, whose definition cannot be used: {source}; add the folder of its package to `definitions`"
    )]
    Definition { name: String, source: DefinitionError },
}

/// Returns the type that a publisher in ROS sends according to its header, marked with the rule's priority.
pub(crate) fn of_publisher(hub: &Hub, header: &Header, rule: &TopicRule) -> Result<Schema, TypeError> {
    let stated = |key| header.get(key).filter(|v| !matches!(*v, "" | "*"));
    let (Some(name), Some(sum)) = (stated("type"), stated("md5sum")) else {
        return Err(TypeError::Undescribed);
    };
    if let Some(wanted) = rule.kind.as_deref().filter(|k| *k != name) {
        return Err(TypeError::Rule {
            found: name.to_owned(),
            wanted: wanted.to_owned(),
        });
    }
    let mut first = None;
    for schema in [
        stated("message_definition").map(|text| embedded(name, text)),
        Some(hub.registry.schema(name)),
    ] {
        match schema {
            Some(Ok(schema)) if schema.md5_hex() == sum => return mark(schema, rule),
            Some(other) => drop(first.get_or_insert(other)),
            None => {}
        }
    }
    let name = name.to_owned();
    Err(match first {
        Some(Ok(schema)) => TypeError::Sum {
            theirs: sum.to_owned(),
            ours: schema.md5_hex(),
            whose: "that is known of it",
            file: format!("{name}.msg"),
            name,
        },
        Some(Err(source)) => TypeError::Definition { name, source },
        None => TypeError::Undescribed,
    })
}

fn embedded(name: &str, text: &str) -> Result<Schema, DefinitionError> {
    let mut registry = Registry::new(Flavour::Ros1);
    registry.add_embedded(name, text)?;
    registry.schema(name)
}

/// Links read the priority in the first line of a definition.
fn mark(schema: Schema, rule: &TopicRule) -> Result<Schema, TypeError> {
    let Some(priority) = rule.priority else {
        return Ok(schema);
    };
    let name = schema.name().to_owned();
    let marked = embedded(&name, &format!("# priority: {priority}\n{}", schema.definition()));
    marked.map_err(|source| TypeError::Definition { name, source })
}

/// Checks that a second publisher has the first one's type.
pub(crate) fn same(ours: &Schema, theirs: &Schema) -> Result<(), TypeError> {
    if ours.name() != theirs.name() {
        return Err(TypeError::Rule {
            found: theirs.name().to_owned(),
            wanted: ours.name().to_owned(),
        });
    }
    if ours.md5() == theirs.md5() {
        return Ok(());
    }
    Err(TypeError::Sum {
        name: ours.name().to_owned(),
        theirs: theirs.md5_hex(),
        ours: ours.md5_hex(),
        whose: "of the other publishers",
        file: format!("{}.msg", ours.name()),
    })
}

/// Returns the type of a service in ROS according to its server's header. The header contains no definition.
pub(crate) fn of_server(hub: &Hub, header: &Header, rule: &ServiceRule) -> Result<Service, TypeError> {
    let stated = |key| header.get(key).filter(|v| !matches!(*v, "" | "*"));
    let (Some(name), Some(sum)) = (stated("type").or(rule.kind.as_deref()), stated("md5sum")) else {
        return Err(TypeError::Undescribed);
    };
    if let Some(wanted) = rule.kind.as_deref().filter(|k| *k != name) {
        return Err(TypeError::Rule {
            found: name.to_owned(),
            wanted: wanted.to_owned(),
        });
    }
    let name = name.to_owned();
    let service = match hub.registry.service(&name) {
        Ok(service) => service,
        Err(source) => return Err(TypeError::Definition { name, source }),
    };
    if service.md5_hex() == sum {
        return Ok(service);
    }
    Err(TypeError::Sum {
        theirs: sum.to_owned(),
        ours: service.md5_hex(),
        whose: "found here",
        file: format!("{name}.srv"),
        name,
    })
}
