//! Decides which services cross: those of the domain onto the bus, and those of the bus into the domain. Each service's
//! problems affect only that service.

use crate::called::Called;
use crate::hub::Hub;
use crate::offered::Offered;
use crate::routes::RouteTable;
use crate::types::{self, OnBus};
use crate::wire::{Id, Picture, Seen};
use bridge::nodes::Kind;
use schema::Flavour;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

/// Maximum number of services per direction; onto the bus, also the maximum per participant.
const MAX_SERVICES: usize = 256;
const MAX_SERVICES_EACH: usize = 128;

/// Updates services of the domain that go onto the bus.
pub(crate) fn to_bus(hub: &Arc<Hub>, routes: &mut RouteTable, picture: &Picture, bus: &OnBus, now: Instant) {
    let servers = picture.endpoints.values().filter(|s| s.kind == Kind::Service);
    let servers: Vec<&Seen> = servers
        .filter(|s| picture.counts(s, hub.config.from_bridges))
        .collect();
    let mut brought: BTreeMap<Id, usize> = BTreeMap::new();
    for called in routes.called.values() {
        *brought.entry(called.by).or_default() += 1;
    }
    for seen in &servers {
        let name = &seen.what.name;
        let Some((rule, bus_name)) = hub.rules().service_to_bus(name) else {
            continue;
        };
        if !routes.called.contains_key(name) {
            let each = brought.entry(seen.participant).or_default();
            if routes.called.len() >= MAX_SERVICES || *each >= MAX_SERVICES_EACH {
                let problem = format_args!(
                    "more than {MAX_SERVICES} services, or {MAX_SERVICES_EACH} of one process: ignoring the others"
                );
                routes.troubles.called.report(hub, name, problem);
                continue;
            }
            let made = types::of_service(hub, bus, seen, rule.kind.as_deref()).map_err(|e| e.to_string());
            let made = made.and_then(|service| {
                Called::new(hub, name, bus_name, service, rule, seen.participant).map_err(|e| e.to_string())
            });
            match made {
                Ok(called) => {
                    *each += 1;
                    routes.called.insert(name.clone(), called);
                }
                Err(error) => {
                    routes.troubles.called.report(hub, name, error);
                    continue;
                }
            }
        }
        if let Some(called) = routes.called.get(name) {
            match called.offer(hub) {
                Ok(()) => hub.solved(name),
                Err(error) => hub.problem(name, error),
            }
        }
    }
    let there: BTreeSet<&str> = servers.iter().map(|s| s.what.name.as_str()).collect();
    routes.called.retain(|name, called| {
        let stays = there.contains(name.as_str());
        if stays {
            called.sweep(now);
        } else {
            called.end(hub);
        }
        stays
    });
    routes.troubles.called.settle(hub);
}

/// Updates services of the bus that go into the domain.
pub(crate) fn to_ros(hub: &Arc<Hub>, routes: &mut RouteTable, bus: &OnBus) {
    let (mut there, now) = (BTreeSet::new(), Instant::now());
    for info in &bus.services {
        let served = info.servers.iter().any(|s| !hub.is_own(s.id));
        let crosses = hub.rules().service_to_ros(&info.service.service);
        let Some((rule, name)) = crosses.filter(|_| served) else {
            continue;
        };
        there.insert(name.clone());
        if routes.offered.contains_key(&name) {
            continue;
        }
        if routes.offered.len() >= MAX_SERVICES {
            let problem = format_args!("more than {MAX_SERVICES} services: ignoring the others");
            routes.troubles.offered.report(hub, &name, problem);
            continue;
        }
        let made = hub.node.schema_of_service(info).map_err(|e| e.to_string());
        // A service of ROS 1 is served as the ROS 2 service of the same name.
        let made = made.and_then(|service| {
            service.in_flavour(Flavour::Ros2).map_err(|error| {
                format!("on the bus it has a ROS 1 definition that cannot be converted to ROS 2: {error}")
            })
        });
        let made = made.and_then(|service| {
            let kind = &info.service.type_name;
            if let Some(wanted) = rule.kind.as_ref().filter(|k| *k != kind) {
                return Err(format!(
                    "its type on the bus is {kind}, but the rule requires {wanted}: correct `type`"
                ));
            }
            let bus_name = info.service.service.clone();
            Offered::start(hub, name.clone(), bus_name, service, rule).map_err(|e| e.to_string())
        });
        match made {
            Ok(offered) => {
                hub.solved(&name);
                routes.offered.insert(name, offered);
            }
            Err(error) => routes.troubles.offered.report(hub, &name, error),
        }
    }
    routes.offered.retain(|name, offered| {
        let stays = offered.stays(there.contains(name), now);
        if !stays {
            offered.end(hub);
        }
        stays
    });
    routes.troubles.offered.settle(hub);
}
