//! `rmw_init_options_*`, `rmw_init`, `rmw_shutdown`, `rmw_context_fini`. A context is this process's membership in a
//! domain.

use crate::abi::{Allocator, InitOptions, Ret, RmwContext};
use crate::error::{Failure, IDENTIFIER, Outcome, arg, arg_mut, guard, ours, text};
use crate::graph::Graph;
use crate::memory::keep_freed_memory;
use std::ffi::c_char;
use std::mem::zeroed;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// `RMW_DEFAULT_DOMAIN_ID`.
const DEFAULT_DOMAIN: usize = usize::MAX;
/// Largest domain ID of the bus.
const MAX_DOMAIN: usize = u32::MAX as usize;
/// `RMW_SECURITY_ENFORCEMENT_ENFORCE`.
const ENFORCE: u32 = 1;

/// State that the entities of a context share.
pub(crate) struct Context {
    pub(crate) node: ropewalk::Node,
    pub(crate) graph: Arc<Graph>,
    pub(crate) is_shut_down: AtomicBool,
    /// Number of nodes that are not destroyed.
    pub(crate) nodes: AtomicUsize,
}

impl Drop for Context {
    fn drop(&mut self) {
        self.graph.close();
    }
}

/// Returns the context behind an argument, if it is initialised and not finalized.
///
/// # Safety
/// The pointer is null or points to a context.
pub(crate) unsafe fn of<'a>(context: *const RmwContext) -> Outcome<&'a Arc<Context>> {
    // SAFETY: upheld by the caller.
    let context = unsafe { arg(context, "context")? };
    if context.implementation.is_null() {
        return Err(Failure::argument("context is not initialized"));
    }
    // SAFETY: identifiers are strings that live forever.
    unsafe { ours(context.implementation, "context")? };
    // SAFETY: `inner` is set by `rmw_init` and cleared by `rmw_context_fini`.
    unsafe { context.inner.cast::<Arc<Context>>().as_ref() }
        .ok_or_else(|| Failure::argument("context is not initialized"))
}

/// As [`of`], but fails if the context has been shut down.
///
/// # Safety
/// As [`of`].
pub(crate) unsafe fn in_use<'a>(context: *const RmwContext) -> Outcome<&'a Arc<Context>> {
    // SAFETY: upheld by the caller.
    let context = unsafe { of(context)? };
    if context.is_shut_down.load(Ordering::SeqCst) {
        return Err(Failure::argument("context has been shut down"));
    }
    Ok(context)
}

/// # Safety
/// As documented in rmw/init_options.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_init_options_init(
    options: *mut InitOptions,
    allocator: Allocator,
) -> Ret {
    guard(|| {
        // SAFETY: upheld by the caller.
        let options = unsafe { arg_mut(options, "init_options")? };
        allocator.check()?;
        if !options.implementation.is_null() {
            return Err(Failure::argument("expected zero-initialized init_options"));
        }
        // SAFETY: zero is valid for these structures: numbers, null pointers and absent functions.
        *options = unsafe { zeroed() };
        options.implementation = IDENTIFIER.as_ptr();
        options.allocator = allocator;
        options.domain_id = DEFAULT_DOMAIN;
        options.discovery.allocator = allocator;
        Ok(())
    })
}

/// # Safety
/// As documented in rmw/init_options.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_init_options_copy(from: *const InitOptions, to: *mut InitOptions) -> Ret {
    guard(|| {
        // SAFETY: upheld by the caller.
        let (from, to) = unsafe { (arg(from, "src")?, arg_mut(to, "dst")?) };
        if from.implementation.is_null() {
            return Err(Failure::argument("expected initialized src"));
        }
        // SAFETY: identifiers are strings that live forever.
        unsafe { ours(from.implementation, "src")? };
        if !to.implementation.is_null() {
            return Err(Failure::argument("expected zero-initialized dst"));
        }
        from.allocator.check()?;
        *to = copied(from)?;
        Ok(())
    })
}

/// Copies the options into memory of their own.
fn copied(from: &InitOptions) -> Outcome<InitOptions> {
    // SAFETY: plain values and pointers; those that own memory are replaced before anything can fail.
    let mut to: InitOptions = unsafe { std::ptr::read(from) };
    to.enclave = std::ptr::null_mut();
    to.security.root = std::ptr::null_mut();
    to.discovery.static_peers = std::ptr::null_mut();
    to.discovery.static_peers_count = 0;
    let fill = |to: &mut InitOptions| -> Outcome {
        // SAFETY: strings of initialised options end with a NUL byte, or are null.
        unsafe {
            to.enclave = from.allocator.copy(from.enclave)?;
            to.security.root = from.allocator.copy(from.security.root)?;
        }
        let peers = from.discovery.static_peers_count;
        if peers > 0 && !from.discovery.static_peers.is_null() {
            let copy: *mut [u8; PEER_ADDRESS] = from.allocator.zeroed(peers)?;
            // SAFETY: both have room for as many addresses, and the copy is not shared.
            unsafe { copy.copy_from_nonoverlapping(from.discovery.static_peers.cast(), peers) };
            to.discovery.static_peers = copy.cast();
            to.discovery.static_peers_count = peers;
        }
        Ok(())
    };
    match fill(&mut to) {
        Ok(()) => Ok(to),
        Err(failure) => {
            release(&mut to);
            Err(failure)
        }
    }
}

/// `RMW_DISCOVERY_OPTIONS_STATIC_PEERS_MAX_LENGTH`.
const PEER_ADDRESS: usize = 256;

/// Frees what options own.
fn release(options: &mut InitOptions) {
    // SAFETY: this allocator allocated all of it, in rcl or in `copied`, and only the options own it.
    unsafe {
        options.allocator.free(options.enclave);
        options.allocator.free(options.security.root);
        options.allocator.free(options.discovery.static_peers);
        *options = zeroed();
    }
}

/// # Safety
/// As documented in rmw/init_options.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_init_options_fini(options: *mut InitOptions) -> Ret {
    guard(|| {
        // SAFETY: upheld by the caller.
        let options = unsafe { arg_mut(options, "init_options")? };
        if options.implementation.is_null() {
            return Err(Failure::argument("expected initialized init_options"));
        }
        // SAFETY: identifiers are strings that live forever.
        unsafe { ours(options.implementation, "init_options")? };
        options.allocator.check()?;
        release(options);
        Ok(())
    })
}

/// # Safety
/// As documented in rmw/init.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_init(options: *const InitOptions, context: *mut RmwContext) -> Ret {
    guard(|| {
        // SAFETY: upheld by the caller.
        let (options, context) = unsafe { (arg(options, "options")?, arg_mut(context, "context")?) };
        if options.implementation.is_null() {
            return Err(Failure::argument("expected initialized init options"));
        }
        // SAFETY: identifiers are strings that live forever.
        unsafe { ours(options.implementation, "options")? };
        if options.enclave.is_null() {
            return Err(Failure::argument("expected non-null enclave"));
        }
        if !context.implementation.is_null() {
            return Err(Failure::argument("expected a zero-initialized context"));
        }
        if options.security.enforce == ENFORCE {
            return Err(Failure::error(
                "security is enforced (ROS_SECURITY_STRATEGY=Enforce), but the bus has no DDS keys: it only admits processes of this user, \
                 or of a group (ROPEWALK_GROUP); unset ROS_SECURITY_ENABLE, and use a link with keys between hosts",
            ));
        }
        let domain = match options.domain_id {
            DEFAULT_DOMAIN => 0,
            domain => domain,
        };
        if domain > MAX_DOMAIN {
            return Err(Failure::error(format_args!(
                "domain {domain} does not exist: the largest is {MAX_DOMAIN}"
            )));
        }
        // SAFETY: an enclave is a string that ends with a NUL byte.
        let enclave = unsafe { text(options.enclave, "enclave")? };
        keep_freed_memory();
        let config = bus::BusConfig::from_env()
            .map_err(Failure::error)?
            .with_domain(domain as u32);
        let node = ropewalk::Node::with_config("rmw", config).map_err(Failure::error)?;
        let mut copied = copied(options)?;
        let graph = Graph::open(node.bus(), enclave).inspect_err(|_| release(&mut copied))?;
        context.instance_id = options.instance_id;
        context.implementation = IDENTIFIER.as_ptr();
        context.actual_domain_id = domain;
        context.options = copied;
        let shared = Arc::new(Context {
            node,
            graph,
            is_shut_down: AtomicBool::new(false),
            nodes: AtomicUsize::new(0),
        });
        context.inner = Box::into_raw(Box::new(shared)).cast();
        Ok(())
    })
}

/// # Safety
/// As documented in rmw/init.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_shutdown(context: *mut RmwContext) -> Ret {
    guard(|| {
        // SAFETY: upheld by the caller.
        let context = unsafe { of(context)? };
        context.is_shut_down.store(true, Ordering::SeqCst);
        Ok(())
    })
}

/// # Safety
/// As documented in rmw/init.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_context_fini(context: *mut RmwContext) -> Ret {
    guard(|| {
        // SAFETY: upheld by the caller.
        let shared = unsafe { of(context)? };
        if !shared.is_shut_down.load(Ordering::SeqCst) {
            return Err(Failure::argument("context has not been shutdown"));
        }
        if shared.nodes.load(Ordering::SeqCst) > 0 {
            return Err(Failure::error("finalizing a context with active nodes"));
        }
        // The graph's thread may still hold entities that were destroyed.
        shared.graph.close();
        // SAFETY: `of` found a valid context, and only the caller uses it now.
        let context = unsafe { arg_mut(context, "context")? };
        // SAFETY: made by `rmw_init` with `Box::into_raw`; entities hold their own references to the shared part.
        drop(unsafe { Box::from_raw(context.inner.cast::<Arc<Context>>()) });
        release(&mut context.options);
        // SAFETY: zero is valid for this structure: numbers, null pointers and absent functions.
        *context = unsafe { zeroed() };
        Ok(())
    })
}

/// `rmw_get_implementation_identifier`.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn rmw_get_implementation_identifier() -> *const c_char {
    IDENTIFIER.as_ptr()
}

/// `rmw_get_serialization_format`.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn rmw_get_serialization_format() -> *const c_char {
    c"cdr".as_ptr()
}
