//! Parameter services of a node.

use super::value::{Parameter, Type};
use crate::command::waiting::Waiting;
use crate::failure::{Failure, OrFail};
use ropewalk::{Node, NodeError};
use schema::Show;
use serde_json::{Value as Json, json};
use std::time::{Duration, Instant};

/// A node and the clients of its parameter services.
pub(super) struct Remote<'a> {
    bus: &'a Node,
    /// Name with namespace.
    name: String,
    timeout: Duration,
}

/// Description of a parameter.
pub(super) struct Descriptor {
    pub(super) ty: Type,
    pub(super) is_read_only: bool,
    /// The whole description, as `rcl_interfaces/msg/ParameterDescriptor`.
    pub(super) all: Json,
}

/// Outcome of a change.
pub(super) struct Answer {
    pub(super) is_successful: bool,
    pub(super) reason: String,
}

impl<'a> Remote<'a> {
    pub(super) fn new(bus: &'a Node, name: &str, timeout: Duration) -> Self {
        let name = format!("/{}", name.trim_start_matches('/'));
        Remote { bus, name, timeout }
    }

    /// The node's full name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    fn call(&self, service: &str, request: &Json) -> Result<Json, Failure> {
        let path = format!("{}/{service}", self.name);
        let start = Instant::now();
        let left = || self.timeout.saturating_sub(start.elapsed());
        let _waiting = Waiting::on(format!("an answer of {}", self.name));
        let schema = match self.bus.discover_service(&path, self.timeout) {
            Err(NodeError::NoServer { service, waited, .. }) => {
                let near = self.like();
                return Err(Failure::input(format_args!(
                    "no server of {service} within {waited:?}: {} does not run{}, or has no parameters; \
                     `ropewalk node list` lists the nodes",
                    self.name,
                    schema::did_you_mean(near.as_deref())
                )));
            }
            other => other.or_input()?,
        };
        let client = self.bus.dynamic_client(&path, &schema).or_input()?;
        client.wait_for_server(left()).or_job("waiting for the node")?;
        let request = schema
            .request()
            .value_from_json(request)
            .or_job("making the request")?;
        let answer = client.call_value(&request, left()).map_err(Failure::job)?;
        Ok(answer.to_json(Show::ALL))
    }

    /// A node that runs and has a similar name.
    fn like(&self) -> Option<String> {
        let graph = crate::graph::Graph::look(self.bus).ok()?;
        let names = graph
            .nodes
            .iter()
            .map(|n| n.name.as_str())
            .filter(|n| *n != self.name);
        schema::nearest(&self.name, names).map(str::to_owned)
    }

    /// Names of all parameters, or of those below the prefixes.
    pub(super) fn names(&self, prefixes: &[String]) -> Result<Vec<String>, Failure> {
        let answer = self.call("list_parameters", &json!({ "prefixes": prefixes, "depth": 0 }))?;
        let names = answer["result"]["names"].as_array().into_iter().flatten();
        let mut names: Vec<String> = names.filter_map(|n| n.as_str()).map(str::to_owned).collect();
        names.sort();
        Ok(names)
    }

    /// Values of parameters, in the order of `names`.
    pub(super) fn values(&self, names: &[String]) -> Result<Vec<Parameter>, Failure> {
        let values = self.values_if_set(names)?;
        match values.iter().position(|v| *v == Parameter::NotSet) {
            Some(at) => Err(self.undeclared(&names[at])),
            None => Ok(values),
        }
    }

    /// The same; a parameter that is not declared, or has no value yet, is not set.
    pub(super) fn values_if_set(&self, names: &[String]) -> Result<Vec<Parameter>, Failure> {
        let answer = self.call("get_parameters", &json!({ "names": names }))?;
        let all = list(&answer["values"]).map(Parameter::from_json).collect();
        self.each(names, all, || Parameter::NotSet, Self::values_if_set)
    }

    /// Types of parameters, and whether they are read-only. An unknown parameter has no type.
    pub(super) fn descriptors(&self, names: &[String]) -> Result<Vec<Descriptor>, Failure> {
        let answer = self.call("describe_parameters", &json!({ "names": names }))?;
        let all = list(&answer["descriptors"]).map(Descriptor::new).collect();
        self.each(names, all, || Descriptor::new(&Json::Null), Self::descriptors)
    }

    /// One item per name. A node that does not know one of the names answers for none, so each is requested alone.
    fn each<T>(
        &self,
        names: &[String],
        all: Vec<T>,
        unknown: fn() -> T,
        ask: impl Fn(&Self, &[String]) -> Result<Vec<T>, Failure>,
    ) -> Result<Vec<T>, Failure> {
        match names {
            _ if all.len() == names.len() => Ok(all),
            [_] => Ok(vec![unknown()]),
            several => {
                let mut out = Vec::new();
                for name in several {
                    out.append(&mut ask(self, std::slice::from_ref(name))?);
                }
                Ok(out)
            }
        }
    }

    /// Sets parameters, each on its own.
    pub(super) fn set(&self, parameters: &[(String, Parameter)]) -> Result<Vec<Answer>, Failure> {
        let one = |(name, value): &(String, Parameter)| json!({ "name": name, "value": value.to_json() });
        let all: Vec<_> = parameters.iter().map(one).collect();
        let answer = self.call("set_parameters", &json!({ "parameters": all }))?;
        let mut answers: Vec<_> = list(&answer["results"]).map(Answer::new).collect();
        // A node returns a result for each parameter.
        answers.resize_with(parameters.len(), || Answer::new(&Json::Null));
        Ok(answers)
    }

    /// The error for a parameter that is not declared.
    pub(super) fn undeclared(&self, name: &str) -> Failure {
        let names = self.names(&[]).unwrap_or_default();
        let others = names.iter().map(String::as_str).filter(|n| *n != name);
        let near = schema::did_you_mean(schema::nearest(name, others));
        Failure::input(format_args!(
            "{0} has no value for the parameter {name}{near}; `ropewalk param list {0}` lists its parameters",
            self.name
        ))
    }
}

impl Descriptor {
    fn new(all: &Json) -> Self {
        Descriptor {
            ty: Type::from_code(all["type"].as_u64().unwrap_or(0)),
            is_read_only: all["read_only"] == true,
            all: all.clone(),
        }
    }
}

impl Answer {
    fn new(json: &Json) -> Self {
        Answer {
            is_successful: json["successful"] == true,
            reason: json["reason"]
                .as_str()
                .unwrap_or("the node gives no reason")
                .to_owned(),
        }
    }
}

fn list(json: &Json) -> impl Iterator<Item = &Json> {
    json.as_array().into_iter().flatten()
}
