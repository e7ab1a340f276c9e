//! The libraries as rcl loads them: every function of the interface exists.
#![allow(missing_docs)]

use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt;

/// The functions of rmw 7.8, which are also those of 7.3.
const FUNCTIONS: [&CStr; 95] = [
    c"rmw_borrow_loaned_message",
    c"rmw_client_request_publisher_get_actual_qos",
    c"rmw_client_response_subscription_get_actual_qos",
    c"rmw_client_set_on_new_response_callback",
    c"rmw_compare_gids_equal",
    c"rmw_context_fini",
    c"rmw_count_clients",
    c"rmw_count_publishers",
    c"rmw_count_services",
    c"rmw_count_subscribers",
    c"rmw_create_client",
    c"rmw_create_guard_condition",
    c"rmw_create_node",
    c"rmw_create_publisher",
    c"rmw_create_service",
    c"rmw_create_subscription",
    c"rmw_create_wait_set",
    c"rmw_deserialize",
    c"rmw_destroy_client",
    c"rmw_destroy_guard_condition",
    c"rmw_destroy_node",
    c"rmw_destroy_publisher",
    c"rmw_destroy_service",
    c"rmw_destroy_subscription",
    c"rmw_destroy_wait_set",
    c"rmw_event_set_callback",
    c"rmw_event_type_is_supported",
    c"rmw_feature_supported",
    c"rmw_fini_publisher_allocation",
    c"rmw_fini_subscription_allocation",
    c"rmw_get_client_names_and_types_by_node",
    c"rmw_get_gid_for_client",
    c"rmw_get_gid_for_publisher",
    c"rmw_get_implementation_identifier",
    c"rmw_get_node_names",
    c"rmw_get_node_names_with_enclaves",
    c"rmw_get_publisher_names_and_types_by_node",
    c"rmw_get_publishers_info_by_topic",
    c"rmw_get_serialization_format",
    c"rmw_get_serialized_message_size",
    c"rmw_get_service_names_and_types",
    c"rmw_get_service_names_and_types_by_node",
    c"rmw_get_subscriber_names_and_types_by_node",
    c"rmw_get_subscriptions_info_by_topic",
    c"rmw_get_topic_names_and_types",
    c"rmw_init",
    c"rmw_init_options_copy",
    c"rmw_init_options_fini",
    c"rmw_init_options_init",
    c"rmw_init_publisher_allocation",
    c"rmw_init_subscription_allocation",
    c"rmw_node_get_graph_guard_condition",
    c"rmw_publish",
    c"rmw_publish_loaned_message",
    c"rmw_publish_serialized_message",
    c"rmw_publisher_assert_liveliness",
    c"rmw_publisher_count_matched_subscriptions",
    c"rmw_publisher_event_init",
    c"rmw_publisher_get_actual_qos",
    c"rmw_publisher_get_network_flow_endpoints",
    c"rmw_publisher_wait_for_all_acked",
    c"rmw_qos_profile_check_compatible",
    c"rmw_return_loaned_message_from_publisher",
    c"rmw_return_loaned_message_from_subscription",
    c"rmw_send_request",
    c"rmw_send_response",
    c"rmw_serialization_support_init",
    c"rmw_serialize",
    c"rmw_service_request_subscription_get_actual_qos",
    c"rmw_service_response_publisher_get_actual_qos",
    c"rmw_service_server_is_available",
    c"rmw_service_set_on_new_request_callback",
    c"rmw_set_log_severity",
    c"rmw_shutdown",
    c"rmw_subscription_count_matched_publishers",
    c"rmw_subscription_event_init",
    c"rmw_subscription_get_actual_qos",
    c"rmw_subscription_get_content_filter",
    c"rmw_subscription_get_network_flow_endpoints",
    c"rmw_subscription_set_content_filter",
    c"rmw_subscription_set_on_new_message_callback",
    c"rmw_take",
    c"rmw_take_dynamic_message",
    c"rmw_take_dynamic_message_with_info",
    c"rmw_take_event",
    c"rmw_take_loaned_message",
    c"rmw_take_loaned_message_with_info",
    c"rmw_take_request",
    c"rmw_take_response",
    c"rmw_take_sequence",
    c"rmw_take_serialized_message",
    c"rmw_take_serialized_message_with_info",
    c"rmw_take_with_info",
    c"rmw_trigger_guard_condition",
    c"rmw_wait",
];

#[test]
fn every_function_is_exported() {
    // Next to this program, which was built along with them.
    let own = std::env::current_exe().expect("has a path");
    for library in ["librmw_ropewalk.so", "librmw_ropewalk_jazzy.so"] {
        let path = own.with_file_name(library);
        let name = CString::new(path.as_os_str().as_bytes()).expect("no zero");
        // SAFETY: a library of this workspace, whose start-up does nothing.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        assert!(!handle.is_null(), "{}", path.display());
        // SAFETY: the library is open.
        let missing = FUNCTIONS
            .iter()
            .filter(|f| unsafe { libc::dlsym(handle, f.as_ptr()) }.is_null());
        assert_eq!(missing.collect::<Vec<_>>(), Vec::<&&CStr>::new(), "{library}");
    }
}
