//! One client of the Foxglove protocol.

use super::body::{DEPTH, Delivery, Sent};
use super::calls::{self, Calls};
use super::message::{Call, ClientChannel, Message, Wanted};
use super::publish::{Outlet, Steered, refusal};
use super::world::World;
use super::{Shared, assets, lock, parameters};
use crate::frame::Opcode;
use crate::{Client, Handler, Received, Role};
use ropewalk::{Callback, Flavour, Schema, SubscriberOptions};
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Subscriptions of one client; each has a thread.
const MAX_SUBSCRIPTIONS: usize = 256;
/// Topics that one client publishes.
const MAX_OUTLETS: usize = 64;
/// Parameters that one client watches by name.
const MAX_WATCHED: usize = 4096;
/// Maximum bytes of announcements that are sent at once; the rest follows after the next survey of the bus.
const ANNOUNCED: usize = 1 << 20;
/// Shortest time between two reports of losses to a client.
const LOSSES: Duration = Duration::from_secs(2);

/// One client.
#[derive(Debug)]
pub(crate) struct Session {
    shared: Arc<Shared>,
    client: Arc<Client>,
    flavour: Flavour,
    calls: Calls,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    ended: bool,
    /// Topics as they are announced, by number; `None` for those that this client cannot get.
    topics: BTreeMap<u32, Option<Schema>>,
    services: BTreeSet<u32>,
    subscriptions: BTreeMap<u32, Subscription>,
    /// What the client advertises, or why it may not publish it.
    outlets: BTreeMap<u32, Result<Outlet, String>>,
    watched: BTreeSet<String>,
    graph: bool,
    graph_sent: Json,
    lost: BTreeMap<String, u64>,
    warned: Option<Instant>,
}

#[derive(Debug)]
struct Subscription {
    channel: u32,
    delivery: Arc<Delivery>,
    /// What was last reported to the client about its messages.
    reported: Sent,
    _callback: Callback,
}

/// The protocol's names of a serialization and of its definitions.
fn encodings(flavour: Flavour) -> (&'static str, &'static str) {
    match flavour {
        Flavour::Ros1 => ("ros1", "ros1msg"),
        Flavour::Ros2 => ("cdr", "ros2msg"),
    }
}

/// Ends the client's subscriptions and publishers when it leaves.
pub(crate) struct SessionHandler(pub(crate) Arc<Session>);

impl Drop for SessionHandler {
    fn drop(&mut self) {
        let ended = State {
            ended: true,
            ..State::default()
        };
        drop(std::mem::replace(&mut *lock(&self.0.state), ended));
    }
}

impl Handler for SessionHandler {
    fn received(&mut self, message: Received) {
        let read = match &message {
            Received::Text(text) => Message::text(text),
            Received::Binary(bytes) => Message::binary(bytes),
        };
        match read {
            Ok(message) => self.0.handle(message),
            Err(error) => self.0.complain(2, "message", &error.to_string()),
        }
    }
}

impl Session {
    pub(crate) fn new(shared: Arc<Shared>, client: Arc<Client>, flavour: Flavour) -> Self {
        Session {
            shared,
            client,
            flavour,
            calls: Calls::default(),
            state: Mutex::default(),
        }
    }

    /// Introduces the server and announces topics, services and parameters.
    pub(crate) fn begin(&self) {
        let mut capabilities = vec!["connectionGraph", "parameters", "parametersSubscribe"];
        if !self.shared.options.assets.is_empty() {
            capabilities.push("assets");
        }
        if self.client.role >= Role::Drive {
            capabilities.push("services");
            let options = &self.shared.options;
            if !options.allow_publish.is_empty() || !options.drives.is_empty() {
                capabilities.push("clientPublish");
            }
        }
        // Viewers choose their own definitions by the distribution's name.
        let distribution = match self.flavour {
            Flavour::Ros1 => "noetic",
            Flavour::Ros2 => "jazzy",
        };
        let (encoding, _) = encodings(self.flavour);
        self.tell(&json!({
            "op": "serverInfo",
            "name": "ropewalk",
            "capabilities": capabilities,
            "supportedEncodings": [encoding, "json"],
            "metadata": { "ROS_DISTRO": distribution },
            "sessionId": self.shared.session_id,
        }));
        self.update();
    }

    /// Sends the client the changes on the bus, and its losses.
    pub(crate) fn update(&self) {
        let world = self.shared.world();
        let mut state = lock(&self.state);
        if state.ended {
            return;
        }
        self.announce_topics(&mut state, &world);
        if self.client.role >= Role::Drive {
            self.announce_services(&mut state, &world);
        }
        if state.graph && state.graph_sent != world.graph {
            self.send_graph(&mut state, &world);
        }
        self.tell_losses(&mut state);
    }

    fn announce_topics(&self, state: &mut State, world: &World) {
        let gone: Vec<u32> = state
            .topics
            .keys()
            .filter(|id| !world.topics.contains_key(id))
            .copied()
            .collect();
        for id in &gone {
            state.topics.remove(id);
        }
        if !gone.is_empty() {
            let of_gone = |s: &&Subscription| gone.contains(&s.channel);
            let ended = state.subscriptions.iter().filter(|(_, s)| of_gone(s));
            let ended: Vec<u32> = ended.map(|(id, _)| *id).collect();
            let ended = ended.iter().filter_map(|id| state.subscriptions.remove_entry(id));
            let ended = ended.collect();
            self.forget(ended);
            self.tell(&json!({ "op": "unadvertise", "channelIds": gone }));
        }
        let (mut channels, mut size) = (Vec::new(), 0);
        for (id, topic) in &world.topics {
            if state.topics.contains_key(id) {
                continue;
            }
            if size > ANNOUNCED {
                break;
            }
            let schema = topic.schema.in_flavour(self.flavour);
            if let Err(error) = &schema {
                self.complain(
                    1,
                    &topic.name,
                    &format!("{} cannot be shown: {error}", topic.name),
                );
            }
            let schema = state.topics.entry(*id).or_insert(schema.ok());
            let Some(schema) = schema else { continue };
            let (encoding, schema_encoding) = encodings(self.flavour);
            let name = match self.flavour {
                Flavour::Ros1 => schema.name().to_owned(),
                Flavour::Ros2 => schema.ros2_name(),
            };
            let definition = schema.definition();
            size += definition.len() + topic.name.len() + 200;
            channels.push(json!({
                "id": id, "topic": topic.name, "encoding": encoding, "schemaName": name,
                "schema": definition, "schemaEncoding": schema_encoding,
            }));
        }
        if !channels.is_empty() {
            self.tell(&json!({ "op": "advertise", "channels": channels }));
        }
    }

    fn announce_services(&self, state: &mut State, world: &World) {
        let gone: Vec<u32> = state
            .services
            .iter()
            .filter(|id| !world.services.contains_key(id))
            .copied()
            .collect();
        for id in &gone {
            state.services.remove(id);
        }
        if !gone.is_empty() {
            self.tell(&json!({ "op": "unadvertiseServices", "serviceIds": gone }));
        }
        let (mut services, mut size) = (Vec::new(), 0);
        for (id, named) in &world.services {
            if size > ANNOUNCED || !state.services.insert(*id) {
                continue;
            }
            let service = &named.service;
            // With a header, bytes of both ROS versions differ.
            if service.request().flavour() != self.flavour && service.common_sum().is_none() {
                continue;
            }
            let Ok(shown) = service.in_flavour(self.flavour) else {
                continue;
            };
            let (encoding, schema_encoding) = encodings(self.flavour);
            let part = |schema: &Schema| {
                json!({ "encoding": encoding, "schemaName": schema.name(), "schemaEncoding": schema_encoding,
                        "schema": schema.definition() })
            };
            let kind = match self.flavour {
                Flavour::Ros1 => shown.name(),
                Flavour::Ros2 => shown.name().replacen('/', "/srv/", 1),
            };
            // Older clients read the texts, newer ones the objects.
            let announced = json!({
                "id": id, "name": named.name, "type": kind,
                "requestSchema": shown.request().definition(), "responseSchema": shown.response().definition(),
                "request": part(shown.request()), "response": part(shown.response()),
            });
            size += announced.to_string().len();
            services.push(announced);
        }
        if !services.is_empty() {
            self.tell(&json!({ "op": "advertiseServices", "services": services }));
        }
    }

    fn send_graph(&self, state: &mut State, world: &World) {
        let before = std::mem::replace(&mut state.graph_sent, world.graph.clone());
        let names = |graph: &Json, of: &[&str]| -> BTreeSet<String> {
            let lists = of.iter().filter_map(|list| graph[*list].as_array()).flatten();
            lists
                .filter_map(|item| item["name"].as_str())
                .map(str::to_owned)
                .collect()
        };
        let gone = |of: &[&str]| -> Vec<String> {
            names(&before, of)
                .difference(&names(&world.graph, of))
                .cloned()
                .collect()
        };
        self.tell(&json!({
            "op": "connectionGraphUpdate",
            "publishedTopics": world.graph["published"],
            "subscribedTopics": world.graph["subscribed"],
            "advertisedServices": world.graph["services"],
            "removedTopics": gone(&["published", "subscribed"]),
            "removedServices": gone(&["services"]),
        }));
    }

    fn tell_losses(&self, state: &mut State) {
        for (subscription, lost) in self.client.queue.losses() {
            if let Some(subscription) = state.subscriptions.get(&subscription) {
                *state.lost.entry(subscription.delivery.topic.clone()).or_default() += lost;
            }
        }
        if state.warned.is_some_and(|warned| warned.elapsed() < LOSSES) {
            return;
        }
        self.report_sizes(state);
        if state.lost.is_empty() {
            return;
        }
        state.warned = Some(Instant::now());
        for (topic, lost) in std::mem::take(&mut state.lost) {
            let text = format!("{topic}: {lost} messages were dropped because this connection is too slow");
            self.complain(1, &format!("lost {topic}"), &text);
        }
    }

    /// Reports when messages are sent in another size than before, or are too long.
    fn report_sizes(&self, state: &mut State) {
        for subscription in state.subscriptions.values_mut() {
            let sent = *lock(&subscription.delivery.sent);
            if subscription.reported == sent {
                continue;
            }
            subscription.reported = sent;
            state.warned = Some(Instant::now());
            let topic = &subscription.delivery.topic;
            let level = u8::from(matches!(sent, Sent::TooLong { .. }));
            let text = sent.text(topic, self.client.queue.longest());
            self.complain(level, &format!("size {topic}"), &text);
        }
    }

    fn handle(&self, message: Message) {
        match message {
            Message::Subscribe(items) => items.iter().for_each(|wanted| self.subscribe(wanted)),
            Message::Unsubscribe(ids) => {
                let mut state = lock(&self.state);
                let ended = ids
                    .into_iter()
                    .filter_map(|id| state.subscriptions.remove_entry(&id))
                    .collect();
                drop(state);
                self.forget(ended);
            }
            Message::Advertise(channels) => channels.iter().for_each(|channel| self.advertise(channel)),
            Message::Unadvertise(ids) => {
                let mut state = lock(&self.state);
                ids.iter().for_each(|id| drop(state.outlets.remove(id)));
            }
            Message::Publish { channel, payload } => self.publish(channel, &payload),
            Message::Call(call) => self.call(call),
            Message::GetParameters { names, id } => self.get_parameters(&names, id),
            Message::SetParameters { values, id } => self.set_parameters(&values, id),
            Message::WatchParameters(names) => {
                let mut state = lock(&self.state);
                let room = MAX_WATCHED.saturating_sub(state.watched.len());
                state.watched.extend(names.into_iter().take(room));
            }
            Message::UnwatchParameters(names) => {
                let mut state = lock(&self.state);
                state
                    .watched
                    .retain(|name| !names.is_empty() && !names.contains(name));
            }
            Message::WatchGraph(wanted) => {
                let mut state = lock(&self.state);
                state.graph = wanted;
                state.graph_sent = Json::Null;
                if wanted {
                    self.send_graph(&mut state, &self.shared.world());
                }
            }
            Message::FetchAsset { uri, request } => self.fetch(&uri, request),
        }
    }

    fn subscribe(&self, wanted: &Wanted) {
        if let Err(problem) = self.try_subscribe(wanted) {
            self.complain(2, "subscribe", &problem);
        }
    }

    fn try_subscribe(&self, &Wanted { id, channel, timed }: &Wanted) -> Result<(), String> {
        let world = self.shared.world();
        let mut state = lock(&self.state);
        if state.subscriptions.contains_key(&id) {
            return Err(format!("the subscription {id} exists already"));
        }
        if state.subscriptions.len() >= MAX_SUBSCRIPTIONS {
            return Err(format!(
                "a client may have at most {MAX_SUBSCRIPTIONS} subscriptions"
            ));
        }
        let schema = state.topics.get(&channel).and_then(Option::as_ref);
        let (Some(schema), Some(topic)) = (schema, world.topics.get(&channel)) else {
            return Err(format!("there is no channel {channel}"));
        };
        let options = SubscriberOptions::default()
            .with_depth(DEPTH)
            .with_max_held(DEPTH);
        let subscriber = self
            .shared
            .node
            .dynamic_subscriber_with(&topic.name, schema, options);
        let delivery = Arc::new(Delivery {
            subscription: id,
            topic: topic.name.clone(),
            flavour: self.flavour,
            timed,
            shared: self.shared.clone(),
            queue: self.client.queue.clone(),
            sent: Mutex::default(),
        });
        let of_callback = delivery.clone();
        let callback = subscriber
            .map_err(|e| e.to_string())?
            .callback(move |message| of_callback.push(message));
        let subscription = Subscription {
            channel,
            delivery,
            reported: Sent::Whole,
            _callback: callback.map_err(|e| e.to_string())?,
        };
        state.subscriptions.insert(id, subscription);
        Ok(())
    }

    /// Ends subscriptions, then drops their waiting messages.
    fn forget(&self, subscriptions: Vec<(u32, Subscription)>) {
        for (id, subscription) in subscriptions {
            drop(subscription);
            self.client.queue.forget(id);
        }
    }

    fn advertise(&self, channel: &ClientChannel) {
        let mut state = lock(&self.state);
        if state.outlets.len() >= MAX_OUTLETS {
            return self.complain(2, "publish", &format!("publish at most {MAX_OUTLETS} topics"));
        }
        let topic = &channel.topic;
        let outlet = self.open(channel).map_err(|problem| refusal(topic, &problem));
        // Foxglove's 3D panel advertises goals as it opens: if they are not allowed, a client learns of it only when it publishes.
        let allowed = self.shared.options.may_publish(topic);
        if allowed && let Err(text) = &outlet {
            self.complain(2, &format!("publish {}", channel.id), text);
        }
        state.outlets.insert(channel.id, outlet);
    }

    fn open(&self, channel: &ClientChannel) -> Result<Outlet, String> {
        if self.client.role < Role::Drive {
            return Err("publishing needs a token with the role drive".to_owned());
        }
        let (options, topic) = (&self.shared.options, &channel.topic);
        match options.driven(topic) {
            Some(robot) => self.steer(robot, channel),
            None if !options.may_publish(topic) => {
                Err(format!("start with --allow-publish {topic} to allow it"))
            }
            None => Outlet::open(&self.shared.node, &self.shared.world(), self.flavour, channel),
        }
    }

    /// A topic that drives a robot.
    fn steer(&self, robot: &str, channel: &ClientChannel) -> Result<Outlet, String> {
        let options = &self.shared.options;
        let fleet = options.fleet.as_ref().ok_or("this server drives no robots")?;
        let operator = format!("Foxglove at {}", self.client.address);
        let (client, topic) = (Arc::downgrade(&self.client), channel.topic.clone());
        let id = format!("drive {topic}");
        let refused = move |text: String| {
            if let Some(client) = client.upgrade() {
                complain(&client, 1, &id, &format!("{topic}: {text}"));
            }
        };
        Outlet::steer(self.flavour, channel, || {
            Ok(Steered {
                topic: channel.topic.clone(),
                driver: fleet.join(robot, &operator)?,
                limits: options.limits,
                refused: Arc::new(refused),
            })
        })
    }

    fn publish(&self, channel: u32, payload: &[u8]) {
        let state = lock(&self.state);
        let published = match state.outlets.get(&channel) {
            Some(Ok(outlet)) => outlet
                .publish(payload)
                .map_err(|error| format!("{}: {error}", outlet.topic())),
            Some(Err(refusal)) => Err(refusal.clone()),
            None => Err(format!("the channel {channel} was not advertised")),
        };
        if let Err(error) = published {
            self.complain(2, &format!("publish {channel}"), &error);
        }
    }

    fn call(&self, call: Call) {
        let queue = &self.client.queue;
        if self.client.role < Role::Drive {
            let problem = "calling services needs a token with the role drive";
            return calls::fail(queue, call.service, call.id, problem);
        }
        let world = self.shared.world();
        match world.services.get(&call.service) {
            Some(named) => self.calls.start(&self.shared.node, named.clone(), call, queue),
            None => calls::fail(queue, call.service, call.id, "there is no such service"),
        }
    }

    fn parameters(&self) -> BTreeMap<String, Json> {
        parameters::all(&self.shared.world().links)
    }

    fn get_parameters(&self, names: &[String], id: Option<String>) {
        let mut all = self.parameters();
        if !names.is_empty() {
            all.retain(|name, _| names.contains(name));
        }
        self.send_parameters(&all, id);
    }

    fn set_parameters(&self, values: &[(String, Json)], id: Option<String>) {
        let world = self.shared.world();
        for (name, value) in values {
            let set = match self.client.role < Role::Operate {
                true => Err("changing settings needs a token with the role operate".to_owned()),
                false => parameters::set(&world.links, name, value),
            };
            if let Err(problem) = set {
                self.complain(2, "parameter", &problem);
            }
        }
        let all = self.parameters();
        if id.is_some() {
            let mut own = all.clone();
            own.retain(|name, _| values.iter().any(|(n, _)| n == name));
            self.send_parameters(&own, id);
        }
        for session in self.shared.sessions() {
            let watched = lock(&session.state).watched.clone();
            let mut changed = all.clone();
            changed.retain(|name, _| watched.contains(name) && values.iter().any(|(n, _)| n == name));
            if !changed.is_empty() {
                session.send_parameters(&changed, None);
            }
        }
    }

    fn send_parameters(&self, all: &BTreeMap<String, Json>, id: Option<String>) {
        // A parameter without a value counts as not set.
        let list = all.iter().map(|(name, value)| match value {
            Json::Null => json!({ "name": name }),
            value => json!({ "name": name, "value": value }),
        });
        let mut message = json!({ "op": "parameterValues", "parameters": list.collect::<Vec<_>>() });
        if let Some(id) = id {
            message["id"] = id.into();
        }
        self.tell(&message);
    }

    fn fetch(&self, uri: &str, request: u32) {
        let fetched = assets::fetch(&self.shared.options.assets, uri);
        let mut bytes = vec![4];
        bytes.extend(request.to_le_bytes());
        bytes.push(u8::from(fetched.is_err()));
        let error = fetched.as_ref().err().map_or("", String::as_str);
        bytes.extend((error.len() as u32).to_le_bytes());
        bytes.extend(error.as_bytes());
        bytes.extend(fetched.as_deref().unwrap_or_default());
        self.client.queue.answer_in_turn(Opcode::Binary, bytes);
    }

    fn tell(&self, json: &Json) {
        self.client
            .queue
            .answer(Opcode::Text, json.to_string().into_bytes());
    }

    /// Shows a line in the client: level 1 warns, 2 is an error. A newer line with the same key replaces it.
    fn complain(&self, level: u8, key: &str, text: &str) {
        complain(&self.client, level, key, text);
    }
}

/// Shows a line in the client; a later one with the same key replaces it.
fn complain(client: &Client, level: u8, key: &str, text: &str) {
    let status = json!({ "op": "status", "level": level, "message": text, "id": key });
    client.queue.answer(Opcode::Text, status.to_string().into_bytes());
}
