//! Topics, services and actions that currently cross, and the target of each of the bridge's endpoints.

use crate::called::Called;
use crate::hub::Hub;
use crate::incoming::Incoming;
use crate::offered::Offered;
use crate::outgoing::Outgoing;
use crate::troubles::Troubles;
use crate::wire::Port;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Everything that currently crosses, by name in ROS.
#[derive(Debug, Default)]
pub(crate) struct RouteTable {
    pub(crate) incoming: BTreeMap<String, Arc<Incoming>>,
    pub(crate) outgoing: BTreeMap<String, Arc<Outgoing>>,
    pub(crate) called: BTreeMap<String, Arc<Called>>,
    pub(crate) offered: BTreeMap<String, Arc<Offered>>,
    /// Those that cannot cross.
    pub(crate) troubles: Troubled,
    targets: BTreeMap<Port, Target>,
}

/// Names that cannot cross, by kind and direction.
#[derive(Debug, Default)]
pub(crate) struct Troubled {
    pub(crate) incoming: Troubles,
    pub(crate) outgoing: Troubles,
    pub(crate) called: Troubles,
    pub(crate) offered: Troubles,
}

/// The object that an endpoint belongs to.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    Incoming(Arc<Incoming>),
    Called(Arc<Called>),
    Offered(Arc<Offered>),
}

impl RouteTable {
    pub(crate) fn target(&self, port: Port) -> Option<Target> {
        self.targets.get(&port).cloned()
    }

    /// Rebuilds the targets of all endpoints.
    pub(crate) fn settle(&mut self) {
        let incoming = self.incoming.values().flat_map(|i| {
            let ports = i.ports().into_iter();
            ports.map(|port| (port, Target::Incoming(i.clone())))
        });
        let called = self.called.values();
        let called = called.map(|c| (c.port, Target::Called(c.clone())));
        let offered = self.offered.values();
        let offered = offered.map(|o| (o.port, Target::Offered(o.clone())));
        self.targets = incoming.chain(called).chain(offered).collect();
    }

    /// Ends everything.
    pub(crate) fn clear(&mut self, hub: &Hub) {
        self.targets.clear();
        std::mem::take(&mut self.incoming)
            .values()
            .for_each(|i| i.end(hub));
        std::mem::take(&mut self.outgoing)
            .values()
            .for_each(|o| o.end(hub));
        std::mem::take(&mut self.called).values().for_each(|c| c.end(hub));
        std::mem::take(&mut self.offered)
            .values()
            .for_each(|o| o.end(hub));
    }
}
