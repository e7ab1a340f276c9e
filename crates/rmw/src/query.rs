//! Queries of the graph: nodes, topics and services with their types, endpoints with their quality of service.

use crate::abi::introspection::TypeHash;
use crate::abi::{
    Allocator, Gid, NODE_NAME_NON_EXISTENT, NamesAndTypes, QosProfile, Ret, RmwNode, StringArray,
    TopicEndpointInfo, TopicEndpointInfoArray,
};
use crate::error::{Failure, Outcome, arg, arg_mut, guard, ours, text};
use crate::graph::record::{Endpoint, Kind};
use crate::graph::{Graph, NodeName};
use crate::names;
use crate::node;
use crate::publisher::gid_bytes;
use crate::qos;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::c_char;

/// Names, each with its types.
type Found = BTreeMap<String, BTreeSet<String>>;

/// Checks that an array is empty.
fn empty(array: &StringArray, name: &str) -> Outcome {
    match array.size == 0 && array.data.is_null() {
        true => Ok(()),
        false => Err(Failure::argument(format_args!("{name} is not zero-initialized"))),
    }
}

/// # Safety
/// The arguments are null or as rmw/rmw.h documents them.
unsafe fn node_names(
    node: *const RmwNode,
    names: *mut StringArray,
    namespaces: *mut StringArray,
    enclaves: Option<*mut StringArray>,
) -> Outcome {
    // SAFETY: upheld by the caller.
    let node = unsafe { node::of(node)? };
    // SAFETY: likewise.
    let (names, namespaces) = unsafe {
        (
            arg_mut(names, "node_names")?,
            arg_mut(namespaces, "node_namespaces")?,
        )
    };
    empty(names, "node_names")?;
    empty(namespaces, "node_namespaces")?;
    let enclaves = match enclaves {
        // SAFETY: likewise.
        Some(enclaves) => Some(unsafe { arg_mut(enclaves, "enclaves")? }),
        None => None,
    };
    if let Some(enclaves) = &enclaves {
        empty(enclaves, "enclaves")?;
    }
    let mut all = [Vec::new(), Vec::new(), Vec::new()];
    node.context.graph.each(|found, enclave, _| {
        all[0].push(found.name.clone());
        all[1].push(found.namespace.clone());
        all[2].push(enclave.to_owned());
    });
    let allocator = malloc();
    names.fill(&allocator, &all[0])?;
    let rest = namespaces
        .fill(&allocator, &all[1])
        .and_then(|()| match enclaves {
            Some(enclaves) => enclaves
                .fill(&allocator, &all[2])
                .inspect_err(|_| namespaces.clear()),
            None => Ok(()),
        });
    rest.inspect_err(|_| names.clear())
}

/// rcutils' default allocator. Callers use it to free arrays that carry no allocator of their own.
fn malloc() -> Allocator {
    unsafe extern "C" fn allocate(size: usize, _: *mut std::ffi::c_void) -> *mut std::ffi::c_void {
        // SAFETY: malloc accepts any size.
        unsafe { libc::malloc(size) }
    }
    unsafe extern "C" fn deallocate(memory: *mut std::ffi::c_void, _: *mut std::ffi::c_void) {
        // SAFETY: the caller's memory comes from `malloc`.
        unsafe { libc::free(memory) }
    }
    unsafe extern "C" fn reallocate(
        memory: *mut std::ffi::c_void,
        size: usize,
        _: *mut std::ffi::c_void,
    ) -> *mut std::ffi::c_void {
        // SAFETY: the caller's memory is null or comes from `malloc`.
        unsafe { libc::realloc(memory, size) }
    }
    unsafe extern "C" fn zeroed(
        count: usize,
        size: usize,
        _: *mut std::ffi::c_void,
    ) -> *mut std::ffi::c_void {
        // SAFETY: calloc accepts any size and checks the product.
        unsafe { libc::calloc(count, size) }
    }
    Allocator {
        allocate: Some(allocate),
        deallocate: Some(deallocate),
        reallocate: Some(reallocate),
        zero_allocate: Some(zeroed),
        state: std::ptr::null_mut(),
    }
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_get_node_names(
    node: *const RmwNode,
    names: *mut StringArray,
    namespaces: *mut StringArray,
) -> Ret {
    // SAFETY: upheld by the caller.
    guard(|| unsafe { node_names(node, names, namespaces, None) })
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_get_node_names_with_enclaves(
    node: *const RmwNode,
    names: *mut StringArray,
    namespaces: *mut StringArray,
    enclaves: *mut StringArray,
) -> Ret {
    // SAFETY: upheld by the caller.
    guard(|| unsafe { node_names(node, names, namespaces, Some(enclaves)) })
}

impl NamesAndTypes {
    fn fill(&mut self, allocator: &Allocator, found: &Found) -> Outcome {
        let names: Vec<String> = found.keys().cloned().collect();
        self.names.fill(allocator, &names)?;
        let types = allocator
            .zeroed::<StringArray>(found.len())
            .inspect_err(|_| self.names.clear())?;
        for (i, all) in found.values().enumerate() {
            let all: Vec<String> = all.iter().cloned().collect();
            // SAFETY: `types` has a zeroed element for each name, and is not shared.
            if let Err(failure) = unsafe { (*types.add(i)).fill(allocator, &all) } {
                for j in 0..i {
                    // SAFETY: filled above.
                    unsafe { (*types.add(j)).clear() };
                }
                // SAFETY: made above.
                unsafe { allocator.free(types) };
                self.names.clear();
                return Err(failure);
            }
        }
        self.types = types;
        Ok(())
    }
}

/// Checks the arguments that all queries of names and types share.
///
/// # Safety
/// The arguments are null or as rmw documents them.
unsafe fn asked<'a>(
    node: *const RmwNode,
    allocator: *const Allocator,
    out: *mut NamesAndTypes,
) -> Outcome<(&'a node::Node, &'a Allocator, &'a mut NamesAndTypes)> {
    // SAFETY: upheld by the caller.
    let (node, allocator, out) = unsafe {
        (
            node::of(node)?,
            arg(allocator, "allocator")?,
            arg_mut(out, "names_and_types")?,
        )
    };
    allocator.check()?;
    empty(&out.names, "names_and_types")?;
    if !out.types.is_null() {
        return Err(Failure::argument("names_and_types is not zero-initialized"));
    }
    Ok((node, allocator, out))
}

/// Returns names and types of all endpoints of these kinds.
fn all(graph: &Graph, kinds: &[Kind]) -> Found {
    let mut found = Found::new();
    graph.each(|node, _, _| {
        for e in node.endpoints.iter().filter(|e| kinds.contains(&e.kind)) {
            found
                .entry(e.name.clone())
                .or_default()
                .insert(e.type_name.clone());
        }
    });
    found
}

/// # Safety
/// As documented in rmw/get_topic_names_and_types.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_get_topic_names_and_types(
    node: *const RmwNode,
    allocator: *mut Allocator,
    _: bool,
    out: *mut NamesAndTypes,
) -> Ret {
    guard(|| {
        // SAFETY: upheld by the caller.
        let (node, allocator, out) = unsafe { asked(node, allocator, out)? };
        out.fill(
            allocator,
            &all(&node.context.graph, &[Kind::Publisher, Kind::Subscription]),
        )
    })
}

/// # Safety
/// As documented in rmw/get_service_names_and_types.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_get_service_names_and_types(
    node: *const RmwNode,
    allocator: *mut Allocator,
    out: *mut NamesAndTypes,
) -> Ret {
    guard(|| {
        // SAFETY: upheld by the caller.
        let (node, allocator, out) = unsafe { asked(node, allocator, out)? };
        out.fill(
            allocator,
            &all(&node.context.graph, &[Kind::Service, Kind::Client]),
        )
    })
}

/// Returns names and types of a node's endpoints of a kind.
///
/// # Safety
/// The arguments are null or as rmw/get_node_info_and_types.h documents them.
unsafe fn by_node(
    node: *const RmwNode,
    allocator: *const Allocator,
    name: *const c_char,
    namespace: *const c_char,
    out: *mut NamesAndTypes,
    kind: Kind,
) -> Outcome {
    // SAFETY: upheld by the caller.
    let (node, allocator, out) = unsafe { asked(node, allocator, out)? };
    // SAFETY: likewise.
    let (name, namespace) = unsafe { (text(name, "node_name")?, text(namespace, "node_namespace")?) };
    let problem = names::node(name).or_else(|| names::namespace(namespace));
    if let Some(problem) = problem {
        return Err(Failure::argument(problem));
    }
    let (mut found, mut is_there) = (Found::new(), false);
    node.context.graph.each(|other, _, _| {
        if other.name != name || other.namespace != namespace {
            return;
        }
        is_there = true;
        for e in other.endpoints.iter().filter(|e| e.kind == kind) {
            found
                .entry(e.name.clone())
                .or_default()
                .insert(e.type_name.clone());
        }
    });
    if !is_there {
        return Err(Failure {
            code: NODE_NAME_NON_EXISTENT,
            text: format!("there is no node {name} in {namespace}"),
        });
    }
    out.fill(allocator, &found)
}

macro_rules! by_node {
    ($($(#[$doc:meta])* $name:ident($($demangle:ident)?) => $kind:ident;)*) => { $(
        $(#[$doc])*
        ///
        /// # Safety
        /// As documented in rmw/get_node_info_and_types.h.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(
            node: *const RmwNode,
            allocator: *mut Allocator,
            name: *const c_char,
            namespace: *const c_char,
            $($demangle: bool,)?
            out: *mut NamesAndTypes,
        ) -> Ret {
            $(let _ = $demangle;)?
            // SAFETY: upheld by the caller.
            guard(|| unsafe { by_node(node, allocator, name, namespace, out, Kind::$kind) })
        }
    )* };
}

by_node! {
    /// Topics that a node publishes.
    rmw_get_publisher_names_and_types_by_node(no_demangle) => Publisher;
    /// Topics that a node subscribes to.
    rmw_get_subscriber_names_and_types_by_node(no_demangle) => Subscription;
    /// Services that a node serves.
    rmw_get_service_names_and_types_by_node() => Service;
    /// Services that a node calls.
    rmw_get_client_names_and_types_by_node() => Client;
}

/// Counts the endpoints of a kind under a name.
///
/// # Safety
/// The arguments are null or as rmw/rmw.h documents them.
unsafe fn count(node: *const RmwNode, name: *const c_char, count: *mut usize, kind: Kind) -> Outcome {
    // SAFETY: upheld by the caller.
    let (node, name, count) = unsafe {
        (
            node::of(node)?,
            text(name, "topic_name")?,
            arg_mut(count, "count")?,
        )
    };
    if let Some(problem) = names::topic(name) {
        return Err(Failure::argument(format_args!(
            "invalid name {name:?}: {problem}"
        )));
    }
    *count = node.context.graph.endpoints(name, kind).len();
    Ok(())
}

macro_rules! count {
    ($($(#[$doc:meta])* $name:ident => $kind:ident;)*) => { $(
        $(#[$doc])*
        ///
        /// # Safety
        /// As documented in rmw/rmw.h.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(node: *const RmwNode, name: *const c_char, out: *mut usize) -> Ret {
            // SAFETY: upheld by the caller.
            guard(|| unsafe { count(node, name, out, Kind::$kind) })
        }
    )* };
}

count! {
    /// How many publishers a topic has.
    rmw_count_publishers => Publisher;
    /// How many subscriptions a topic has.
    rmw_count_subscribers => Subscription;
    /// How many clients a service has.
    rmw_count_clients => Client;
    /// How many servers a service has.
    rmw_count_services => Service;
}

/// Lists the endpoints of a topic.
///
/// # Safety
/// The arguments are null or as rmw/get_topic_endpoint_info.h documents them.
unsafe fn endpoints(
    node: *const RmwNode,
    allocator: *const Allocator,
    topic: *const c_char,
    out: *mut TopicEndpointInfoArray,
    kind: Kind,
) -> Outcome {
    // SAFETY: upheld by the caller.
    let (node, allocator) = unsafe { (node::of(node)?, arg(allocator, "allocator")?) };
    allocator.check()?;
    // SAFETY: likewise.
    let (topic, out) = unsafe { (text(topic, "topic_name")?, arg_mut(out, "endpoint infos")?) };
    if out.size != 0 || !out.infos.is_null() {
        return Err(Failure::argument(
            "the array of endpoints is not zero-initialized",
        ));
    }
    let found = node.context.graph.endpoints(topic, kind);
    let infos: *mut TopicEndpointInfo = allocator.zeroed(found.len())?;
    for (i, (node, endpoint)) in found.iter().enumerate() {
        // SAFETY: there is a zeroed element for each.
        let info = unsafe { &mut *infos.add(i) };
        if let Err(failure) = describe(info, allocator, node, endpoint) {
            for j in 0..=i {
                // SAFETY: each string is null or made by `describe`.
                unsafe {
                    let info = &*infos.add(j);
                    allocator.free(info.node_name.cast_mut());
                    allocator.free(info.node_namespace.cast_mut());
                    allocator.free(info.topic_type.cast_mut());
                }
            }
            // SAFETY: made above.
            unsafe { allocator.free(infos) };
            return Err(failure);
        }
    }
    (out.size, out.infos) = (found.len(), infos);
    Ok(())
}

fn describe(
    info: &mut TopicEndpointInfo,
    allocator: &Allocator,
    node: &NodeName,
    endpoint: &Endpoint,
) -> Outcome {
    info.node_name = allocator.text(&node.name)?;
    info.node_namespace = allocator.text(&node.namespace)?;
    info.topic_type = allocator.text(&endpoint.type_name)?;
    info.topic_type_hash = TypeHash::of_parts(endpoint.type_hash);
    // rmw_endpoint_type_t.
    info.endpoint_type = match endpoint.kind {
        Kind::Publisher | Kind::Client => 1,
        Kind::Subscription | Kind::Service => 2,
    };
    info.gid = gid_bytes(endpoint.id);
    info.qos = (&endpoint.qos).into();
    Ok(())
}

/// # Safety
/// As documented in rmw/get_topic_endpoint_info.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_get_publishers_info_by_topic(
    node: *const RmwNode,
    allocator: *mut Allocator,
    topic: *const c_char,
    _: bool,
    out: *mut TopicEndpointInfoArray,
) -> Ret {
    // SAFETY: upheld by the caller.
    guard(|| unsafe { endpoints(node, allocator, topic, out, Kind::Publisher) })
}

/// # Safety
/// As documented in rmw/get_topic_endpoint_info.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_get_subscriptions_info_by_topic(
    node: *const RmwNode,
    allocator: *mut Allocator,
    topic: *const c_char,
    _: bool,
    out: *mut TopicEndpointInfoArray,
) -> Ret {
    // SAFETY: upheld by the caller.
    guard(|| unsafe { endpoints(node, allocator, topic, out, Kind::Subscription) })
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_compare_gids_equal(
    a: *const Gid,
    b: *const Gid,
    result: *mut bool,
) -> Ret {
    guard(|| {
        // SAFETY: upheld by the caller; identifiers live forever.
        let (a, b) = unsafe { (arg(a, "gid1")?, arg(b, "gid2")?) };
        // SAFETY: likewise.
        let result = unsafe {
            ours(a.implementation, "gid1")?;
            ours(b.implementation, "gid2")?;
            arg_mut(result, "result")?
        };
        *result = a.data == b.data;
        Ok(())
    })
}

/// # Safety
/// As documented in rmw/qos_profiles.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_qos_profile_check_compatible(
    publisher: QosProfile,
    subscription: QosProfile,
    compatibility: *mut u32,
    reason: *mut c_char,
    size: usize,
) -> Ret {
    guard(|| {
        // SAFETY: upheld by the caller.
        let compatibility = unsafe { arg_mut(compatibility, "compatibility")? };
        if reason.is_null() && size != 0 {
            return Err(Failure::argument(
                "reason argument is null, and its size is not 0",
            ));
        }
        let (found, why) = qos::check(&publisher, &subscription);
        *compatibility = found;
        if size > 0 {
            let len = why.len().min(size - 1);
            // SAFETY: the caller's buffer has `size` bytes.
            unsafe {
                reason.cast::<u8>().copy_from_nonoverlapping(why.as_ptr(), len);
                reason.add(len).write(0);
            }
        }
        Ok(())
    })
}
