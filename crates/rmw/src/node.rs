//! Nodes.

use crate::abi::{Ret, RmwContext, RmwGuardCondition, RmwNode};
use crate::context::{self, Context};
use crate::error::{Failure, IDENTIFIER, Outcome, arg, guard, guard_ptr, ours, text};
use crate::graph::{Listener, NodeName};
use crate::guard::{Guard, discard};
use crate::names;
use std::ffi::{CString, c_char};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// State of a node.
pub(crate) struct Node {
    pub(crate) context: Arc<Context>,
    pub(crate) key: u64,
    pub(crate) name: NodeName,
    graph_handle: *mut RmwGuardCondition,
}

/// Returns the node behind an argument.
///
/// # Safety
/// The pointer is null or points to a node.
pub(crate) unsafe fn of<'a>(node: *const RmwNode) -> Outcome<&'a Node> {
    // SAFETY: upheld by the caller.
    let node = unsafe { arg(node, "node")? };
    // SAFETY: identifiers live forever.
    unsafe { ours(node.implementation, "node")? };
    // SAFETY: this library owns `data` while the node lives.
    unsafe { arg(node.data.cast::<Node>(), "node") }
}

impl Node {
    /// The name that others see: `/ns/name`.
    pub(crate) fn full_name(&self) -> String {
        match &*self.name.namespace {
            "/" => format!("/{}", self.name.name),
            namespace => format!("{namespace}/{}", self.name.name),
        }
    }
}

/// Makes a C string; names contain no NUL bytes.
pub(crate) fn c_text(text: &str) -> *mut c_char {
    CString::new(text).unwrap_or_default().into_raw()
}

/// Frees what [`c_text`] made.
///
/// # Safety
/// [`c_text`] made the string, and it is no longer in use.
pub(crate) unsafe fn drop_c_text(text: *const c_char) {
    // SAFETY: upheld by the caller.
    drop(unsafe { CString::from_raw(text.cast_mut()) });
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_create_node(
    context: *mut RmwContext,
    name: *const c_char,
    namespace: *const c_char,
) -> *mut RmwNode {
    guard_ptr(|| {
        // SAFETY: upheld by the caller.
        let shared = unsafe { context::in_use(context)? };
        // SAFETY: likewise.
        let (name, namespace) = unsafe { (text(name, "name")?, text(namespace, "namespace_")?) };
        if let Some(problem) = names::node(name) {
            return Err(Failure::argument(format_args!("invalid node name: {problem}")));
        }
        if let Some(problem) = names::namespace(namespace) {
            return Err(Failure::argument(format_args!(
                "invalid node namespace: {problem}"
            )));
        }
        let graph = Guard::new()?;
        let listener: Arc<dyn Listener> = graph.clone();
        shared.graph.listen(Arc::downgrade(&listener));
        let node = Node {
            context: shared.clone(),
            key: shared.graph.add_node(name, namespace),
            name: NodeName {
                name: name.to_owned(),
                namespace: namespace.to_owned(),
                is_far: false,
            },
            graph_handle: Box::into_raw(graph.handle(context)),
        };
        shared.nodes.fetch_add(1, Ordering::SeqCst);
        Ok(Box::into_raw(Box::new(RmwNode {
            implementation: IDENTIFIER.as_ptr(),
            data: Box::into_raw(Box::new(node)).cast(),
            name: c_text(name),
            namespace: c_text(namespace),
            context,
        })))
    })
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_destroy_node(node: *mut RmwNode) -> Ret {
    guard(|| {
        // SAFETY: upheld by the caller.
        unsafe { of(node)? };
        // SAFETY: made by `rmw_create_node`, and the caller no longer uses it.
        let (handle, inner) = unsafe {
            let handle = Box::from_raw(node);
            let inner = Box::from_raw(handle.data.cast::<Node>());
            (handle, inner)
        };
        inner.context.graph.remove_node(inner.key);
        inner.context.nodes.fetch_sub(1, Ordering::SeqCst);
        // SAFETY: made by `rmw_create_node`.
        unsafe {
            discard(*Box::from_raw(inner.graph_handle));
            drop_c_text(handle.name);
            drop_c_text(handle.namespace);
        }
        Ok(())
    })
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_node_get_graph_guard_condition(
    node: *const RmwNode,
) -> *const RmwGuardCondition {
    guard_ptr(|| {
        // SAFETY: upheld by the caller.
        let node = unsafe { of(node)? };
        Ok(node.graph_handle)
    })
}
