//! Finds a type: built in, in folders, or among the types in use on the bus.

use super::kind::{Interface, Kind, parse};
use super::{Search, folders};
use crate::command::action::names;
use crate::failure::{Failure, OrFail};
use bus::Ros;
use ropewalk::{Flavour, MessageType, Node, Schema, Service};
use schema::{DefinitionError, TypeName, Value};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A message, or a part of a service or an action.
pub(super) struct Section {
    pub(super) ty: Arc<MessageType>,
    /// The message in which every field has its default.
    pub(super) default: Value,
}

impl Section {
    fn of(schema: &Schema) -> Section {
        Section {
            ty: schema.message_type().clone(),
            default: schema.default_value(),
        }
    }

    /// A field of a message that is itself a message.
    fn field(schema: &Schema, name: &str) -> Option<Section> {
        let default = schema.default_value().get(name).ok()?;
        let ty = default.as_message()?.ty().clone();
        Some(Section { ty, default })
    }
}

/// The sections of a type: one of a message, two of a service, three of an action.
pub(super) fn find(search: &Search, text: &str) -> Result<Vec<Section>, Failure> {
    let (name, kinds) = parse(text)?;
    let mut unknown = None;
    for kind in &kinds {
        match in_registry(search, &name, *kind) {
            Ok(sections) => return Ok(sections),
            // A missing type that this one uses, or an invalid definition, is an error to report.
            Err(Missing::Itself(why)) => drop(unknown.get_or_insert(why)),
            Err(Missing::Failed(failure)) => return Err(failure),
        }
    }
    if let Ok(node) = Node::new("interface") {
        for kind in &kinds {
            if let Some(sections) = on_bus(&node, search.flavour(), &name, *kind)? {
                return Ok(sections);
            }
        }
    }
    let other = if search.ros1 {
        "only types of ROS 2 are searched without --ros1"
    } else {
        "use --ros1 for types of ROS 1"
    };
    let why = unknown.unwrap_or_else(|| format!("{name} is unknown"));
    Err(Failure::input(format_args!(
        "{why}, and not in use on the bus; {other}"
    )))
}

/// Why a type was not found.
enum Missing {
    /// No definition of the type exists.
    Itself(String),
    Failed(Failure),
}

fn in_registry(search: &Search, name: &TypeName, kind: Kind) -> Result<Vec<Section>, Missing> {
    let missing = |error: DefinitionError| match &error {
        DefinitionError::Unknown { name: what, .. } if *what == name.to_string() => {
            Missing::Itself(error.to_string())
        }
        _ => Missing::Failed(Failure::input(error)),
    };
    let registry = search.registry();
    match kind {
        Kind::Message => registry
            .schema(&name.to_string())
            .map(|s| vec![Section::of(&s)])
            .map_err(missing),
        Kind::Service => registry
            .service(&name.to_string())
            .map(|s| of_service(&s))
            .map_err(missing),
        Kind::Action => {
            let Some((text, path)) = folders::action(search, name) else {
                return Err(Missing::Itself(format!(
                    "no definition of the action {name} in the folders"
                )));
            };
            let sections = of_action(search, name, &text);
            sections.map_err(|e| Missing::Failed(Failure::input(format_args!("{}: {e}", path.display()))))
        }
    }
}

fn of_service(service: &Service) -> Vec<Section> {
    vec![Section::of(service.request()), Section::of(service.response())]
}

/// The three sections of an action's file.
fn of_action(search: &Search, name: &TypeName, text: &str) -> Result<Vec<Section>, DefinitionError> {
    let mut registry = search.registry();
    registry.add_action(&name.to_string(), text)?;
    let join = if search.ros1 { "" } else { "_" };
    let part = |part: &str| {
        registry
            .schema(&format!("{name}{join}{part}"))
            .map(|s| Section::of(&s))
    };
    Ok(vec![part("Goal")?, part("Result")?, part("Feedback")?])
}

/// A type in use on the bus, by the definition that its endpoints state.
fn on_bus(
    node: &Node,
    flavour: Flavour,
    name: &TypeName,
    kind: Kind,
) -> Result<Option<Vec<Section>>, Failure> {
    let schema = |type_name: &str| {
        let topics = node.topics().or_input()?;
        let found = topics
            .iter()
            .find(|t| is_of(t.topic.flavour.ros, flavour) && t.topic.type_name == type_name);
        found.map(|t| node.schema_of(t).or_input()).transpose()
    };
    let service = |type_name: &str| {
        let services = node.services().or_input()?;
        let found = services
            .iter()
            .find(|s| is_of(s.service.flavour.ros, flavour) && s.service.type_name == type_name);
        found.map(|s| node.schema_of_service(s).or_input()).transpose()
    };
    match kind {
        Kind::Message => Ok(schema(&name.to_string())?.map(|s| vec![Section::of(&s)])),
        Kind::Service => Ok(service(&name.to_string())?.map(|s| of_service(&s))),
        Kind::Action => {
            let goal = service(&format!("{name}_SendGoal"))?;
            let result = service(&format!("{name}_GetResult"))?;
            let feedback = schema(&format!("{name}_FeedbackMessage"))?;
            let parts = [
                goal.and_then(|s| Section::field(s.request(), "goal")),
                result.and_then(|s| Section::field(s.response(), "result")),
                feedback.and_then(|s| Section::field(&s, "feedback")),
            ];
            Ok(parts.into_iter().collect())
        }
    }
}

/// Whether a type on the bus is of that ROS, as far as it states one.
fn is_of(ros: Ros, flavour: Flavour) -> bool {
    match ros {
        Ros::Unstated => true,
        Ros::One => flavour == Flavour::Ros1,
        Ros::Two => flavour == Flavour::Ros2,
    }
}

/// All types: built in, in folders, and on the bus.
pub(super) fn all(search: &Search) -> BTreeSet<Interface> {
    let registry = search.registry();
    let mut all: BTreeSet<_> = folders::files(search).into_keys().collect();
    all.extend(
        registry
            .names()
            .into_iter()
            .map(|name| Interface::new(Kind::Message, name)),
    );
    all.extend(
        registry
            .service_names()
            .into_iter()
            .map(|name| Interface::new(Kind::Service, name)),
    );
    let survey = Node::new("interface").ok().and_then(|node| node.survey().ok());
    let Some(survey) = survey else { return all };
    let mut add = |kind: Kind, ros: Ros, name: &str| {
        if let (true, Ok(name)) = (is_of(ros, search.flavour()), TypeName::parse(name)) {
            all.insert(Interface::new(kind, name));
        }
    };
    let is_part = |name: &str| name.contains("/_action/");
    for t in survey
        .topics
        .iter()
        .filter(|t| !t.is_of_service() && !t.topic.definition.is_empty())
    {
        // Records of nodes have no definition that a schema can read.
        if !is_part(&t.topic.topic) && t.topic.topic != bridge::nodes::TOPIC {
            add(Kind::Message, t.topic.flavour.ros, &t.topic.type_name);
        }
    }
    for s in survey.services() {
        let (name, ros) = (&s.service.type_name, s.service.flavour.ros);
        match (
            s.service.service.ends_with(names::SEND_GOAL),
            name.strip_suffix("_SendGoal"),
        ) {
            (true, Some(action)) => add(Kind::Action, ros, action),
            _ if is_part(&s.service.service) => {}
            _ => add(Kind::Service, ros, name),
        }
    }
    all
}
