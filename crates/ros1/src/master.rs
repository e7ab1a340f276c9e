//! The ROS master, as a node sees it (wiki.ros.org/ROS/Master_API).

use crate::header::is_name;
use crate::http::{self, HttpError};
use crate::net::HostPort;
use crate::peers::{Peers, Reason};
use crate::xmlrpc::{self, Response, Value, XmlError};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// Timeout of a call to the master or another node.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(3);

/// Why a call returned nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApiError {
    #[error("{address} does not answer {method}: {source}")]
    Http {
        address: HostPort,
        method: &'static str,
        source: HttpError,
    },
    #[error("{address} answers {method} with {source}")]
    Xml {
        address: HostPort,
        method: &'static str,
        source: XmlError,
    },
    #[error("{address} refuses {method}: {reason}")]
    Refused {
        address: HostPort,
        method: &'static str,
        reason: String,
    },
    #[error("{address} answers {method} with something that ROS does not send")]
    Shape { address: HostPort, method: &'static str },
}

impl ApiError {
    /// Whether the other end answered at all.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(self, ApiError::Refused { .. })
    }
}

/// Calls a method of a node. Methods of ROS return a code, a text and a value; this returns the value.
pub(crate) fn call(address: &HostPort, method: &'static str, params: &[Value]) -> Result<Value, ApiError> {
    ask(address, method, params, http::MAX_ANSWER).map(|(value, _)| value)
}

/// As [`call`], with at most `most` bytes. Also returns the address that answered.
fn ask(
    address: &HostPort,
    method: &'static str,
    params: &[Value],
    most: usize,
) -> Result<(Value, IpAddr), ApiError> {
    let body = xmlrpc::write_call(method, params);
    let address = || address.clone();
    let answer = http::post(&address(), "/RPC2", &body, most, TIMEOUT);
    let (answer, ip) = answer.map_err(|source| ApiError::Http {
        address: address(),
        method,
        source,
    })?;
    let answer = xmlrpc::response(&answer).map_err(|source| ApiError::Xml {
        address: address(),
        method,
        source,
    })?;
    let refused = |reason| ApiError::Refused {
        address: address(),
        method,
        reason,
    };
    let Response::Value(Value::Array(mut triple)) = answer else {
        return Err(match answer {
            Response::Fault(reason) => refused(reason),
            Response::Value(_) => ApiError::Shape {
                address: address(),
                method,
            },
        });
    };
    let (value, text, code) = (triple.pop(), triple.pop(), triple.pop());
    match (code.as_ref().and_then(Value::as_int), text, value) {
        (Some(1), _, Some(value)) => Ok((value, ip)),
        (Some(_), Some(text), Some(_)) => Err(refused(text.as_str().unwrap_or_default().to_owned())),
        _ => Err(ApiError::Shape {
            address: address(),
            method,
        }),
    }
}

/// The master, as one node calls it.
#[derive(Clone, Debug)]
pub(crate) struct Master {
    pub(crate) address: HostPort,
    /// The node's name.
    pub(crate) caller: String,
    /// Address of the node's own methods.
    pub(crate) api: String,
    /// Peers, which learn the master's address.
    pub(crate) peers: Arc<Peers>,
}

/// Publishers, subscribers and servers, by node name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) publishers: BTreeMap<String, Vec<String>>,
    pub(crate) subscribers: BTreeMap<String, Vec<String>>,
    pub(crate) services: BTreeMap<String, Vec<String>>,
    /// Number of invalid names, which are ignored.
    pub(crate) odd: usize,
}

impl State {
    /// Reads the result of `getSystemState`.
    pub(crate) fn read(value: &Value) -> Option<State> {
        let [publishers, subscribers, services] = value.as_array()? else {
            return None;
        };
        let mut odd = 0;
        let mut read = |value| names(value, &mut odd);
        Some(State {
            publishers: read(publishers)?,
            subscribers: read(subscribers)?,
            services: read(services)?,
            odd,
        })
    }
}

/// Reads `[[topic, [node, …]], …]`. Skips and counts names that cannot be shown.
fn names(value: &Value, odd: &mut usize) -> Option<BTreeMap<String, Vec<String>>> {
    let mut all = BTreeMap::new();
    let mut good = |name: &String| {
        let good = is_name(name);
        *odd += usize::from(!good);
        good
    };
    for entry in value.as_array()? {
        let [name, nodes] = entry.as_array()? else {
            return None;
        };
        let (name, mut nodes) = (name.as_str()?.to_owned(), strings(nodes)?);
        nodes.retain(&mut good);
        if good(&name) {
            all.insert(name, nodes);
        }
    }
    Some(all)
}

/// Reads a topic and its type.
fn pair(pair: &Value) -> Option<(&str, &str)> {
    match pair.as_array()? {
        [topic, kind] => Some((topic.as_str()?, kind.as_str()?)),
        _ => None,
    }
}

/// Reads a list of strings.
pub(crate) fn strings(value: &Value) -> Option<Vec<String>> {
    let one = |v: &Value| v.as_str().map(str::to_owned);
    value.as_array()?.iter().map(one).collect()
}

impl Master {
    fn call(&self, method: &'static str, more: &[&str]) -> Result<Value, ApiError> {
        let mut params = vec![Value::from(self.caller.as_str())];
        params.extend(more.iter().map(|p| Value::from(*p)));
        let (value, ip) = ask(&self.address, method, &params, http::MAX_STATE)?;
        self.peers.set_master(ip);
        Ok(value)
    }

    fn shaped<T>(&self, method: &'static str, read: Option<T>) -> Result<T, ApiError> {
        read.ok_or_else(|| ApiError::Shape {
            address: self.address.clone(),
            method,
        })
    }

    pub(crate) fn state(&self) -> Result<State, ApiError> {
        let method = "getSystemState";
        let state = self.shaped(method, State::read(&self.call(method, &[])?))?;
        if state.odd > 0 {
            let why = format_args!("{} invalid names from the master", state.odd);
            self.peers.refuse(Reason::Name, why);
        }
        Ok(state)
    }

    /// Returns the type of each topic that was ever published.
    pub(crate) fn types(&self) -> Result<BTreeMap<String, String>, ApiError> {
        let method = "getTopicTypes";
        let answer = self.call(method, &[])?;
        let pairs = answer.as_array().map(|all| all.iter().map(pair));
        let pairs = self.shaped(method, pairs.and_then(Iterator::collect::<Option<Vec<_>>>))?;
        let good = pairs
            .into_iter()
            .filter(|(topic, kind)| is_name(topic) && is_name(kind));
        Ok(good.map(|(t, k)| (t.to_owned(), k.to_owned())).collect())
    }

    /// Returns an identity that distinguishes this master from all others while it lives.
    pub(crate) fn identity(&self) -> Result<String, ApiError> {
        // roscore sets it; a bare rosmaster does not, and is identified by its process.
        match self.call("getParam", &["/run_id"]) {
            Ok(Value::String(id)) => return Ok(id),
            Ok(_) => {}
            Err(error) if error.is_refusal() => {}
            Err(error) => return Err(error),
        }
        let pid = self.call("getPid", &[])?.as_int().unwrap_or_default();
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let whose = if self.address.is_loopback() {
            boot.trim()
        } else {
            ""
        };
        Ok(format!("{} {pid} {whose}", self.address))
    }

    pub(crate) fn register_publisher(&self, topic: &str, kind: &str) -> Result<(), ApiError> {
        self.call("registerPublisher", &[topic, kind, &self.api])
            .map(drop)
    }

    pub(crate) fn unregister_publisher(&self, topic: &str) -> Result<(), ApiError> {
        self.call("unregisterPublisher", &[topic, &self.api]).map(drop)
    }

    /// Registers a subscriber. Returns the addresses at which to call the publishers' methods.
    pub(crate) fn register_subscriber(&self, topic: &str, kind: &str) -> Result<Vec<String>, ApiError> {
        let method = "registerSubscriber";
        let answer = self.call(method, &[topic, kind, &self.api])?;
        self.shaped(method, strings(&answer))
    }

    pub(crate) fn unregister_subscriber(&self, topic: &str) -> Result<(), ApiError> {
        self.call("unregisterSubscriber", &[topic, &self.api]).map(drop)
    }

    pub(crate) fn register_service(&self, service: &str, at: &str) -> Result<(), ApiError> {
        self.call("registerService", &[service, at, &self.api]).map(drop)
    }

    pub(crate) fn unregister_service(&self, service: &str, at: &str) -> Result<(), ApiError> {
        self.call("unregisterService", &[service, at]).map(drop)
    }

    /// Returns the address of a service's server.
    pub(crate) fn lookup_service(&self, service: &str) -> Result<HostPort, ApiError> {
        let method = "lookupService";
        let answer = self.call(method, &[service])?;
        let address = answer.as_str().and_then(|uri| HostPort::parse(uri, "rosrpc"));
        self.shaped(method, address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_read_or_refused() {
        let topic: Value = ["/a".into(), ["/n".into(), "/m".into()].into()].into();
        let whole: Value = [[topic.clone()].into(), Value::Array(vec![]), Value::Array(vec![])].into();
        let state = State::read(&whole).unwrap();
        assert_eq!(state.publishers["/a"], ["/n", "/m"]);
        assert_eq!(state.odd, 0);
        let nodes: Value = ["/n".into(), "/m\x1b[2J".into()].into();
        let topics: Value = [
            ["/a".into(), nodes.clone()].into(),
            ["/b\x07".into(), nodes.clone()].into(),
            [Value::String("b".repeat(300)), nodes].into(),
        ]
        .into();
        let hostile = [topics, Value::Array(vec![]), Value::Array(vec![])].into();
        let state = State::read(&hostile).unwrap();
        assert_eq!(
            state.publishers,
            [("/a".to_owned(), vec!["/n".to_owned()])].into()
        );
        assert_eq!(state.odd, 5);
        for bad in [
            Value::from(1),
            [topic.clone()].into(),
            [
                [Value::from(1)].into(),
                Value::Array(vec![]),
                Value::Array(vec![]),
            ]
            .into(),
            [topic, Value::Array(vec![]), Value::Array(vec![])].into(),
        ] {
            assert_eq!(State::read(&bad), None, "{bad:?}");
        }
    }
}
