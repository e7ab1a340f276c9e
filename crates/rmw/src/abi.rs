//! The structures of the C headers of rmw, rcutils and rosidl that cross this interface.

pub(crate) mod introspection;

use std::ffi::{c_char, c_void};

/// `rmw_ret_t`.
pub(crate) type Ret = i32;
/// `RMW_RET_OK`.
pub(crate) const OK: Ret = 0;
/// `RMW_RET_ERROR`.
pub(crate) const ERROR: Ret = 1;
/// `RMW_RET_TIMEOUT`.
pub(crate) const TIMEOUT: Ret = 2;
/// `RMW_RET_UNSUPPORTED`.
pub(crate) const UNSUPPORTED: Ret = 3;
/// `RMW_RET_BAD_ALLOC`.
pub(crate) const BAD_ALLOC: Ret = 10;
/// `RMW_RET_INVALID_ARGUMENT`.
pub(crate) const INVALID_ARGUMENT: Ret = 11;
/// `RMW_RET_INCORRECT_RMW_IMPLEMENTATION`.
pub(crate) const INCORRECT_RMW_IMPLEMENTATION: Ret = 12;
/// `RMW_RET_NODE_NAME_NON_EXISTENT`.
pub(crate) const NODE_NAME_NON_EXISTENT: Ret = 203;

/// `RMW_GID_STORAGE_SIZE`.
pub(crate) const GID_SIZE: usize = 16;

/// `rcutils_allocator_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Allocator {
    pub(crate) allocate: Option<unsafe extern "C" fn(usize, *mut c_void) -> *mut c_void>,
    pub(crate) deallocate: Option<unsafe extern "C" fn(*mut c_void, *mut c_void)>,
    pub(crate) reallocate: Option<unsafe extern "C" fn(*mut c_void, usize, *mut c_void) -> *mut c_void>,
    pub(crate) zero_allocate: Option<unsafe extern "C" fn(usize, usize, *mut c_void) -> *mut c_void>,
    pub(crate) state: *mut c_void,
}

/// `rcutils_string_array_t`.
#[repr(C)]
pub(crate) struct StringArray {
    pub(crate) size: usize,
    pub(crate) data: *mut *mut c_char,
    pub(crate) allocator: Allocator,
}

/// `rcutils_uint8_array_t`, which is `rmw_serialized_message_t`.
#[repr(C)]
pub(crate) struct SerializedMessage {
    pub(crate) buffer: *mut u8,
    pub(crate) length: usize,
    pub(crate) capacity: usize,
    pub(crate) allocator: Allocator,
}

/// `rmw_time_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RmwTime {
    pub(crate) sec: u64,
    pub(crate) nsec: u64,
}

/// `rmw_qos_profile_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QosProfile {
    pub(crate) history: u32,
    pub(crate) depth: usize,
    pub(crate) reliability: u32,
    pub(crate) durability: u32,
    pub(crate) deadline: RmwTime,
    pub(crate) lifespan: RmwTime,
    pub(crate) liveliness: u32,
    pub(crate) lease: RmwTime,
    pub(crate) avoid_ros_namespace_conventions: bool,
}

/// `rmw_security_options_t`.
#[repr(C)]
pub(crate) struct SecurityOptions {
    pub(crate) enforce: u32,
    pub(crate) root: *mut c_char,
}

/// `rmw_discovery_options_t`.
#[repr(C)]
pub(crate) struct DiscoveryOptions {
    pub(crate) range: u32,
    pub(crate) static_peers: *mut c_void,
    pub(crate) static_peers_count: usize,
    pub(crate) allocator: Allocator,
}

/// `rmw_init_options_t`.
#[repr(C)]
pub(crate) struct InitOptions {
    pub(crate) instance_id: u64,
    pub(crate) implementation: *const c_char,
    pub(crate) domain_id: usize,
    pub(crate) security: SecurityOptions,
    /// `rmw_localhost_only_t`.
    #[cfg(feature = "jazzy")]
    pub(crate) localhost_only: u32,
    pub(crate) discovery: DiscoveryOptions,
    pub(crate) enclave: *mut c_char,
    pub(crate) allocator: Allocator,
    pub(crate) inner: *mut c_void,
}

/// `rmw_context_t`.
#[repr(C)]
pub(crate) struct RmwContext {
    pub(crate) instance_id: u64,
    pub(crate) implementation: *const c_char,
    pub(crate) options: InitOptions,
    pub(crate) actual_domain_id: usize,
    pub(crate) inner: *mut c_void,
}

/// `rmw_node_t`.
#[repr(C)]
pub(crate) struct RmwNode {
    pub(crate) implementation: *const c_char,
    pub(crate) data: *mut c_void,
    pub(crate) name: *const c_char,
    pub(crate) namespace: *const c_char,
    pub(crate) context: *mut RmwContext,
}

/// `rmw_publisher_options_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct RmwPublisherOptions {
    pub(crate) payload: *mut c_void,
    pub(crate) unique_flow: u32,
}

/// `rmw_publisher_t`.
#[repr(C)]
pub(crate) struct RmwPublisher {
    pub(crate) implementation: *const c_char,
    pub(crate) data: *mut c_void,
    pub(crate) topic_name: *const c_char,
    pub(crate) options: RmwPublisherOptions,
    pub(crate) can_loan_messages: bool,
}

/// `rmw_subscription_content_filter_options_t`.
#[repr(C)]
pub(crate) struct ContentFilterOptions {
    pub(crate) expression: *mut c_char,
    pub(crate) parameters: StringArray,
}

/// `rmw_subscription_options_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct RmwSubscriptionOptions {
    pub(crate) payload: *mut c_void,
    pub(crate) ignore_local_publications: bool,
    pub(crate) unique_flow: u32,
    pub(crate) content_filter: *mut ContentFilterOptions,
}

/// `rmw_subscription_t`.
#[repr(C)]
pub(crate) struct RmwSubscription {
    pub(crate) implementation: *const c_char,
    pub(crate) data: *mut c_void,
    pub(crate) topic_name: *const c_char,
    pub(crate) options: RmwSubscriptionOptions,
    pub(crate) can_loan_messages: bool,
    pub(crate) is_cft_enabled: bool,
}

/// `rmw_service_t` and `rmw_client_t`, which have the same layout.
#[repr(C)]
pub(crate) struct RmwService {
    pub(crate) implementation: *const c_char,
    pub(crate) data: *mut c_void,
    pub(crate) service_name: *const c_char,
}

/// `rmw_guard_condition_t`.
#[repr(C)]
pub(crate) struct RmwGuardCondition {
    pub(crate) implementation: *const c_char,
    pub(crate) data: *mut c_void,
    pub(crate) context: *mut RmwContext,
}

/// `rmw_wait_set_t`.
#[repr(C)]
pub(crate) struct RmwWaitSet {
    pub(crate) implementation: *const c_char,
    pub(crate) guard_conditions: *mut Entities,
    pub(crate) data: *mut c_void,
}

/// `rmw_subscriptions_t`, `rmw_services_t`, `rmw_clients_t`, `rmw_events_t` and `rmw_guard_conditions_t`: the data of
/// each entity. The wait sets an entry to null if its entity is not ready.
#[repr(C)]
pub(crate) struct Entities {
    pub(crate) count: usize,
    pub(crate) entities: *mut *mut c_void,
}

/// `rmw_event_t`.
#[repr(C)]
pub(crate) struct RmwEvent {
    pub(crate) implementation: *const c_char,
    pub(crate) data: *mut c_void,
    pub(crate) kind: u32,
}

/// `rmw_gid_t`.
#[repr(C)]
pub(crate) struct Gid {
    pub(crate) implementation: *const c_char,
    pub(crate) data: [u8; GID_SIZE],
}

/// `rmw_request_id_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct RequestId {
    pub(crate) writer_guid: [u8; GID_SIZE],
    pub(crate) sequence_number: i64,
}

/// `rmw_service_info_t`.
#[repr(C)]
pub(crate) struct ServiceInfo {
    pub(crate) source_timestamp: i64,
    pub(crate) received_timestamp: i64,
    pub(crate) request_id: RequestId,
}

/// `rmw_message_info_t`.
#[repr(C)]
pub(crate) struct MessageInfo {
    pub(crate) source_timestamp: i64,
    pub(crate) received_timestamp: i64,
    pub(crate) publication_sequence_number: u64,
    pub(crate) reception_sequence_number: u64,
    pub(crate) publisher_gid: Gid,
    pub(crate) from_intra_process: bool,
}

/// `rmw_message_sequence_t`.
#[repr(C)]
pub(crate) struct MessageSequence {
    pub(crate) data: *mut *mut c_void,
    pub(crate) size: usize,
    pub(crate) capacity: usize,
    pub(crate) allocator: *mut Allocator,
}

/// `rmw_message_info_sequence_t`.
#[repr(C)]
pub(crate) struct MessageInfoSequence {
    pub(crate) data: *mut MessageInfo,
    pub(crate) size: usize,
    pub(crate) capacity: usize,
    pub(crate) allocator: *mut Allocator,
}

/// `rmw_names_and_types_t`.
#[repr(C)]
pub(crate) struct NamesAndTypes {
    pub(crate) names: StringArray,
    pub(crate) types: *mut StringArray,
}

/// `rmw_topic_endpoint_info_t`.
#[repr(C)]
pub(crate) struct TopicEndpointInfo {
    pub(crate) node_name: *const c_char,
    pub(crate) node_namespace: *const c_char,
    pub(crate) topic_type: *const c_char,
    pub(crate) topic_type_hash: introspection::TypeHash,
    pub(crate) endpoint_type: u32,
    pub(crate) gid: [u8; GID_SIZE],
    pub(crate) qos: QosProfile,
}

/// `rmw_topic_endpoint_info_array_t`.
#[repr(C)]
pub(crate) struct TopicEndpointInfoArray {
    pub(crate) size: usize,
    pub(crate) infos: *mut TopicEndpointInfo,
}

/// `rmw_event_callback_t`.
pub(crate) type EventCallback = Option<unsafe extern "C" fn(*const c_void, usize)>;

/// `rmw_matched_status_t`.
#[repr(C)]
pub(crate) struct MatchedStatus {
    pub(crate) total: usize,
    pub(crate) total_change: usize,
    pub(crate) current: usize,
    pub(crate) current_change: i32,
}

/// `rmw_qos_incompatible_event_status_t`.
#[repr(C)]
pub(crate) struct IncompatibleQosStatus {
    pub(crate) total: i32,
    pub(crate) total_change: i32,
    pub(crate) last_policy: u32,
}

/// `rmw_message_lost_status_t`.
#[repr(C)]
pub(crate) struct MessageLostStatus {
    pub(crate) total: usize,
    pub(crate) total_change: usize,
}

/// Statuses that consist of a count and its change: missed deadlines, lost liveliness, incompatible types.
#[repr(C)]
pub(crate) struct CountStatus {
    pub(crate) total: i32,
    pub(crate) total_change: i32,
}

/// `rmw_liveliness_changed_status_t`.
#[repr(C)]
pub(crate) struct LivelinessChangedStatus {
    pub(crate) alive: i32,
    pub(crate) not_alive: i32,
    pub(crate) alive_change: i32,
    pub(crate) not_alive_change: i32,
}
