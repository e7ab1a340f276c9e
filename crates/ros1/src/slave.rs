//! The methods of this node that other nodes call (wiki.ros.org/ROS/Slave_API).

use crate::header::{Header, MAX_GREETING, is_name};
use crate::http;
use crate::hub::{Hub, lock};
use crate::listener::Accepted;
use crate::net::Timed;
use crate::peers::{Reason, Standing};
use crate::xmlrpc::{self, Call, Value};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Timeout for a caller to send its request, and to read the answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Answers one call.
pub(crate) fn serve(hub: &Arc<Hub>, accepted: &Accepted) {
    let stream = &accepted.stream;
    let sent = match http::request(stream, PATIENCE) {
        Ok(body) => match xmlrpc::call(&body) {
            Ok(call) => {
                drop(body);
                accepted.settle();
                http::answer(stream, "200 OK", &answer(hub, &call, accepted.standing), PATIENCE)
            }
            Err(error) => refuse(hub, accepted, &error),
        },
        Err(http::HttpError::Io(error)) => Err(error),
        Err(error) => refuse(hub, accepted, &error),
    };
    if let Err(error) = sent {
        tracing::debug!(%error, "cannot answer a call of this node");
    }
}

fn refuse(hub: &Hub, accepted: &Accepted, error: &dyn std::fmt::Display) -> std::io::Result<()> {
    let why = format_args!("a request of {}: {error}", accepted.standing.peer);
    hub.peers.refuse(Reason::Malformed, why);
    let fault = xmlrpc::write_fault(&error.to_string());
    http::answer(&accepted.stream, "400 Bad Request", &fault, PATIENCE)
}

/// A code, a text and a value, as every method of ROS returns them.
fn triple(code: i32, text: &str, value: impl Into<Value>) -> Value {
    [code.into(), text.into(), value.into()].into()
}

fn answer(hub: &Arc<Hub>, call: &Call, standing: Standing) -> String {
    let text = |i: usize| call.params.get(i).and_then(Value::as_str);
    let good = |value: Value| triple(1, "", value);
    let value = match call.method.as_str() {
        "requestTopic" => request_topic(hub, text(1), call.params.get(2)),
        "publisherUpdate" => {
            let uris = call.params.get(2).and_then(crate::master::strings);
            match text(1).zip(uris) {
                Some((topic, uris)) => {
                    let subscription = lock(&hub.subscriptions).get(topic).cloned();
                    match subscription {
                        Some(subscription) if standing.master => subscription.update(hub, &uris),
                        // Anyone may call this, so the master is asked.
                        Some(subscription) => {
                            let why = format_args!("publisherUpdate by {}: asking the master", standing.peer);
                            hub.peers.refuse(Reason::Call, why);
                            subscription.doubt();
                        }
                        None => {}
                    }
                    good(0.into())
                }
                None => triple(-1, "publisherUpdate: caller, topic and a list of publishers", 0),
            }
        }
        "getPublications" => {
            let all = lock(&hub.publications);
            let pair = |p: &Arc<crate::publication::Publication>| {
                [p.topic.as_str().into(), p.schema.name().into()].into()
            };
            good(Value::Array(all.values().map(pair).collect()))
        }
        "getSubscriptions" => {
            let all = lock(&hub.subscriptions);
            let pair = |s: &Arc<crate::subscription::Subscription>| {
                [s.topic.as_str().into(), s.kind.as_str().into()].into()
            };
            good(Value::Array(all.values().map(pair).collect()))
        }
        "getBusStats" => good([Value::Array(vec![]), Value::Array(vec![]), Value::Array(vec![])].into()),
        "getBusInfo" => good(bus_info(hub)),
        "getPid" => good(Value::Int(std::process::id().into())),
        "getMasterUri" => good(Value::String(format!("http://{}/", hub.master.address))),
        "getName" => good(hub.name().into()),
        "getUri" => good(hub.master.api.as_str().into()),
        // Parameters are ignored.
        "paramUpdate" => good(0.into()),
        "shutdown" if !standing.known => {
            let why = format!(
                "{} may not end the bridge: this host, the master's and `peers` may",
                standing.peer
            );
            hub.peers.refuse(Reason::Call, &why);
            triple(-1, &why, 0)
        }
        "shutdown" => {
            let reason = bridge::printable(text(1).unwrap_or("no reason"));
            *lock(&hub.dismissed) = Some(reason);
            hub.stop.store(true, Ordering::Release);
            good(0.into())
        }
        other if is_name(other) => {
            return xmlrpc::write_fault(&format!("{other} is not a method of a ROS node"));
        }
        _ => return xmlrpc::write_fault("not a method of a ROS node"),
    };
    xmlrpc::write_response(&value)
}

fn request_topic(hub: &Hub, topic: Option<&str>, protocols: Option<&Value>) -> Value {
    let (Some(topic), Some(protocols)) = (topic, protocols.and_then(Value::as_array)) else {
        return triple(-1, "requestTopic: caller, topic and a list of protocols", 0);
    };
    if !lock(&hub.publications).contains_key(topic) {
        return triple(0, &format!("{} does not publish {topic}", hub.name()), 0);
    }
    let is_tcpros = |p: &Value| matches!(p.as_array(), Some([name, ..]) if name.as_str() == Some("TCPROS"));
    if !protocols.iter().any(is_tcpros) {
        return triple(0, "only TCPROS is supported", 0);
    }
    let address: Value = [
        "TCPROS".into(),
        hub.tcpros.host.as_str().into(),
        i32::from(hub.tcpros.port).into(),
    ]
    .into();
    triple(1, "ready", address)
}

/// For `rosnode info`: a connection's number, its other end, its direction, its transport, its topic, and whether it is
/// up.
fn bus_info(hub: &Hub) -> Value {
    let mut rows = Vec::new();
    let mut row = |other: String, direction: &str, topic: &str| {
        let number = i32::try_from(rows.len()).unwrap_or(i32::MAX);
        rows.push(Value::Array(vec![
            number.into(),
            Value::String(other),
            direction.into(),
            "TCPROS".into(),
            topic.into(),
            Value::Bool(true),
        ]));
    };
    for publication in lock(&hub.publications).values() {
        for listener in publication.listeners() {
            row(listener, "o", &publication.topic);
        }
    }
    for subscription in lock(&hub.subscriptions).values() {
        for address in subscription.publishers() {
            row(format!("http://{address}/"), "i", &subscription.topic);
        }
    }
    Value::Array(rows)
}

/// Serves a TCPROS connection: a subscriber of a topic, or a caller of a service.
pub(crate) fn connection(hub: &Arc<Hub>, accepted: &Accepted) {
    let mut timed = Timed::new(&accepted.stream, PATIENCE);
    let header = match Header::read(&mut timed, MAX_GREETING) {
        Ok(header) => header,
        Err(error) => {
            hub.peers.refuse(
                Reason::Malformed,
                format_args!("{}: {error}", accepted.standing.peer),
            );
            tracing::debug!(%error, "a connection without a header");
            return;
        }
    };
    let unknown = match (header.get("service"), header.get("topic")) {
        (Some(service), _) => {
            let offered = lock(&hub.offered).get(service).cloned();
            if let Some(offered) = offered {
                return offered.serve(hub, accepted, &header);
            }
            format!("{} does not serve {service}", hub.name())
        }
        (None, Some(topic)) => {
            let publication = lock(&hub.publications).get(topic).cloned();
            if let Some(publication) = publication {
                return publication.serve(hub, accepted, &header);
            }
            format!("{} does not publish {topic}", hub.name())
        }
        (None, None) => "the connection header names neither a topic nor a service".to_owned(),
    };
    let _ = Header::new(&[("error", &unknown)]).write(&mut timed);
}
