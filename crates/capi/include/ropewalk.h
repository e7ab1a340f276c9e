// The C interface of Ropewalk: zero-copy topics and services of one host, robots and their controllers.
//
// Every function may be called from any thread, and several threads may use one handle at the same time. There are
// two exceptions: freeing or consuming a handle must be its last use, and only one thread at a time may fill a
// loan. Handles are independent: freeing a node leaves its publishers, subscribers and messages valid.
//
// A function that returns ropewalk_status sets its outputs only if that is ROPEWALK_STATUS_OK (unless it says
// otherwise), and never lets a panic out. On failure ropewalk_error_message() returns what is wrong and how to fix
// it, for the calling thread. Texts are UTF-8 and end with a zero byte. Timeouts are in nanoseconds: a negative one
// waits forever, 0 never waits. Freeing NULL does nothing. In a forked child the handles fail with
// ROPEWALK_STATUS_FORKED; messages stay readable.


#ifndef ROPEWALK_H
#define ROPEWALK_H

/* Made by cbindgen from crates/capi/src; do not edit. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The result of a call.
typedef enum {
    // Done.
    ROPEWALK_STATUS_OK = 0,
    // Nothing arrived in time, or the wait was interrupted. Not an error: the error message stays unchanged.
    ROPEWALK_STATUS_EMPTY = 1,
    // An argument is NULL, a bad name, out of range, or belongs to something else.
    ROPEWALK_STATUS_INVALID_ARGUMENT = 2,
    // A type is unknown, its definition is wrong, or it is not the expected one.
    ROPEWALK_STATUS_TYPE = 3,
    // The content of a message does not have its type.
    ROPEWALK_STATUS_CONTENT = 4,
    // Memory is short: the publisher's limit, or the system's.
    ROPEWALK_STATUS_MEMORY = 5,
    // The limit of held messages is reached.
    ROPEWALK_STATUS_HOLD_LIMIT = 6,
    // Nobody publishes the topic or serves the service.
    ROPEWALK_STATUS_NO_PEER = 7,
    // A call was not answered in time.
    ROPEWALK_STATUS_TIMEOUT = 8,
    // The server ended before it answered, or the client is gone.
    ROPEWALK_STATUS_PEER_DIED = 9,
    // The server answered with an error of its own, or the robot refused the request.
    ROPEWALK_STATUS_REJECTED = 10,
    // A queue has no room.
    ROPEWALK_STATUS_NO_ROOM = 11,
    // The buffer is too small; the required length was written.
    ROPEWALK_STATUS_BUFFER_TOO_SMALL = 12,
    // The handle belongs to the parent process.
    ROPEWALK_STATUS_FORKED = 13,
    // The operating system refused.
    ROPEWALK_STATUS_SYSTEM = 14,
    // A bug in Ropewalk; the handles involved may only be freed.
    ROPEWALK_STATUS_PANIC = 15,
} ropewalk_status;

// The outcome of a command.
typedef enum {
    // Its handler executed it.
    ROPEWALK_OUTCOME_EXECUTED = 0,
    // Not executed: it has no handler, it is malformed, its handler refused it, or another controller has
    // the right to move.
    ROPEWALK_OUTCOME_REJECTED = 1,
    // Not executed and never will be: it was too old when it arrived, or a newer one of its kind arrived
    // first.
    ROPEWALK_OUTCOME_EXPIRED = 2,
    // The robot's answer did not arrive in time, and the command did not reach it.
    ROPEWALK_OUTCOME_UNREACHABLE = 3,
    // The robot's answer did not arrive in time, but the command may have been executed.
    ROPEWALK_OUTCOME_MAYBE_EXECUTED = 4,
} ropewalk_outcome;

// The ROS version of a definition.
typedef enum {
    // `time` and `duration` are built in, `Header` has `seq`.
    ROPEWALK_FLAVOUR_ROS1 = 0,
    // Bounded arrays and strings, defaults.
    ROPEWALK_FLAVOUR_ROS2 = 1,
} ropewalk_flavour;

// What a publisher does when a loan finds no memory: TZC's publication policies.
typedef enum {
    // Queued messages of the largest consumer are dropped, oldest first.
    ROPEWALK_MEMORY_POLICY_BEST_EFFORT = 0,
    // The loan is refused; no message is dropped.
    ROPEWALK_MEMORY_POLICY_WORST_EFFORT = 1,
    // At most `medium_drops` messages are dropped for one loan.
    ROPEWALK_MEMORY_POLICY_MEDIUM = 2,
    // The loan waits at most `block_timeout_ns`.
    ROPEWALK_MEMORY_POLICY_BLOCK = 3,
} ropewalk_memory_policy;

// Which message a full queue loses.
typedef enum {
    // Its oldest messages.
    ROPEWALK_QUEUE_POLICY_DROP_OLDEST = 0,
    // The new message.
    ROPEWALK_QUEUE_POLICY_DROP_NEWEST = 1,
} ropewalk_queue_policy;

// A controller's request about the right to move.
typedef enum {
    // Ask who has it.
    ROPEWALK_WISH_ASK = 0,
    // Get it, if nobody else has it.
    ROPEWALK_WISH_REQUEST = 1,
    // Give it back.
    ROPEWALK_WISH_RELEASE = 2,
    // Hand it over to another controller.
    ROPEWALK_WISH_HAND_OVER = 3,
    // Get it, even from another controller, if the robot permits.
    ROPEWALK_WISH_TAKE_OVER = 4,
} ropewalk_wish;

// The calling end of a service.
typedef struct ropewalk_client ropewalk_client;

// Commands one robot and receives its telemetry.
typedef struct ropewalk_controller ropewalk_controller;

// Ends a wait, from any thread.
typedef struct ropewalk_interrupt ropewalk_interrupt;

// A block that is being written: the control part and the data parts of a future message.
typedef struct ropewalk_loan ropewalk_loan;

// A taken message, request or reply. Its publisher does not reuse the block before it is freed.
typedef struct ropewalk_message ropewalk_message;

// A message type.
typedef struct ropewalk_type ropewalk_type;

// A named member of this host's bus.
typedef struct ropewalk_node ropewalk_node;

// A request that was sent and has no reply yet.
typedef struct ropewalk_pending ropewalk_pending;

// The sending end of a topic.
typedef struct ropewalk_publisher ropewalk_publisher;

// A robot on this host's bus, commanded by controllers here and, over links, on other hosts.
typedef struct ropewalk_robot ropewalk_robot;

// A command that was sent.
typedef struct ropewalk_sent ropewalk_sent;

// The serving end of a service.
typedef struct ropewalk_server ropewalk_server;

// A service type.
typedef struct ropewalk_service_type ropewalk_service_type;

// The receiving end of a topic.
typedef struct ropewalk_subscriber ropewalk_subscriber;

// A telemetry value, or other bytes.
typedef struct ropewalk_value ropewalk_value;

// One doorbell for many subscribers (`ropewalk_subscriber_options.wait_set`) and servers.
typedef struct ropewalk_wait_set ropewalk_wait_set;

// Limits of a publisher.
typedef struct {
    // Maximum bytes of shared memory, reserved only as needed. 256 MiB by default.
    uint64_t memory_limit;
    // Maximum bytes that one subscriber may keep from reuse; 0 (the default) means half of `memory_limit`,
    // or all of it if the policy never drops messages.
    uint64_t subscriber_quota;
    // Maximum number of subscribers at a time. 256 by default.
    uint32_t max_subscribers;
    // A `ropewalk_memory_policy`.
    uint32_t memory_policy;
    // How many messages one loan may drop under `ROPEWALK_MEMORY_POLICY_MEDIUM`.
    uint32_t medium_drops;
    // How many of the last messages are kept for late joiners; 1 is latching. 0 by default.
    uint32_t history;
    // How long a loan may wait under `ROPEWALK_MEMORY_POLICY_BLOCK`, at most an hour.
    int64_t block_timeout_ns;
} ropewalk_publisher_options;

// How a subscriber queues and waits.
typedef struct {
    // Number of messages that each publisher may queue, 1 to 4096. 16 by default.
    uint32_t depth;
    // A `ropewalk_queue_policy`.
    uint32_t queue_policy;
    // How many kept messages are wanted on joining. All by default.
    uint32_t history;
    // Number of messages of each publisher that may be held at a time, 1 to 4096. 16 by default.
    uint32_t max_held;
    // Bytes of each publisher's memory that may be queued and held. By default what the publisher allows.
    uint64_t max_held_bytes;
    // How long waits spin before they sleep. 0 by default, at most an hour.
    uint64_t spin_ns;
    // Wake through this set instead of the subscriber's own doorbell; NULL by default.
    const ropewalk_wait_set *wait_set;
} ropewalk_subscriber_options;

// Location of the bus.
typedef struct {
    // The runtime folder; NULL for the one that the environment names.
    const char *runtime_dir;
    // The domain, if `runtime_dir` is not NULL.
    uint32_t domain;
} ropewalk_node_options;

// Bytes to write in place.
typedef struct {
    // Address of the first byte.
    uint8_t *data;
    // Number of bytes.
    size_t len;
} ropewalk_place;

// Bytes to read in place.
typedef struct {
    // Address of the first byte.
    const uint8_t *data;
    // Number of bytes.
    size_t len;
} ropewalk_bytes;

// Metadata of a message.
typedef struct {
    // When its source published it: nanoseconds since the Unix epoch, by the source host's clock.
    uint64_t stamp_ns;
    // Its publisher's sequence number, starting at 1.
    uint64_t sequence;
    // Its original source.
    uint64_t origin;
    // Messages lost between the previously taken one and this one.
    uint64_t lost;
    // How long the client of a request still waits, in nanoseconds; 0 for other messages.
    uint64_t time_left_ns;
    // Number of data parts.
    size_t part_count;
    // Whether it was published before the subscriber joined, and kept for late joiners.
    bool is_history;
} ropewalk_message_info;

// The result of publishing a message.
typedef struct {
    // The publisher's sequence number, starting at 1.
    uint64_t sequence;
    // Number of subscribers that it was queued to.
    size_t queued_to;
} ropewalk_published;

// Counters of received and lost messages of a subscriber.
typedef struct {
    // Messages taken.
    uint64_t received;
    // Messages taken and not freed.
    uint64_t held;
    // Messages lost, for any reason.
    uint64_t lost;
    // Number of connected publishers.
    size_t publishers;
} ropewalk_subscriber_stats;

// An end over ZeroMQ. Zero is each field's default. Without `plain_v6` it talks to Ropewalk's own ends,
// encrypted (CURVE) if `key` and `peers` name files. Addresses that other hosts can reach need those, or
// `insecure`.
typedef struct {
    // `tcp://IP:PORT` or `ipc:///PATH`; for a robot also `tcp://IP:*` for any port. With `plain_v6` it is
    // the address for requests; a robot without an address then uses ports 7001 and 7002 of this host.
    const char *address;
    // With `plain_v6`: the address of the telemetry.
    const char *telemetry;
    // The file with this end's secret key, as `ropewalk_zmq_make_key` writes it.
    const char *key;
    // For a robot: the file with the controllers that may talk to it, one per line: public key, blank, name.
    // For a controller: the file with the robot's public key.
    const char *peers;
    // Speaks version 6 of Robot Remote Control, for robots and controllers of other vendors: neither
    // encrypted nor authenticated.
    bool plain_v6;
    // Allows other hosts without keys: anyone who can reach the address can command the robot.
    bool insecure;
    // For a robot: bytes of telemetry that may wait for slow listeners, 64 MiB by default.
    size_t waiting_bytes;
} ropewalk_zmq;

// Settings of a robot.
typedef struct {
    // Whether the right to move has to be requested. By default a free right goes to the first controller
    // that moves.
    bool require_request;
    // A controller is lost after this time without a message from it, plus twice its round trip. 1 s by
    // default.
    int64_t lost_after_ns;
    // Answers nobody before `ropewalk_robot_start`, so that handlers, telemetry and files can be registered
    // first. False by default: requests for anything that is not registered yet are refused.
    bool start_later;
    // Whether controllers that speak version 6 may move the robot, although the age of their commands is
    // unknown. By default they may, on the ends that the robot was given.
    bool allow_v6_motion;
    // Ends over ZeroMQ, `zmq_count` of them, in addition to the one on the bus. NULL by default.
    const ropewalk_zmq *zmq;
    // Number of ends.
    size_t zmq_count;
    // How long a twist holds. If no other command moves the same subsystem within this time, its handler
    // gets one without velocity from the robot itself. Below 0: until another command arrives. 0.5 s by
    // default.
    int64_t twist_hold_ns;
} ropewalk_robot_options;

// A command, valid until its handler returns.
typedef struct {
    // The name of its kind.
    const char *kind;
    // The body, encoded as protocol buffers.
    const uint8_t *body;
    // Length of the body in bytes.
    size_t len;
    // The sender: the controller's name, or the robot's own name if the robot itself stops a subsystem that
    // lost its controller.
    const char *controller;
    // The number of the controller's run; 0 for the robot itself.
    uint64_t controller_id;
    // Increases with each request of its controller.
    uint64_t sequence;
    // Upper bound of the command's age when it arrived; -1: unknown.
    int64_t age_ns;
} ropewalk_command;

// Executes a command and returns true; or returns false and writes the reason, for people, as a text with
// its zero byte to `reason`, which has room for `capacity` bytes and is initially empty. Runs on a thread of
// the library, which waits for it; one at a time for commands that move one subsystem, and for each kind. It
// must not throw a C++ exception.
typedef bool (*ropewalk_command_handler)(void *user,
                                         const ropewalk_command *command,
                                         char *reason,
                                         size_t capacity);

// Frees the `user` pointer of a function once nothing can call that function any more. May be NULL.
typedef void (*ropewalk_free_user)(void *user);

// The permission that the robot asked for is granted or denied. Called once, from any thread.
typedef void (*ropewalk_answer_handler)(void *user, bool granted);

// The controller `controller` held the right to move `subsystem` and is lost. Returns whether the default
// action should also run: the handler of twists gets a zero twist, the handler of joints gets their latest
// state to hold.
typedef bool (*ropewalk_link_lost_handler)(void *user, const char *subsystem, const char *controller);

// A controller connected or is lost. Texts are valid until the function returns.
typedef void (*ropewalk_controller_handler)(void *user, uint64_t id, const char *name, bool found);

// Returns whether the controller `by` may take the right to move `subsystem` (empty: the whole robot) from
// `holder`.
typedef bool (*ropewalk_take_over_handler)(void *user,
                                           const char *subsystem,
                                           const char *by,
                                           const char *holder);

// Settings of a controller.
typedef struct {
    // Interval of heartbeats to the robot, in nanoseconds: 300 ms by default. The robot is lost after three
    // intervals without a message from it, but not before 1 s and two round trips.
    int64_t heartbeat_ns;
    // Connects to the robot over ZeroMQ instead of the bus. NULL by default.
    const ropewalk_zmq *zmq;
} ropewalk_controller_options;

// The robot was found or lost.
typedef void (*ropewalk_connection_handler)(void *user, bool found);

// A telemetry value, valid until the function that receives it returns.
typedef struct {
    // The name of its kind.
    const char *kind;
    // The body, encoded as protocol buffers.
    const uint8_t *body;
    // Length of the body in bytes.
    size_t len;
    // Number of the value within its kind and channel, assigned by the robot, starting at 1.
    uint64_t sequence;
    // How many values of this kind and channel are missing since the first one received.
    uint64_t lost;
    // 0 if there is only one.
    uint8_t channel;
} ropewalk_telemetry;

// Receives telemetry values on a thread of the library, which waits for it. It must not wait for an answer
// of the same robot. It must not throw a C++ exception.
typedef void (*ropewalk_telemetry_handler)(void *user, const ropewalk_telemetry *telemetry);

// The holder of the right to move.
typedef struct {
    // The number of a controller's run (`ropewalk_controller_id`); 0: nobody.
    uint64_t holder;
    // Whether the asking controller holds it.
    bool mine;
    // The holder's name, cut to fit; empty: nobody.
    char holder_name[64];
} ropewalk_right;

// Receives a file that a robot shares, or the progress of a download: `done` of `size` bytes. `path` is
// relative to the shared folder, empty if a single file is shared, and valid until the function returns.
// Returns whether to continue. Called on the requesting thread; it must not throw a C++ exception.
typedef bool (*ropewalk_file_handler)(void *user, const char *path, uint64_t done, uint64_t size);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Returns the text of the last failed call of this thread; empty if none has failed. Valid until the next
// failed call of this thread. Never NULL.
const char *ropewalk_error_message(void);

// Returns the name of a status, such as `hold limit`. Never NULL; valid forever.
const char *ropewalk_status_name(uint32_t status);

// Returns the version of the library, such as `0.1.0`. Never NULL; valid forever.
const char *ropewalk_version(void);

// Returns the defaults.
ropewalk_publisher_options ropewalk_publisher_options_default(void);

// Returns the defaults.
ropewalk_subscriber_options ropewalk_subscriber_options_default(void);

// Finds a type, such as `sensor_msgs/Image`, among the built-in standard packages, and where an installed
// ROS keeps its definitions (`ROS_PACKAGE_PATH` and `/usr/share`; for ROS 2 `AMENT_PREFIX_PATH`).
// `generation` is a `ropewalk_flavour`. Reads files.
ropewalk_status ropewalk_type_find(const char *name, uint32_t generation, ropewalk_type **out);

// Creates a type from its definition, with the definitions of all types that it uses, as `gendeps --cat`
// prints it and bags contain it; those of the standard packages may be missing. If `md5` is not NULL, it
// must be the sum of the definition, as 32 hexadecimal digits.
ropewalk_status ropewalk_type_from_definition(const char *name,
                                              const char *definition,
                                              uint32_t generation,
                                              const char *md5,
                                              ropewalk_type **out);

// Writes the type's name to `buffer`. `len` (may be NULL) always gets its length with the zero byte.
ropewalk_status ropewalk_type_name(const ropewalk_type *kind, char *buffer, size_t capacity, size_t *len);

// Writes the type's MD5 sum, as ROS 1 computes it, as 32 hexadecimal digits and a zero byte. `len` (may be
// NULL) always gets 33.
ropewalk_status ropewalk_type_md5(const ropewalk_type *kind, char *buffer, size_t capacity, size_t *len);

// Frees a type. Its publishers and subscribers stay valid.
void ropewalk_type_free(ropewalk_type *kind);

// Like `ropewalk_type_find`, for a service such as `std_srvs/SetBool`.
ropewalk_status ropewalk_service_type_find(const char *name,
                                           uint32_t generation,
                                           ropewalk_service_type **out);

// Like `ropewalk_type_from_definition`, for a service, whose own text comes first.
ropewalk_status ropewalk_service_type_from_definition(const char *name,
                                                      const char *definition,
                                                      uint32_t generation,
                                                      const char *md5,
                                                      ropewalk_service_type **out);

// Frees a service type. Its clients and servers stay valid.
void ropewalk_service_type_free(ropewalk_service_type *kind);

// Creates a node. `options` may be NULL: the bus is then the one that `ROPEWALK_RUNTIME_DIR` and
// `ROPEWALK_DOMAIN` name.
ropewalk_status ropewalk_node_new(const char *name,
                                  const ropewalk_node_options *options,
                                  ropewalk_node **out);

// Frees a node. Everything that it created stays valid.
void ropewalk_node_free(ropewalk_node *node);

// Discovers the type of a topic from its publisher, waiting for one at most `timeout_ns`.
ropewalk_status ropewalk_node_discover(const ropewalk_node *node,
                                       const char *topic,
                                       int64_t timeout_ns,
                                       ropewalk_type **out);

// Creates a publisher for messages of a type on a topic. Returns at once; subscribers connect in the
// background. `options` may be NULL.
ropewalk_status ropewalk_node_publisher(const ropewalk_node *node,
                                        const char *topic,
                                        const ropewalk_type *kind,
                                        const ropewalk_publisher_options *options,
                                        ropewalk_publisher **out);

// Subscribes to a topic. Publishers of another type are refused, and both sides record why
// (`ropewalk_subscriber_refusals`). Returns at once. `options` may be NULL.
ropewalk_status ropewalk_node_subscriber(const ropewalk_node *node,
                                         const char *topic,
                                         const ropewalk_type *kind,
                                         const ropewalk_subscriber_options *options,
                                         ropewalk_subscriber **out);

// Creates a client of a service. Returns at once; servers connect in the background
// (`ropewalk_client_wait_for_server`).
ropewalk_status ropewalk_node_client(const ropewalk_node *node,
                                     const char *service,
                                     const ropewalk_service_type *kind,
                                     ropewalk_client **out);

// Creates a server of a service. Returns at once; clients connect in the background. `wait_set` may be NULL.
ropewalk_status ropewalk_node_server(const ropewalk_node *node,
                                     const char *service,
                                     const ropewalk_service_type *kind,
                                     const ropewalk_wait_set *wait_set,
                                     ropewalk_server **out);

// Creates a doorbell that several subscribers and servers share.
ropewalk_status ropewalk_node_wait_set(const ropewalk_node *node, ropewalk_wait_set **out);

// Returns everything that `ropewalk_loan_control` and `ropewalk_loan_part` return, at once. `parts` has room
// for `capacity` data parts (there are at most 32), and `count` gets their number.
// `ROPEWALK_STATUS_BUFFER_TOO_SMALL` if there are more.
ropewalk_status ropewalk_loan_content(const ropewalk_loan *loan,
                                      ropewalk_place *control,
                                      ropewalk_place *parts,
                                      size_t capacity,
                                      size_t *count);

// Returns where to write the control part. Its initial content is undefined.
ropewalk_status ropewalk_loan_control(const ropewalk_loan *loan, uint8_t **data, size_t *len);

// Returns where to write data part `i`, aligned to 64 bytes. Its initial content is undefined.
ropewalk_status ropewalk_loan_part(const ropewalk_loan *loan, size_t i, uint8_t **data, size_t *len);

// Truncates the control part to its first `len` bytes.
ropewalk_status ropewalk_loan_shrink_control(ropewalk_loan *loan, size_t len);

// Returns a loan unpublished.
void ropewalk_loan_free(ropewalk_loan *loan);

// Returns everything that `ropewalk_message_control` and `ropewalk_message_part` return, at once. `parts`
// has room for `capacity` data parts (there are at most 32), and `count` gets their number.
// `ROPEWALK_STATUS_BUFFER_TOO_SMALL` if there are more.
ropewalk_status ropewalk_message_content(const ropewalk_message *message,
                                         ropewalk_bytes *control,
                                         ropewalk_bytes *parts,
                                         size_t capacity,
                                         size_t *count);

// Returns the control part: a private copy, valid until the message is freed.
ropewalk_status ropewalk_message_control(const ropewalk_message *message, const uint8_t **data, size_t *len);

// Returns data part `i` where its publisher wrote it: read-only, aligned to 64 bytes, valid until the
// message is freed; of length 0 if there is no such part. A publisher that violates the protocol may change
// it in the meantime.
ropewalk_status ropewalk_message_part(const ropewalk_message *message,
                                      size_t i,
                                      const uint8_t **data,
                                      size_t *len);

// Returns the metadata of a message.
ropewalk_status ropewalk_message_get_info(const ropewalk_message *message, ropewalk_message_info *info);

// Writes the message in ROS 1's serialization to `buffer`. `len` (may be NULL) always gets its length.
ropewalk_status ropewalk_message_ros1(const ropewalk_message *message,
                                      uint8_t *buffer,
                                      size_t capacity,
                                      size_t *len);

// Frees a message: its publisher may reuse the block. Freeing an unanswered request rejects it.
void ropewalk_message_free(ropewalk_message *message);

// Reserves a block with a control part of `control_len` bytes and `part_count` data parts (at most 32) of
// the given lengths in bytes, to be filled in place. The memory policy says what happens when memory is
// short; only `ROPEWALK_MEMORY_POLICY_BLOCK` blocks. Writing to the block cannot fail.
ropewalk_status ropewalk_publisher_loan(const ropewalk_publisher *publisher,
                                        size_t control_len,
                                        const size_t *part_lens,
                                        size_t part_count,
                                        ropewalk_loan **out);

// Publishes a filled loan of this publisher, which is always consumed. Its control part must have the type
// (docs/wire/control-part.md); subscribers report an error otherwise. Never blocks. `published` may be NULL.
ropewalk_status ropewalk_publisher_publish(const ropewalk_publisher *publisher,
                                           ropewalk_loan *loan,
                                           ropewalk_published *published);

// Publishes a message in ROS 1's serialization. Each data part is copied once, into shared memory.
// `published` may be NULL.
ropewalk_status ropewalk_publisher_publish_ros1(const ropewalk_publisher *publisher,
                                                const uint8_t *bytes,
                                                size_t len,
                                                ropewalk_published *published);

// Blocks until at least `n` subscribers are connected; `ROPEWALK_STATUS_EMPTY` after `timeout_ns`.
ropewalk_status ropewalk_publisher_wait_for_subscribers(const ropewalk_publisher *publisher,
                                                        size_t n,
                                                        int64_t timeout_ns);

// Returns the number of connected subscribers.
ropewalk_status ropewalk_publisher_subscriber_count(const ropewalk_publisher *publisher, size_t *count);

// Writes why recent subscribers were refused, one per line, newest last. `len` (may be NULL) always gets the
// length with the zero byte.
ropewalk_status ropewalk_publisher_refusals(const ropewalk_publisher *publisher,
                                            char *buffer,
                                            size_t capacity,
                                            size_t *len);

// Frees a publisher. Messages that subscribers hold stay readable; its loans can no longer be published.
void ropewalk_publisher_free(ropewalk_publisher *publisher);

// Takes the oldest waiting message; blocks until there is one, at most `timeout_ns`. `ROPEWALK_STATUS_EMPTY`
// if there is none, or a wait was interrupted. Signals do not end the wait. A subscriber in a wait set waits
// on the set's doorbell. If nobody has published the topic for 5 s, it writes a warning to standard error,
// once.
ropewalk_status ropewalk_subscriber_take(const ropewalk_subscriber *subscriber,
                                         int64_t timeout_ns,
                                         ropewalk_message **out);

// Names code that will read the messages: `len` bytes from `start`, at most 4,096, in at most three such
// ranges. After some milliseconds of sleep none of this code is in the processor's caches; so when
// `ropewalk_subscriber_take` wakes, the processor prefetches it while the message is being taken. This is a
// hint: any address is allowed.
ropewalk_status ropewalk_subscriber_fetch_when_woken(const ropewalk_subscriber *subscriber,
                                                     const void *start,
                                                     size_t len);

// Waits until a message can be taken, also while the limit of held messages is reached;
// `ROPEWALK_STATUS_EMPTY` after `timeout_ns` or an interrupt. For loops, after `ROPEWALK_STATUS_HOLD_LIMIT`.
ropewalk_status ropewalk_subscriber_wait_takeable(const ropewalk_subscriber *subscriber, int64_t timeout_ns);

// Returns the descriptor that is readable while a message can be taken, for select, poll or epoll. It
// belongs to the subscriber: do not read or close it. For a subscriber in a wait set it is the set's
// (`ropewalk_wait_set_rearm`).
ropewalk_status ropewalk_subscriber_fd(const ropewalk_subscriber *subscriber, int32_t *fd);

// Returns an object that ends a wait of the subscriber. NULL if `subscriber` is NULL.
ropewalk_interrupt *ropewalk_subscriber_interrupt(const ropewalk_subscriber *subscriber);

// Blocks until at least `n` publishers are connected; `ROPEWALK_STATUS_EMPTY` after `timeout_ns`.
ropewalk_status ropewalk_subscriber_wait_for_publishers(const ropewalk_subscriber *subscriber,
                                                        size_t n,
                                                        int64_t timeout_ns);

// Returns the counters of received and lost messages.
ropewalk_status ropewalk_subscriber_get_stats(const ropewalk_subscriber *subscriber,
                                              ropewalk_subscriber_stats *stats);

// Writes why recent publishers were refused, one per line, newest last. `len` (may be NULL) always gets the
// length with the zero byte.
ropewalk_status ropewalk_subscriber_refusals(const ropewalk_subscriber *subscriber,
                                             char *buffer,
                                             size_t capacity,
                                             size_t *len);

// Frees a subscriber. Messages that were taken stay valid.
void ropewalk_subscriber_free(ropewalk_subscriber *subscriber);

// Blocks until a message can be taken from one of the set's members; then take from each until it is empty.
// `ROPEWALK_STATUS_EMPTY` after `timeout_ns` or an interrupt. Signals do not end the wait.
ropewalk_status ropewalk_wait_set_wait(const ropewalk_wait_set *set, int64_t timeout_ns);

// For your own poll loop on `ropewalk_wait_set_fd`: returns `ROPEWALK_STATUS_OK` if something can be taken
// now; otherwise silences the descriptor until the next message and returns `ROPEWALK_STATUS_EMPTY`. Call it
// when every member is empty.
ropewalk_status ropewalk_wait_set_rearm(const ropewalk_wait_set *set);

// Returns the descriptor that is readable when something can be taken, for select, poll or epoll. It belongs
// to the set: do not read or close it.
ropewalk_status ropewalk_wait_set_fd(const ropewalk_wait_set *wait_set, int32_t *fd);

// Returns an object that ends a wait on the set. NULL if `set` is NULL.
ropewalk_interrupt *ropewalk_wait_set_interrupt(const ropewalk_wait_set *set);

// Frees a set. Its members stay valid, and can still be waited for one by one.
void ropewalk_wait_set_free(ropewalk_wait_set *set);

// Ends one wait of the subscriber, server or set that it was created from: the wait in progress, otherwise
// the next one that finds nothing. Several calls before that end only one wait.
ropewalk_status ropewalk_interrupt_wake(const ropewalk_interrupt *interrupt);

// Frees an interrupt.
void ropewalk_interrupt_free(ropewalk_interrupt *interrupt);

// Blocks until a server is connected; `ROPEWALK_STATUS_EMPTY` after `timeout_ns`.
ropewalk_status ropewalk_client_wait_for_server(const ropewalk_client *client, int64_t timeout_ns);

// Reserves a block for a request. Like `ropewalk_publisher_loan`, but nothing is dropped when memory is
// short.
ropewalk_status ropewalk_client_loan(const ropewalk_client *client,
                                     size_t control_len,
                                     const size_t *part_lens,
                                     size_t part_count,
                                     ropewalk_loan **out);

// Sends a filled loan of this client, which is always consumed. The reply is awaited with
// `ropewalk_pending_wait`, at most `timeout_ns` from now. Never blocks.
ropewalk_status ropewalk_client_send(const ropewalk_client *client,
                                     ropewalk_loan *request,
                                     int64_t timeout_ns,
                                     ropewalk_pending **out);

// Like `ropewalk_client_send`, for a request in ROS 1's serialization.
ropewalk_status ropewalk_client_send_ros1(const ropewalk_client *client,
                                          const uint8_t *request,
                                          size_t len,
                                          int64_t timeout_ns,
                                          ropewalk_pending **out);

// Blocks until the reply arrives, the time of the call is over, or the server is gone. Returns a reply only
// once.
ropewalk_status ropewalk_pending_wait(const ropewalk_pending *pending, ropewalk_message **out);

// Returns the reply, or why there is none, if that is known; otherwise `ROPEWALK_STATUS_EMPTY`. Never
// blocks. Returns a reply only once.
ropewalk_status ropewalk_pending_poll(const ropewalk_pending *pending, ropewalk_message **out);

// Frees a pending call. The server may still execute it.
void ropewalk_pending_free(ropewalk_pending *pending);

// Frees a client.
void ropewalk_client_free(ropewalk_client *client);

// Takes the oldest waiting request; blocks until there is one, at most `timeout_ns`. `ROPEWALK_STATUS_EMPTY`
// if there is none, or a wait was interrupted.
ropewalk_status ropewalk_server_take(const ropewalk_server *server,
                                     int64_t timeout_ns,
                                     ropewalk_message **out);

// Reserves a block for a reply, like `ropewalk_client_loan`.
ropewalk_status ropewalk_server_loan(const ropewalk_server *server,
                                     size_t control_len,
                                     const size_t *part_lens,
                                     size_t part_count,
                                     ropewalk_loan **out);

// Answers a request with a filled loan of this server. Both are always consumed. Blocks only if the client's
// handshake is not complete, at most for a second.
ropewalk_status ropewalk_server_respond(const ropewalk_server *server,
                                        ropewalk_message *request,
                                        ropewalk_loan *answer);

// Like `ropewalk_server_respond`, with a reply in ROS 1's serialization.
ropewalk_status ropewalk_server_respond_ros1(const ropewalk_server *server,
                                             ropewalk_message *request,
                                             const uint8_t *answer,
                                             size_t len);

// Answers a request, which is always consumed, with an error. The client gets up to 1024 bytes of its text;
// bytes that are not UTF-8 are replaced.
ropewalk_status ropewalk_server_reject(const ropewalk_server *server,
                                       ropewalk_message *request,
                                       const char *text);

// Returns an object that ends a wait of the server. NULL if `server` is NULL.
ropewalk_interrupt *ropewalk_server_interrupt(const ropewalk_server *server);

// Returns the descriptor that is readable while a request can be taken, like `ropewalk_subscriber_fd`.
ropewalk_status ropewalk_server_fd(const ropewalk_server *server, int32_t *fd);

// Frees a server: its clients notice at once.
void ropewalk_server_free(ropewalk_server *server);

// Creates a key for one robot or controller: writes it to `path`, readable only by its owner, and the public
// key, which peers get, to `path` with `.pub` appended. Overwrites nothing. `buffer` also gets the public
// key, as 40 characters and a zero byte; `capacity` may be 0.
ropewalk_status ropewalk_zmq_make_key(const char *path, char *buffer, size_t capacity);

// Returns the defaults.
ropewalk_robot_options ropewalk_robot_options_default(void);

// Starts a robot called `name`, both on the bus (words of letters, digits and `_`, with `/` between them)
// and for people. `options` may be NULL. `node` may be NULL if the options name an end over ZeroMQ: then the
// robot is not on the bus.
ropewalk_status ropewalk_robot_new(const ropewalk_node *node,
                                   const char *name,
                                   const ropewalk_robot_options *options,
                                   ropewalk_robot **out);

// Starts to serve controllers, for a robot with the option `start_later`; otherwise does nothing. If it
// fails, for instance because an address is in use, the robot has ended: free it.
ropewalk_status ropewalk_robot_start(const ropewalk_robot *robot);

// Writes where controllers reach end number `end` (from 0) over ZeroMQ of those in the options, with its
// actual port, once the robot has started; `ROPEWALK_STATUS_EMPTY` before. `telemetry`: the address of
// version 6's telemetry instead. `len` (may be NULL) gets the length with the zero byte.
ropewalk_status ropewalk_robot_zmq_address(const ropewalk_robot *robot,
                                           size_t end,
                                           bool telemetry,
                                           char *buffer,
                                           size_t capacity,
                                           size_t *len);

// Sets the handler that executes commands of a kind from now on, replacing any previous one. The kind is one
// of the library's, such as `robot_remote_control.Twist`, whose bodies are checked first, or your own, such
// as `acme.Spray`, with any body. Commands that are expired, repeated, out of order or not allowed do not
// reach the handler. `moves` is the subsystem that the kind moves, for example `base` or `arm`; NULL: none,
// or that of the library's kind. The first handler of a kind sets it. Only the controller that has the right
// to move may send commands that move. Finally, also on failure, `free_user` is called with `user`.
ropewalk_status ropewalk_robot_on_command(const ropewalk_robot *robot,
                                          const char *kind,
                                          const char *moves,
                                          ropewalk_command_handler handler,
                                          void *user,
                                          ropewalk_free_user free_user);

// Sets the latest value of a telemetry kind and channel (0 if there is only one), and sends it to all
// listeners. The body is encoded as for commands; `ROPEWALK_STATUS_CONTENT`: it is not a body of the
// library's kind. Never blocks.
ropewalk_status ropewalk_robot_set(const ropewalk_robot *robot,
                                   const char *kind,
                                   uint8_t channel,
                                   const uint8_t *body,
                                   size_t len);

// Shares a file, or all files below a folder, with controllers, under its own identifier, which the
// telemetry `robot_remote_control.FileDefinition` announces. Links are followed only if they stay below the
// folder. One thread of the robot reads the files for all controllers.
ropewalk_status ropewalk_robot_share(const ropewalk_robot *robot, const char *identifier, const char *path);

// Asks the robot's controllers for a permission, through the telemetry
// `robot_remote_control.PermissionRequest`, which a controller answers with the command
// `robot_remote_control.Permission` with the same `requestuid`. `callback` gets the answer. The answer is no
// when the robot stops, and when 64 newer questions are open. Finally, also on failure, `free_user` is
// called with `user`.
ropewalk_status ropewalk_robot_ask_permission(const ropewalk_robot *robot,
                                              const char *description,
                                              ropewalk_answer_handler callback,
                                              void *user,
                                              ropewalk_free_user free_user);

// Sets the function to call, instead of stopping it, for each subsystem whose controller is lost. NULL
// restores the default action. Finally, also on failure, `free_user` is called with `user`.
ropewalk_status ropewalk_robot_on_link_lost(const ropewalk_robot *robot,
                                            ropewalk_link_lost_handler callback,
                                            void *user,
                                            ropewalk_free_user free_user);

// Sets the function to call when controllers connect or are lost. Finally, also on failure, `free_user` is
// called with `user`.
ropewalk_status ropewalk_robot_on_controller(const ropewalk_robot *robot,
                                             ropewalk_controller_handler callback,
                                             void *user,
                                             ropewalk_free_user free_user);

// Sets the function that decides whether a controller may take the right to move from another; without one
// it never may. Finally, also on failure, `free_user` is called with `user`.
ropewalk_status ropewalk_robot_on_take_over(const ropewalk_robot *robot,
                                            ropewalk_take_over_handler callback,
                                            void *user,
                                            ropewalk_free_user free_user);

// Returns the number of the controller that holds the right to move a subsystem; `ROPEWALK_STATUS_EMPTY`:
// nobody.
ropewalk_status ropewalk_robot_holder(const ropewalk_robot *robot, const char *subsystem, uint64_t *id);

// Stops a robot and frees it: controllers lose it. Waits for its running callbacks, except the one that
// calls this.
void ropewalk_robot_free(ropewalk_robot *robot);

// Returns the defaults.
ropewalk_controller_options ropewalk_controller_options_default(void);

// Starts a controller of the robot called `robot` on this bus, and connects to it in the background. `name`
// is for people. `options` may be NULL. `node` and `robot` may be NULL if the options name an end over
// ZeroMQ.
ropewalk_status ropewalk_controller_new(const ropewalk_node *node,
                                        const char *name,
                                        const char *robot,
                                        const ropewalk_controller_options *options,
                                        ropewalk_controller **out);

// Blocks until the robot has answered and described its capabilities; `ROPEWALK_STATUS_EMPTY` after
// `timeout_ns`.
ropewalk_status ropewalk_controller_wait_until_found(const ropewalk_controller *controller,
                                                     int64_t timeout_ns);

// Sets the function to call when the robot is found or lost. Finally, also on failure, `free_user` is called
// with `user`.
ropewalk_status ropewalk_controller_on_connection(const ropewalk_controller *controller,
                                                  ropewalk_connection_handler callback,
                                                  void *user,
                                                  ropewalk_free_user free_user);

// Returns the smoothed time from a heartbeat to its answer; `ROPEWALK_STATUS_EMPTY` before the first.
ropewalk_status ropewalk_controller_round_trip(const ropewalk_controller *controller, int64_t *round_trip_ns);

// Returns the number of the controller's run, which identifies it to the robot and to other controllers. 0
// if `controller` is NULL.
uint64_t ropewalk_controller_id(const ropewalk_controller *controller);

// Sends a command with its body, encoded as protocol buffers. It expires after `expiry_ns`: 0 means twice
// the round trip and at least 200 ms; negative means never, which commands that move do not allow. Never
// blocks. `out` may be NULL if the outcome does not matter.
ropewalk_status ropewalk_controller_send(const ropewalk_controller *controller,
                                         const char *kind,
                                         const uint8_t *body,
                                         size_t len,
                                         int64_t expiry_ns,
                                         ropewalk_sent **out);

// Blocks until the outcome of a command is known, at most `timeout_ns`; `ROPEWALK_STATUS_EMPTY` if it is not
// known by then. May be called repeatedly, and then returns the same outcome. Do not call it from a callback
// of the library.
ropewalk_status ropewalk_sent_wait(const ropewalk_sent *sent, int64_t timeout_ns, ropewalk_outcome *outcome);

// Writes why a command was not executed, for people; empty if it was. Call it after `ropewalk_sent_wait` has
// returned the outcome. `len` (may be NULL) always gets the length with the zero byte.
ropewalk_status ropewalk_sent_reason(const ropewalk_sent *sent, char *buffer, size_t capacity, size_t *len);

// Frees a sent command, which stays under way.
void ropewalk_sent_free(ropewalk_sent *sent);

// Sets the function that receives each value of a telemetry kind and channel (0 if there is only one) from
// now on. Malformed bodies of the library's kinds are not passed to it. Finally, also on failure,
// `free_user` is called with `user`.
ropewalk_status ropewalk_controller_on_telemetry(const ropewalk_controller *controller,
                                                 const char *kind,
                                                 uint8_t channel,
                                                 ropewalk_telemetry_handler callback,
                                                 void *user,
                                                 ropewalk_free_user free_user);

// Returns the latest value of a telemetry kind and channel that the robot sent by itself;
// `ROPEWALK_STATUS_EMPTY` before the first.
ropewalk_status ropewalk_controller_latest(const ropewalk_controller *controller,
                                           const char *kind,
                                           uint8_t channel,
                                           ropewalk_value **out);

// Requests the latest value of a telemetry kind and channel from the robot, and blocks for it at most
// `timeout_ns`. `ROPEWALK_STATUS_EMPTY`: none has been set yet; `ROPEWALK_STATUS_REJECTED`: the robot has no
// such telemetry; `ROPEWALK_STATUS_TIMEOUT`: it did not answer. Do not call it from a callback of the
// library.
ropewalk_status ropewalk_controller_fetch(const ropewalk_controller *controller,
                                          const char *kind,
                                          uint8_t channel,
                                          int64_t timeout_ns,
                                          ropewalk_value **out);

// Returns the bytes of a value, encoded as protocol buffers, valid until it is freed.
ropewalk_status ropewalk_value_data(const ropewalk_value *value, const uint8_t **data, size_t *len);

// Frees a value.
void ropewalk_value_free(ropewalk_value *value);

// Queries, requests, releases, hands over or takes over the right to move a subsystem (empty: the whole
// robot). `wish` is a `ropewalk_wish`; with `ROPEWALK_WISH_HAND_OVER`, `to` is the number of the controller
// that gets the right. Blocks for the answer, at most 30 s; do not call it from a callback of the library.
// `ROPEWALK_STATUS_REJECTED`: the robot refuses, and the error message says why; `ROPEWALK_STATUS_TIMEOUT`:
// it did not answer. `right` may be NULL.
ropewalk_status ropewalk_controller_right(const ropewalk_controller *controller,
                                          const char *subsystem,
                                          uint32_t wish,
                                          uint64_t to,
                                          ropewalk_right *right);

// Calls `callback` for each file that the robot shares under an identifier. Blocks for the answer; do not
// call it from a callback of the library. `ROPEWALK_STATUS_REJECTED`: the robot shares nothing under that
// name; `ROPEWALK_STATUS_TIMEOUT`: it did not answer; `ROPEWALK_STATUS_EMPTY`: `callback` stopped it.
ropewalk_status ropewalk_controller_files(const ropewalk_controller *controller,
                                          const char *identifier,
                                          ropewalk_file_handler callback,
                                          void *user);

// Downloads a file that the robot shares into the folder `into`, under its path there (a single file, whose
// path is empty, under its identifier), or all files of an identifier if `path` is NULL. Blocks until the
// download is complete and its SHA-256 matches the robot's. An interrupted download resumes where it
// stopped; an incomplete file is called `.NAME.part`. Nothing outside of `into` is written, whatever path
// the robot gives. `progress` (may be NULL) is called for each received piece. `written` (may be NULL) gets
// the paths of the written files, each with its zero byte. Do not call it from a callback of the library.
// `ROPEWALK_STATUS_REJECTED`: the robot refuses; `ROPEWALK_STATUS_TIMEOUT`: it did not answer;
// `ROPEWALK_STATUS_INVALID_ARGUMENT`: the path leads out of the folder; `ROPEWALK_STATUS_SYSTEM`: the file
// cannot be written; `ROPEWALK_STATUS_CONTENT`: the checksum does not match, and the file was deleted;
// `ROPEWALK_STATUS_EMPTY`: `progress` stopped it.
ropewalk_status ropewalk_controller_download(const ropewalk_controller *controller,
                                             const char *identifier,
                                             const char *path,
                                             const char *into,
                                             ropewalk_file_handler progress,
                                             void *user,
                                             ropewalk_value **written);

// Stops a controller and frees it: everything that it moves stops. Pending commands end as unreachable.
// Waits for its running callbacks, except the one that calls this.
void ropewalk_controller_free(ropewalk_controller *controller);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* ROPEWALK_H */
