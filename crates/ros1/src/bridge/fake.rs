//! A master and nodes for tests, built from the crate's own parts.

use super::*;
use crate::http;
use crate::listener::Accepted;
use crate::master;
use crate::xmlrpc::{self, Value};
use std::net::{IpAddr, Ipv4Addr};

const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const PATIENCE: Duration = Duration::from_secs(10);

/// For every topic or service, its nodes with their addresses.
pub(super) type Table = BTreeMap<String, Vec<(String, String)>>;

#[derive(Default)]
pub(super) struct Graph {
    pub(super) publishers: Table,
    pub(super) subscribers: Table,
    pub(super) services: Table,
    types: BTreeMap<String, String>,
    /// Answers to `registerSubscriber` that still get lost.
    pub(super) lost: u32,
    /// Whether calls of `publisherUpdate` get lost.
    pub(super) silent: bool,
    run: u32,
}

/// A ROS master.
pub(super) struct FakeMaster {
    pub(super) graph: Arc<Mutex<Graph>>,
    listener: Listener,
}

impl FakeMaster {
    pub(super) fn start() -> FakeMaster {
        let graph = Arc::<Mutex<Graph>>::default();
        lock(&graph).run = rand();
        let inside = graph.clone();
        let listener = Listener::start("master", LOCAL, &unknown(), move |accepted| {
            answer(&inside, &accepted)
        });
        FakeMaster {
            graph,
            listener: listener.unwrap(),
        }
    }

    pub(super) fn uri(&self) -> String {
        format!("http://127.0.0.1:{}", self.listener.port())
    }

    /// Forgets all nodes, as after a restart.
    pub(super) fn forget_all(&self) {
        *lock(&self.graph) = Graph {
            run: rand(),
            ..Graph::default()
        };
    }

    pub(super) fn add_publisher(&self, topic: &str, kind: &str, node: &FakeNode) {
        let mut graph = lock(&self.graph);
        graph.types.insert(topic.into(), kind.into());
        let all = graph.publishers.entry(topic.into()).or_default();
        all.push((node.name.clone(), node.uri()));
        let uris: Vec<Value> = all.iter().map(|(_, uri)| uri.as_str().into()).collect();
        let subscribers = graph.subscribers.get(topic).cloned().unwrap_or_default();
        if graph.silent {
            return;
        }
        drop(graph);
        for (_, uri) in subscribers {
            let address = HostPort::parse(&uri, "http").unwrap();
            let params = ["/master".into(), topic.into(), Value::Array(uris.clone())];
            drop(master::call(&address, "publisherUpdate", &params));
        }
    }
}

/// A number that differs between tests and between masters.
fn rand() -> u32 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(0) as u32
}

fn names(table: &Table) -> Value {
    let nodes =
        |nodes: &[(String, String)]| Value::Array(nodes.iter().map(|(n, _)| n.as_str().into()).collect());
    let row = |(topic, all): (&String, &Vec<(String, String)>)| [topic.as_str().into(), nodes(all)].into();
    Value::Array(table.iter().filter(|(_, all)| !all.is_empty()).map(row).collect())
}

fn answer(graph: &Mutex<Graph>, accepted: &Accepted) {
    let Ok(body) = http::request(&accepted.stream, PATIENCE) else {
        return;
    };
    let call = xmlrpc::call(&body).unwrap();
    let text = |i: usize| {
        call.params
            .get(i)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let mut graph = lock(graph);
    let graph = &mut *graph;
    let value = match call.method.as_str() {
        "getSystemState" => [
            names(&graph.publishers),
            names(&graph.subscribers),
            names(&graph.services),
        ]
        .into(),
        "getTopicTypes" => {
            let pair = |(t, k): (&String, &String)| [t.as_str().into(), k.as_str().into()].into();
            Value::Array(graph.types.iter().map(pair).collect())
        }
        "getParam" => Value::String(graph.run.to_string()),
        "registerPublisher" => {
            graph.types.insert(text(1), text(2));
            graph
                .publishers
                .entry(text(1))
                .or_default()
                .push((text(0), text(3)));
            Value::Array(vec![])
        }
        "registerSubscriber" => {
            graph
                .subscribers
                .entry(text(1))
                .or_default()
                .push((text(0), text(3)));
            if graph.lost > 0 {
                graph.lost -= 1;
                return;
            }
            let all = graph.publishers.get(&text(1)).cloned().unwrap_or_default();
            Value::Array(all.iter().map(|(_, uri)| uri.as_str().into()).collect())
        }
        "registerService" => {
            graph
                .services
                .entry(text(1))
                .or_default()
                .push((text(0), text(2)));
            1.into()
        }
        "lookupService" => {
            let all = graph.services.get(&text(1));
            all.and_then(|a| a.first()).map_or("", |(_, uri)| uri).into()
        }
        "unregisterPublisher" | "unregisterSubscriber" | "unregisterService" => {
            let table = match call.method.as_str() {
                "unregisterPublisher" => &mut graph.publishers,
                "unregisterSubscriber" => &mut graph.subscribers,
                _ => &mut graph.services,
            };
            let caller = text(0);
            table
                .entry(text(1))
                .or_default()
                .retain(|(name, _)| *name != caller);
            1.into()
        }
        other => panic!("{other} is not a method of the master"),
    };
    let triple: Value = [1.into(), "".into(), value].into();
    let _ = http::answer(
        &accepted.stream,
        "200 OK",
        &xmlrpc::write_response(&triple),
        PATIENCE,
    );
}

/// A node whose TCPROS connections are handled by `serve`.
pub(super) struct FakeNode {
    pub(super) name: String,
    slave: Listener,
    pub(super) tcpros: Listener,
}

impl FakeNode {
    pub(super) fn start(name: &str, serve: impl Fn(Accepted) + Send + Sync + 'static) -> FakeNode {
        let tcpros = Listener::start("node", LOCAL, &unknown(), serve).unwrap();
        let port = tcpros.port();
        let slave = Listener::start("slave", LOCAL, &unknown(), move |accepted| {
            let Ok(body) = http::request(&accepted.stream, PATIENCE) else {
                return;
            };
            let call = xmlrpc::call(&body).unwrap();
            let value: Value = match call.method.as_str() {
                "requestTopic" => ["TCPROS".into(), "127.0.0.1".into(), i32::from(port).into()].into(),
                _ => 0.into(),
            };
            let triple: Value = [1.into(), "".into(), value].into();
            let _ = http::answer(
                &accepted.stream,
                "200 OK",
                &xmlrpc::write_response(&triple),
                PATIENCE,
            );
        });
        FakeNode {
            name: name.into(),
            slave: slave.unwrap(),
            tcpros,
        }
    }

    pub(super) fn uri(&self) -> String {
        format!("http://127.0.0.1:{}/", self.slave.port())
    }
}

/// Peers of a listener without limits.
fn unknown() -> Arc<crate::peers::Peers> {
    Arc::new(crate::peers::Peers::new(&[], u64::MAX, u64::MAX))
}
