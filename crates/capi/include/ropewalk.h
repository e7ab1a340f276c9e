// The C interface of Ropewalk: zero-copy topics and services of one host, robots and their controllers.
//
// Every function may be called from any thread, and several threads may use one handle at a time, except that
// freeing or consuming a handle must be the last use of it, and that a loan is filled by one thread at a time.
// Handles are independent: freeing a node leaves its publishers, subscribers and messages valid.
//
// A function that returns ropewalk_status sets its outputs only when that is ROPEWALK_STATUS_OK (unless it says
// otherwise), and never lets a panic out. On failure ropewalk_error_message() tells what is wrong and what mends
// it, for the thread that called. Texts are UTF-8 and end with a zero byte. Timeouts are in nanoseconds: negative
// waits for ever, 0 never waits. Freeing NULL does nothing. After fork the child's handles fail with
// ROPEWALK_STATUS_FORKED; its messages stay readable.


#ifndef ROPEWALK_H
#define ROPEWALK_H

/* Made by cbindgen from crates/capi/src; do not edit. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// What became of a call.
typedef enum {
    // Done.
    ROPEWALK_STATUS_OK = 0,
    // There was nothing in time, or the wait was interrupted. No error: the error message stays as it was.
    ROPEWALK_STATUS_EMPTY = 1,
    // An argument is NULL, a bad name, out of range, or belongs to something else.
    ROPEWALK_STATUS_INVALID_ARGUMENT = 2,
    // A type is unknown, its definition is wrong, or it is another than was expected.
    ROPEWALK_STATUS_TYPE = 3,
    // The content of a message is not of its type.
    ROPEWALK_STATUS_CONTENT = 4,
    // Memory is short: the publisher's limit, or the system's.
    ROPEWALK_STATUS_MEMORY = 5,
    // As many messages are held as may be.
    ROPEWALK_STATUS_HOLD_LIMIT = 6,
    // Nobody publishes the topic or serves the service.
    ROPEWALK_STATUS_NO_PEER = 7,
    // A call was not answered in time.
    ROPEWALK_STATUS_TIMEOUT = 8,
    // The server ended before it answered, or the client is gone.
    ROPEWALK_STATUS_PEER_DIED = 9,
    // The server answered with an error of its own, or the robot does not grant what was asked for.
    ROPEWALK_STATUS_REJECTED = 10,
    // A queue has no room.
    ROPEWALK_STATUS_NO_ROOM = 11,
    // The buffer is too small; its needed length was written.
    ROPEWALK_STATUS_BUFFER_TOO_SMALL = 12,
    // The handle belongs to the parent process.
    ROPEWALK_STATUS_FORKED = 13,
    // The operating system refuses.
    ROPEWALK_STATUS_SYSTEM = 14,
    // A bug in Ropewalk; the handles that were used may be freed, and nothing else.
    ROPEWALK_STATUS_PANIC = 15,
} ropewalk_status;

// What became of a command.
typedef enum {
    // Its handler carried it out.
    ROPEWALK_OUTCOME_EXECUTED = 0,
    // Not carried out: nobody handles it, it is malformed, its handler refused, or the right to move is another's.
    ROPEWALK_OUTCOME_REJECTED = 1,
    // Not carried out and never will be: it was too old when it came, or a newer one of its kind came before it.
    ROPEWALK_OUTCOME_EXPIRED = 2,
    // The robot's word on it did not come in time, and nothing reached it.
    ROPEWALK_OUTCOME_UNREACHABLE = 3,
    // The robot's word on it did not come in time, but it may have been carried out.
    ROPEWALK_OUTCOME_MAYBE_EXECUTED = 4,
} ropewalk_outcome;

// The generation of ROS that a definition is of.
typedef enum {
    // `time` and `duration` are built in, `Header` has `seq`.
    ROPEWALK_FLAVOUR_ROS1 = 0,
    // Bounded arrays and strings, defaults.
    ROPEWALK_FLAVOUR_ROS2 = 1,
} ropewalk_flavour;

// What a publisher does when a loan finds no memory: TZC's publication policies.
typedef enum {
    // Queued messages of the largest consumer are dropped, the oldest first.
    ROPEWALK_MEMORY_POLICY_BEST_EFFORT = 0,
    // The loan is refused; nothing is taken away.
    ROPEWALK_MEMORY_POLICY_WORST_EFFORT = 1,
    // At most `medium_drops` messages are dropped for one loan.
    ROPEWALK_MEMORY_POLICY_MEDIUM = 2,
    // The loan waits at most `block_timeout_ns`.
    ROPEWALK_MEMORY_POLICY_BLOCK = 3,
} ropewalk_memory_policy;

// What a full queue loses.
typedef enum {
    // Its oldest messages.
    ROPEWALK_QUEUE_POLICY_DROP_OLDEST = 0,
    // The new message.
    ROPEWALK_QUEUE_POLICY_DROP_NEWEST = 1,
} ropewalk_queue_policy;

// What a controller wants of the right to move.
typedef enum {
    // To know who has it.
    ROPEWALK_WISH_ASK = 0,
    // To have it, if nobody else has.
    ROPEWALK_WISH_REQUEST = 1,
    // To give it back.
    ROPEWALK_WISH_RELEASE = 2,
    // To give it to another controller.
    ROPEWALK_WISH_HAND_OVER = 3,
    // To have it, also from another, if the robot permits.
    ROPEWALK_WISH_TAKE_OVER = 4,
} ropewalk_wish;

// The calling end of a service.
typedef struct ropewalk_client ropewalk_client;

// Commands one robot and hears its telemetry.
typedef struct ropewalk_controller ropewalk_controller;

// Ends waits, from any thread.
typedef struct ropewalk_interrupt ropewalk_interrupt;

// A block that is being written: the control part and the data parts of a message to come.
typedef struct ropewalk_loan ropewalk_loan;

// A message, request or reply that was taken. Its publisher does not reuse the block before it is freed.
typedef struct ropewalk_message ropewalk_message;

// A type of messages.
typedef struct ropewalk_type ropewalk_type;

// A named member of this host's bus.
typedef struct ropewalk_node ropewalk_node;

// A request that was sent and has no answer yet.
typedef struct ropewalk_pending ropewalk_pending;

// The sending end of a topic.
typedef struct ropewalk_publisher ropewalk_publisher;

// A robot on this host's bus, which controllers here and, over links, on other hosts command.
typedef struct ropewalk_robot ropewalk_robot;

// A command that was sent.
typedef struct ropewalk_sent ropewalk_sent;

// The answering end of a service.
typedef struct ropewalk_server ropewalk_server;

// A type of services.
typedef struct ropewalk_service_type ropewalk_service_type;

// The receiving end of a topic.
typedef struct ropewalk_subscriber ropewalk_subscriber;

// A value of telemetry, or other bytes.
typedef struct ropewalk_value ropewalk_value;

// One doorbell for many subscribers (`ropewalk_subscriber_options.wait_set`) and servers.
typedef struct ropewalk_wait_set ropewalk_wait_set;

// What a publisher may use.
typedef struct {
    // Most bytes of shared memory, reserved only as needed. 256 MiB by default.
    uint64_t memory_limit;
    // Most bytes that one subscriber may keep from reuse; 0 (the default) for half of `memory_limit`, or all of it
    // where the policy takes nothing away.
    uint64_t subscriber_quota;
    // Most subscribers at a time. 256 by default.
    uint32_t max_subscribers;
    // A `ropewalk_memory_policy`.
    uint32_t memory_policy;
    // How many messages one loan may drop under `ROPEWALK_MEMORY_POLICY_MEDIUM`.
    uint32_t medium_drops;
    // How many of the last messages are kept for subscribers that join later; 1 is latching. 0 by default.
    uint32_t history;
    // How long a loan may wait under `ROPEWALK_MEMORY_POLICY_BLOCK`, at most an hour.
    int64_t block_timeout_ns;
} ropewalk_publisher_options;

// How a subscriber queues and waits.
typedef struct {
    // Messages that each publisher may queue, 1 to 4096. 16 by default.
    uint32_t depth;
    // A `ropewalk_queue_policy`.
    uint32_t queue_policy;
    // How many kept messages are wanted on joining. All by default.
    uint32_t history;
    // Messages of each publisher that may be held at a time, 1 to 4096. 16 by default.
    uint32_t max_held;
    // Bytes of each publisher's memory that may be queued and held. By default what the publisher allows.
    uint64_t max_held_bytes;
    // How long waits spin before they sleep. 0 by default, at most an hour.
    uint64_t spin_ns;
    // Wake through this set instead of a doorbell of its own; NULL by default.
    const ropewalk_wait_set *wait_set;
} ropewalk_subscriber_options;

// Where the bus is.
typedef struct {
    // The runtime folder; NULL for the one that the environment names.
    const char *runtime_dir;
    // The domain, if `runtime_dir` is not NULL.
    uint32_t domain;
} ropewalk_node_options;

// Bytes that are written in place.
typedef struct {
    // Where they begin.
    uint8_t *data;
    // How many they are.
    size_t len;
} ropewalk_place;

// Bytes that are read in place.
typedef struct {
    // Where they begin.
    const uint8_t *data;
    // How many they are.
    size_t len;
} ropewalk_bytes;

// What is known of a message beside its content.
typedef struct {
    // When its source published it: nanoseconds since the Unix epoch, of the source host's clock.
    uint64_t stamp_ns;
    // Its publisher's count, from 1 up.
    uint64_t sequence;
    // Where it came from first.
    uint64_t origin;
    // Messages that were lost between the one taken before and this one.
    uint64_t lost;
    // How long the client of a request still waits, in nanoseconds; 0 for other messages.
    uint64_t time_left_ns;
    // How many data parts there are.
    size_t part_count;
    // Whether it was published before the subscriber joined, and kept for it.
    bool is_history;
} ropewalk_message_info;

// What became of a published message.
typedef struct {
    // The publisher's count, from 1 up.
    uint64_t sequence;
    // Subscribers whose queue has it.
    size_t queued_to;
} ropewalk_published;

// What a subscriber has received and lost.
typedef struct {
    // Messages taken.
    uint64_t received;
    // Messages taken and not freed.
    uint64_t held;
    // Messages lost, for whatever reason.
    uint64_t lost;
    // Publishers that are connected.
    size_t publishers;
} ropewalk_subscriber_stats;

// An end over ZeroMQ. Zero is each field's default. Without `plain_v6` it meets Ropewalk's own ends, encrypted (CURVE) where `key` and `peers` name
// files; addresses that other hosts reach need those, or `insecure`.
typedef struct {
    // `tcp://IP:PORT` or `ipc:///PATH`, of a robot also `tcp://IP:*` for any port. With `plain_v6` it is where requests go; a robot that gives no
    // address then is at ports 7001 and 7002 of this host.
    const char *address;
    // With `plain_v6`: where telemetry comes from.
    const char *telemetry;
    // The file with this end's secret key, as `ropewalk_zmq_make_key` writes it.
    const char *key;
    // Of a robot: the file with the controllers that may speak to it, a line each: public key, blank, name. Of a controller: the file with the
    // robot's public key.
    const char *peers;
    // Version 6 of Robot Remote Control, for robots and controllers of other makers: neither encrypted nor authenticated.
    bool plain_v6;
    // Does without keys where other hosts reach it: whoever does commands the robot.
    bool insecure;
    // Of a robot: bytes of telemetry that may wait for slow listeners, 64 MiB by default.
    size_t waiting_bytes;
} ropewalk_zmq;

// How a robot treats its controllers.
typedef struct {
    // Whether the right to move has to be requested. By default a free right goes to whoever moves first.
    bool require_request;
    // A controller is lost after so long without a word from it, plus twice its round trip. 1 s by default.
    int64_t lost_after_ns;
    // Nobody is answered before `ropewalk_robot_start`, so that handlers, telemetry and files are registered in peace. False by default: whoever
    // asks for what is not registered yet is refused.
    bool start_later;
    // Whether controllers that speak version 6 may move it: nobody knows how old their commands are. By default they may, on the ends that it
    // was given.
    bool allow_v6_motion;
    // Ends over ZeroMQ, `zmq_count` of them, besides that on the bus. NULL by default.
    const ropewalk_zmq *zmq;
    // How many.
    size_t zmq_count;
    // For how long a twist holds: unless another command moves the same subsystem meanwhile, its handler then gets one without velocity from the
    // robot itself. Below 0: until another command comes. 0.5 s by default.
    int64_t twist_hold_ns;
} ropewalk_robot_options;

// A command, valid until its handler returns.
typedef struct {
    // The name of its kind.
    const char *kind;
    // The body, encoded as protocol buffers encode it.
    const uint8_t *body;
    // Bytes of the body.
    size_t len;
    // Who sends it: what a controller calls itself; the robot's own name where it stops by itself what lost its
    // controller.
    const char *controller;
    // The number of the controller's run; 0 for the robot itself.
    uint64_t controller_id;
    // Rises with each request of its controller.
    uint64_t sequence;
    // It was sent at most so long ago when it came; -1: nobody can know.
    int64_t age_ns;
} ropewalk_command;

// Carries a command out and returns true; or returns false and writes why not, for people, as a text with its zero byte into
// `reason`, which has room for `capacity` bytes and is empty at first. Runs on a thread of the library's, which waits for it; one at a time
// for what moves one subsystem, and for each kind. No C++ exception must leave it.
typedef bool (*ropewalk_command_handler)(void *user,
                                         const ropewalk_command *command,
                                         char *reason,
                                         size_t capacity);

// Frees what a function was given as `user`, once nothing can call that function any more. May be NULL.
typedef void (*ropewalk_free_user)(void *user);

// The permission that the robot asked for is granted, or it is not. Called once, from any thread.
typedef void (*ropewalk_answer_handler)(void *user, bool granted);

// The controller `controller` held the right to move `subsystem` and is lost. Returns whether to do, too, what is done without such a
// function: the handler of twists gets a zero one, that of joints their latest state to hold.
typedef bool (*ropewalk_link_lost_handler)(void *user, const char *subsystem, const char *controller);

// A controller came, or is lost. Texts are valid until it returns.
typedef void (*ropewalk_controller_handler)(void *user, uint64_t id, const char *name, bool found);

// Returns whether the controller `by` may take the right to move `subsystem` (empty: the whole robot) from `holder`.
typedef bool (*ropewalk_take_over_handler)(void *user,
                                           const char *subsystem,
                                           const char *by,
                                           const char *holder);

// How a controller behaves.
typedef struct {
    // How often the robot hears that it is there, in nanoseconds: 300 ms by default. The robot is lost after three of them without a word from
    // it, but not before 1 s and two round trips.
    int64_t heartbeat_ns;
    // Reaches the robot over ZeroMQ instead of the bus. NULL by default.
    const ropewalk_zmq *zmq;
} ropewalk_controller_options;

// The robot was found, or is lost.
typedef void (*ropewalk_connection_handler)(void *user, bool found);

// A value of telemetry, valid until the function that gets it returns.
typedef struct {
    // The name of its kind.
    const char *kind;
    // The body, encoded as protocol buffers encode it.
    const uint8_t *body;
    // Bytes of the body.
    size_t len;
    // Of this kind and channel, by the robot, from 1.
    uint64_t sequence;
    // How many of this kind and channel are missing since the first that came.
    uint64_t lost;
    // 0 where there is only one.
    uint8_t channel;
} ropewalk_telemetry;

// Gets values of telemetry, on a thread of the library's, which waits for it. It must not wait for an answer of the same robot. No C++ exception
// must leave it.
typedef void (*ropewalk_telemetry_handler)(void *user, const ropewalk_telemetry *telemetry);

// Who has the right to move.
typedef struct {
    // The number of a controller's run (`ropewalk_controller_id`); 0: nobody.
    uint64_t holder;
    // Whether that is the controller that asks.
    bool mine;
    // What the holder calls itself, cut to what fits; empty: nobody.
    char holder_name[64];
} ropewalk_right;

// A file that a robot shares, or how far a download of it is: `done` of `size` bytes. `path` is within the shared folder, empty where a single file is
// shared, and valid until it returns. Returns whether to go on. Called on the thread that asks; no C++ exception must leave it.
typedef bool (*ropewalk_file_handler)(void *user, const char *path, uint64_t done, uint64_t size);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The text of the last call of this thread that failed; empty if none has. Valid until the next call of this
// thread that fails. Never NULL.
const char *ropewalk_error_message(void);

// The name of a status, such as `hold limit`. Never NULL; valid for ever.
const char *ropewalk_status_name(uint32_t status);

// The version of the library, such as `0.1.0`. Never NULL; valid for ever.
const char *ropewalk_version(void);

// The defaults.
ropewalk_publisher_options ropewalk_publisher_options_default(void);

// The defaults.
ropewalk_subscriber_options ropewalk_subscriber_options_default(void);

// Finds a type, such as `sensor_msgs/Image`, among the standard packages, which are built in, and where an
// installed ROS keeps its definitions (`ROS_PACKAGE_PATH` and `/usr/share`; of ROS 2: `AMENT_PREFIX_PATH`).
// `generation` is a `ropewalk_flavour`. Reads files.
ropewalk_status ropewalk_type_find(const char *name, uint32_t generation, ropewalk_type **out);

// Makes a type of its definition with those of all types in it, as `gendeps --cat` writes it and bags carry it;
// the standard packages' need not be there. If `md5` is not NULL, it must be the sum of the definition, as 32
// hexadecimal digits.
ropewalk_status ropewalk_type_from_definition(const char *name,
                                              const char *definition,
                                              uint32_t generation,
                                              const char *md5,
                                              ropewalk_type **out);

// Writes the type's name into `buffer`. `len` (may be NULL) gets its length with the zero byte in any case.
ropewalk_status ropewalk_type_name(const ropewalk_type *kind, char *buffer, size_t capacity, size_t *len);

// Writes the type's MD5 sum, as ROS 1 computes it, as 32 hexadecimal digits and a zero byte. `len` (may be NULL)
// gets 33 in any case.
ropewalk_status ropewalk_type_md5(const ropewalk_type *kind,
                                  char *buffer,
                                  size_t capacity,
                                  size_t *len);

// Frees a type. Publishers and subscribers of it stay.
void ropewalk_type_free(ropewalk_type *kind);

// As `ropewalk_type_find`, of a service such as `std_srvs/SetBool`.
ropewalk_status ropewalk_service_type_find(const char *name,
                                           uint32_t generation,
                                           ropewalk_service_type **out);

// As `ropewalk_type_from_definition`, of a service: its own text comes first.
ropewalk_status ropewalk_service_type_from_definition(const char *name,
                                                      const char *definition,
                                                      uint32_t generation,
                                                      const char *md5,
                                                      ropewalk_service_type **out);

// Frees a type of services. Clients and servers of it stay.
void ropewalk_service_type_free(ropewalk_service_type *kind);

// Makes a node. `options` may be NULL: the bus is then the one that `ROPEWALK_RUNTIME_DIR` and `ROPEWALK_DOMAIN`
// name.
ropewalk_status ropewalk_node_new(const char *name,
                                  const ropewalk_node_options *options,
                                  ropewalk_node **out);

// Frees a node. What it made stays.
void ropewalk_node_free(ropewalk_node *node);

// Finds out the type of a topic from whoever publishes it, waiting for a publisher at most `timeout_ns`.
ropewalk_status ropewalk_node_discover(const ropewalk_node *node,
                                       const char *topic,
                                       int64_t timeout_ns,
                                       ropewalk_type **out);

// Offers messages of a type on a topic. Returns at once; subscribers connect in the background. `options` may be
// NULL.
ropewalk_status ropewalk_node_publisher(const ropewalk_node *node,
                                        const char *topic,
                                        const ropewalk_type *kind,
                                        const ropewalk_publisher_options *options,
                                        ropewalk_publisher **out);

// Subscribes to a topic. Publishers of another type are refused, and both sides are told
// (`ropewalk_subscriber_refusals`). Returns at once. `options` may be NULL.
ropewalk_status ropewalk_node_subscriber(const ropewalk_node *node,
                                         const char *topic,
                                         const ropewalk_type *kind,
                                         const ropewalk_subscriber_options *options,
                                         ropewalk_subscriber **out);

// Calls a service. Returns at once; servers connect in the background (`ropewalk_client_wait_for_server`).
ropewalk_status ropewalk_node_client(const ropewalk_node *node,
                                     const char *service,
                                     const ropewalk_service_type *kind,
                                     ropewalk_client **out);

// Serves a service. Returns at once; clients connect in the background. `wait_set` may be NULL.
ropewalk_status ropewalk_node_server(const ropewalk_node *node,
                                     const char *service,
                                     const ropewalk_service_type *kind,
                                     const ropewalk_wait_set *wait_set,
                                     ropewalk_server **out);

// A doorbell that several subscribers and servers share.
ropewalk_status ropewalk_node_wait_set(const ropewalk_node *node, ropewalk_wait_set **out);

// All that `ropewalk_loan_control` and `ropewalk_loan_part` tell, at once: `parts` has room for `capacity` data parts
// (there are at most 32), and `count` gets how many there are. `ROPEWALK_STATUS_BUFFER_TOO_SMALL` if they are more.
ropewalk_status ropewalk_loan_content(const ropewalk_loan *loan,
                                      ropewalk_place *control,
                                      ropewalk_place *parts,
                                      size_t capacity,
                                      size_t *count);

// Where the control part is written. Its content is undefined at first.
ropewalk_status ropewalk_loan_control(const ropewalk_loan *loan, uint8_t **data, size_t *len);

// Where data part `i` is written, aligned to 64 bytes. Its content is undefined at first.
ropewalk_status ropewalk_loan_part(const ropewalk_loan *loan, size_t i, uint8_t **data, size_t *len);

// Makes the control part shorter: its first `len` bytes remain.
ropewalk_status ropewalk_loan_shrink_control(ropewalk_loan *loan, size_t len);

// Gives a loan back unpublished.
void ropewalk_loan_free(ropewalk_loan *loan);

// All that `ropewalk_message_control` and `ropewalk_message_part` tell, at once: `parts` has room for `capacity` data
// parts (there are at most 32), and `count` gets how many there are. `ROPEWALK_STATUS_BUFFER_TOO_SMALL` if they are more.
ropewalk_status ropewalk_message_content(const ropewalk_message *message,
                                         ropewalk_bytes *control,
                                         ropewalk_bytes *parts,
                                         size_t capacity,
                                         size_t *count);

// The control part: a private copy, valid until the message is freed.
ropewalk_status ropewalk_message_control(const ropewalk_message *message, const uint8_t **data, size_t *len);

// Data part `i` where its publisher wrote it, read-only, aligned to 64 bytes, valid until the message is freed;
// of length 0 if there is no such part. A publisher that breaks the protocol may change it meanwhile.
ropewalk_status ropewalk_message_part(const ropewalk_message *message,
                                      size_t i,
                                      const uint8_t **data,
                                      size_t *len);

// What is known of a message beside its content.
ropewalk_status ropewalk_message_get_info(const ropewalk_message *message, ropewalk_message_info *info);

// Writes the message in ROS 1's serialization into `buffer`. `len` (may be NULL) gets its length in any case.
ropewalk_status ropewalk_message_ros1(const ropewalk_message *message,
                                      uint8_t *buffer,
                                      size_t capacity,
                                      size_t *len);

// Frees a message: its publisher may reuse the block. Freeing a request tells its client that there is no answer.
void ropewalk_message_free(ropewalk_message *message);

// Reserves a block with a control part of `control_len` bytes and `part_count` data parts (at most 32) of the
// given lengths in bytes, to be filled in place. What happens when memory is short the memory policy says; only
// under `ROPEWALK_MEMORY_POLICY_BLOCK` it blocks. Writing the block cannot fail.
ropewalk_status ropewalk_publisher_loan(const ropewalk_publisher *publisher,
                                        size_t control_len,
                                        const size_t *part_lens,
                                        size_t part_count,
                                        ropewalk_loan **out);

// Publishes a filled loan of this publisher, which is consumed in any case. Its control part must be one of the
// type (docs/wire/control-part.md): what is not is seen by the subscribers. Never blocks. `published` may be NULL.
ropewalk_status ropewalk_publisher_publish(const ropewalk_publisher *publisher,
                                           ropewalk_loan *loan,
                                           ropewalk_published *published);

// Publishes a message given in ROS 1's serialization. Each data part is copied once, into shared memory.
// `published` may be NULL.
ropewalk_status ropewalk_publisher_publish_ros1(const ropewalk_publisher *publisher,
                                                const uint8_t *bytes,
                                                size_t len,
                                                ropewalk_published *published);

// Blocks until at least `n` subscribers are connected; `ROPEWALK_STATUS_EMPTY` after `timeout_ns`.
ropewalk_status ropewalk_publisher_wait_for_subscribers(const ropewalk_publisher *publisher,
                                                        size_t n,
                                                        int64_t timeout_ns);

// How many subscribers are connected.
ropewalk_status ropewalk_publisher_subscriber_count(const ropewalk_publisher *publisher, size_t *count);

// Writes why the last subscribers did not connect, a line each, the newest last. `len` (may be NULL) gets the
// length with the zero byte in any case.
ropewalk_status ropewalk_publisher_refusals(const ropewalk_publisher *publisher,
                                            char *buffer,
                                            size_t capacity,
                                            size_t *len);

// Frees a publisher. Messages that subscribers hold stay readable; loans of it can no longer be published.
void ropewalk_publisher_free(ropewalk_publisher *publisher);

// Takes the oldest waiting message; blocks until there is one, at most `timeout_ns`. `ROPEWALK_STATUS_EMPTY` if there was
// none, or a wait was interrupted. Signals do not end it. A subscriber in a wait set waits on the whole set's
// doorbell.
ropewalk_status ropewalk_subscriber_take(const ropewalk_subscriber *subscriber,
                                         int64_t timeout_ns,
                                         ropewalk_message **out);

// Names code that will read the messages: `len` bytes from `start` on, at most 4,096, and three such ranges. After
// some milliseconds of sleep none of it is in the processor's caches; so when `ropewalk_subscriber_take` was woken, the
// processor is asked to fetch it while the message is being taken. A hint: any address may be named.
ropewalk_status ropewalk_subscriber_fetch_when_woken(const ropewalk_subscriber *subscriber,
                                                     const void *start,
                                                     size_t len);

// Waits until a message can be taken, also while as many are held as may be; `ROPEWALK_STATUS_EMPTY` after `timeout_ns` or
// an interrupt: after `ROPEWALK_STATUS_HOLD_LIMIT` in a loop.
ropewalk_status ropewalk_subscriber_wait_takeable(const ropewalk_subscriber *subscriber,
                                                  int64_t timeout_ns);

// The descriptor that is readable while a message can be taken, for select, poll or epoll. It is the subscriber's:
// do not read or close it. Of a subscriber in a wait set it is the set's (`ropewalk_wait_set_rearm`).
ropewalk_status ropewalk_subscriber_fd(const ropewalk_subscriber *subscriber,
                                       int32_t *fd);

// What ends a wait of the subscriber. NULL if `subscriber` is NULL.
ropewalk_interrupt *ropewalk_subscriber_interrupt(const ropewalk_subscriber *subscriber);

// Blocks until at least `n` publishers are connected; `ROPEWALK_STATUS_EMPTY` after `timeout_ns`.
ropewalk_status ropewalk_subscriber_wait_for_publishers(const ropewalk_subscriber *subscriber,
                                                        size_t n,
                                                        int64_t timeout_ns);

// What the subscriber has received and lost.
ropewalk_status ropewalk_subscriber_get_stats(const ropewalk_subscriber *subscriber,
                                              ropewalk_subscriber_stats *stats);

// Writes why the last publishers did not connect, a line each, the newest last. `len` (may be NULL) gets the length
// with the zero byte in any case.
ropewalk_status ropewalk_subscriber_refusals(const ropewalk_subscriber *subscriber,
                                             char *buffer,
                                             size_t capacity,
                                             size_t *len);

// Frees a subscriber. Messages that were taken stay valid.
void ropewalk_subscriber_free(ropewalk_subscriber *subscriber);

// Blocks until a message can be taken from one of the set's members: then take from each until it is empty.
// `ROPEWALK_STATUS_EMPTY` after `timeout_ns` or an interrupt. Signals do not end it.
ropewalk_status ropewalk_wait_set_wait(const ropewalk_wait_set *set, int64_t timeout_ns);

// For a poll loop of one's own over `ropewalk_wait_set_fd`: `ROPEWALK_STATUS_OK` if something can be taken now, else
// `ROPEWALK_STATUS_EMPTY`, and the descriptor waits for the next message. To be called when every member is empty.
ropewalk_status ropewalk_wait_set_rearm(const ropewalk_wait_set *set);

// The descriptor that is readable when something can be taken, for select, poll or epoll. It is the set's: do not
// read or close it.
ropewalk_status ropewalk_wait_set_fd(const ropewalk_wait_set *wait_set,
                                     int32_t *fd);

// What ends a wait at the set. NULL if `set` is NULL.
ropewalk_interrupt *ropewalk_wait_set_interrupt(const ropewalk_wait_set *set);

// Frees a set. Its members stay, and may still be waited for one by one.
void ropewalk_wait_set_free(ropewalk_wait_set *set);

// Ends one wait of the subscriber, server or set that it was made of: the one in progress, or else the next that
// finds nothing. Several calls before that end one wait.
ropewalk_status ropewalk_interrupt_wake(const ropewalk_interrupt *interrupt);

// Frees an interrupt.
void ropewalk_interrupt_free(ropewalk_interrupt *interrupt);

// Blocks until a server is connected; `ROPEWALK_STATUS_EMPTY` after `timeout_ns`.
ropewalk_status ropewalk_client_wait_for_server(const ropewalk_client *client, int64_t timeout_ns);

// Reserves a block for a request: as `ropewalk_publisher_loan`, but nothing is dropped when memory is short.
ropewalk_status ropewalk_client_loan(const ropewalk_client *client,
                                     size_t control_len,
                                     const size_t *part_lens,
                                     size_t part_count,
                                     ropewalk_loan **out);

// Sends a filled loan of this client, which is consumed in any case. The answer is awaited at most `timeout_ns` from
// now, by `ropewalk_pending_wait`. Never blocks.
ropewalk_status ropewalk_client_send(const ropewalk_client *client,
                                     ropewalk_loan *request,
                                     int64_t timeout_ns,
                                     ropewalk_pending **out);

// As `ropewalk_client_send`, of a request in ROS 1's serialization.
ropewalk_status ropewalk_client_send_ros1(const ropewalk_client *client,
                                          const uint8_t *request,
                                          size_t len,
                                          int64_t timeout_ns,
                                          ropewalk_pending **out);

// Blocks until the answer is there, the time of the call is over, or the server is gone. Gives an answer once.
ropewalk_status ropewalk_pending_wait(const ropewalk_pending *pending,
                                      ropewalk_message **out);

// The answer, or why there is none, if that is known; else `ROPEWALK_STATUS_EMPTY`. Never blocks. Gives an answer once.
ropewalk_status ropewalk_pending_poll(const ropewalk_pending *pending,
                                      ropewalk_message **out);

// Frees a pending call. The server may still carry it out.
void ropewalk_pending_free(ropewalk_pending *pending);

// Frees a client.
void ropewalk_client_free(ropewalk_client *client);

// Takes the oldest waiting request; blocks until there is one, at most `timeout_ns`. `ROPEWALK_STATUS_EMPTY` if there was
// none, or a wait was interrupted.
ropewalk_status ropewalk_server_take(const ropewalk_server *server,
                                     int64_t timeout_ns,
                                     ropewalk_message **out);

// Reserves a block for an answer: as `ropewalk_client_loan`.
ropewalk_status ropewalk_server_loan(const ropewalk_server *server,
                                     size_t control_len,
                                     const size_t *part_lens,
                                     size_t part_count,
                                     ropewalk_loan **out);

// Answers a request with a filled loan of this server. Both are consumed in any case. Blocks only, and at most for a
// second, for a client whose handshake is not over.
ropewalk_status ropewalk_server_respond(const ropewalk_server *server,
                                        ropewalk_message *request,
                                        ropewalk_loan *answer);

// As `ropewalk_server_respond`, with an answer in ROS 1's serialization.
ropewalk_status ropewalk_server_respond_ros1(const ropewalk_server *server,
                                             ropewalk_message *request,
                                             const uint8_t *answer,
                                             size_t len);

// Answers a request, which is consumed in any case, with an error, of whose text the client gets up to 1024 bytes; what in it is
// no UTF-8 is replaced.
ropewalk_status ropewalk_server_reject(const ropewalk_server *server,
                                       ropewalk_message *request,
                                       const char *text);

// What ends a wait of the server. NULL if `server` is NULL.
ropewalk_interrupt *ropewalk_server_interrupt(const ropewalk_server *server);

// The descriptor that is readable while a request can be taken: as `ropewalk_subscriber_fd`.
ropewalk_status ropewalk_server_fd(const ropewalk_server *server, int32_t *fd);

// Frees a server: its clients are told at once.
void ropewalk_server_free(ropewalk_server *server);

// Makes a key for one robot or controller: writes it to `path`, readable by its owner alone, and the public one, which others get, to `path` with
// `.pub` appended. Overwrites nothing. `buffer` gets the public key, too, as 40 characters and a zero byte; `capacity` may be 0.
ropewalk_status ropewalk_zmq_make_key(const char *path,
                                      char *buffer,
                                      size_t capacity);

// The defaults.
ropewalk_robot_options ropewalk_robot_options_default(void);

// Starts a robot, which is known by `name` on the bus (words of letters, digits and `_`, with `/` between them) and to people. `options`
// may be NULL. `node` may be NULL where these name an end over ZeroMQ: then it is not on the bus.
ropewalk_status ropewalk_robot_new(const ropewalk_node *node,
                                   const char *name,
                                   const ropewalk_robot_options *options,
                                   ropewalk_robot **out);

// Serves controllers from now on, of a robot with the option `start_later`; otherwise it does nothing. Where it fails, for an address that is in
// use perhaps, the robot has ended: free it.
ropewalk_status ropewalk_robot_start(const ropewalk_robot *robot);

// Where controllers reach the end over ZeroMQ that is number `end`, from 0, of those in the options: with the port that it got, once the robot is
// started; `ROPEWALK_STATUS_EMPTY` before. `telemetry`: where version 6 has its telemetry. `len` (may be NULL) gets the length with the zero byte.
ropewalk_status ropewalk_robot_zmq_address(const ropewalk_robot *robot,
                                           size_t end,
                                           bool telemetry,
                                           char *buffer,
                                           size_t capacity,
                                           size_t *len);

// `handler` carries out commands of a kind from now on, instead of who did before: one of the library's, such as
// `robot_remote_control.Twist`, whose bodies are looked at before they come here, or one of your own, such as `acme.Spray`, of any body.
// What is expired, repeated, out of order or not allowed does not come either. `moves` is the subsystem that the kind moves, `base` or `arm`
// for example; NULL: none, or what the library's kind says; it is for the first handler of a kind to say. What moves is only for the
// controller that has the right to. In any case, also of failure, `free_user` is called with `user` in the end.
ropewalk_status ropewalk_robot_on_command(const ropewalk_robot *robot,
                                          const char *kind,
                                          const char *moves,
                                          ropewalk_command_handler handler,
                                          void *user,
                                          ropewalk_free_user free_user);

// Sets the latest value of a telemetry kind and channel (0 where there is only one), and tells all who listen. The body is as of
// commands; `ROPEWALK_STATUS_CONTENT`: it is none of the library's kind. Never blocks.
ropewalk_status ropewalk_robot_set(const ropewalk_robot *robot,
                                   const char *kind,
                                   uint8_t channel,
                                   const uint8_t *body,
                                   size_t len);

// Shares a file, or all files below a folder, with controllers, under an identifier of its own, which the telemetry
// `robot_remote_control.FileDefinition` names. Links are followed only where they stay below the folder. A thread of the robot's own reads for all.
ropewalk_status ropewalk_robot_share(const ropewalk_robot *robot,
                                     const char *identifier,
                                     const char *path);

// Asks whoever controls the robot for a permission, by the telemetry `robot_remote_control.PermissionRequest`, which a controller
// answers by the command `robot_remote_control.Permission` with the same `requestuid`. `callback` gets the answer; when the robot stops, and when 64
// newer questions are open, it is no. In any case `free_user` is called with `user` in the end.
ropewalk_status ropewalk_robot_ask_permission(const ropewalk_robot *robot,
                                              const char *description,
                                              ropewalk_answer_handler callback,
                                              void *user,
                                              ropewalk_free_user free_user);

// `callback` is called for each subsystem whose controller is lost, instead of stopping it. NULL: what it is without. In any case `free_user`
// is called with `user` in the end.
ropewalk_status ropewalk_robot_on_link_lost(const ropewalk_robot *robot,
                                            ropewalk_link_lost_handler callback,
                                            void *user,
                                            ropewalk_free_user free_user);

// `callback` is called when controllers come and go. In any case `free_user` is called with `user` in the end.
ropewalk_status ropewalk_robot_on_controller(const ropewalk_robot *robot,
                                             ropewalk_controller_handler callback,
                                             void *user,
                                             ropewalk_free_user free_user);

// `callback` decides whether one controller may take the right to move from another; without one: never. In any case `free_user`
// is called with `user` in the end.
ropewalk_status ropewalk_robot_on_take_over(const ropewalk_robot *robot,
                                            ropewalk_take_over_handler callback,
                                            void *user,
                                            ropewalk_free_user free_user);

// The number of the controller that holds the right to move a subsystem; `ROPEWALK_STATUS_EMPTY`: nobody.
ropewalk_status ropewalk_robot_holder(const ropewalk_robot *robot, const char *subsystem, uint64_t *id);

// Stops a robot and frees it: controllers lose it. Waits for the functions that it calls, but for the one that calls this.
void ropewalk_robot_free(ropewalk_robot *robot);

// The defaults.
ropewalk_controller_options ropewalk_controller_options_default(void);

// Starts a controller of the robot that is called `robot` on this bus, and greets that in the background. `name` is for people. `options` may be
// NULL. `node` and `robot` may be NULL where these name an end over ZeroMQ.
ropewalk_status ropewalk_controller_new(const ropewalk_node *node,
                                        const char *name,
                                        const char *robot,
                                        const ropewalk_controller_options *options,
                                        ropewalk_controller **out);

// Blocks until the robot was heard and has said what it can do; `ROPEWALK_STATUS_EMPTY` after `timeout_ns`.
ropewalk_status ropewalk_controller_wait_until_found(const ropewalk_controller *controller,
                                                     int64_t timeout_ns);

// `callback` is called when the robot is found or lost. In any case `free_user` is called with `user` in the end.
ropewalk_status ropewalk_controller_on_connection(const ropewalk_controller *controller,
                                                  ropewalk_connection_handler callback,
                                                  void *user,
                                                  ropewalk_free_user free_user);

// From a heartbeat to its answer, smoothed; `ROPEWALK_STATUS_EMPTY` before the first.
ropewalk_status ropewalk_controller_round_trip(const ropewalk_controller *controller, int64_t *round_trip_ns);

// The number of the controller's run: who it is to the robot and to other controllers. 0 if `controller` is NULL.
uint64_t ropewalk_controller_id(const ropewalk_controller *controller);

// Sends a command with its body, encoded as protocol buffers encode it. It stays good for `expiry_ns`: 0 is twice the round trip and at
// least 200 ms; negative is for ever, and not for what moves. Never blocks. `out` may be NULL, if nobody wants to know what becomes of it.
ropewalk_status ropewalk_controller_send(const ropewalk_controller *controller,
                                         const char *kind,
                                         const uint8_t *body,
                                         size_t len,
                                         int64_t expiry_ns,
                                         ropewalk_sent **out);

// Blocks until it is known what became of a command, at most `timeout_ns`, and tells that as often as it is asked; `ROPEWALK_STATUS_EMPTY` if it is not known by
// then. Not from a function that the library calls.
ropewalk_status ropewalk_sent_wait(const ropewalk_sent *sent,
                                   int64_t timeout_ns,
                                   ropewalk_outcome *outcome);

// Why a command was not carried out, for people; empty if it was. To be asked when `ropewalk_sent_wait` told what became of it. `len` (may be NULL)
// gets the length with the zero byte in any case.
ropewalk_status ropewalk_sent_reason(const ropewalk_sent *sent,
                                     char *buffer,
                                     size_t capacity,
                                     size_t *len);

// Frees a sent command, which goes on all the same.
void ropewalk_sent_free(ropewalk_sent *sent);

// `callback` gets each value of a telemetry kind and channel (0 where there is only one) from now on. Bodies of the library's kinds that are none do not come
// here. In any case `free_user` is called with `user` in the end.
ropewalk_status ropewalk_controller_on_telemetry(const ropewalk_controller *controller,
                                                 const char *kind,
                                                 uint8_t channel,
                                                 ropewalk_telemetry_handler callback,
                                                 void *user,
                                                 ropewalk_free_user free_user);

// The latest value of a telemetry kind and channel that came by itself; `ROPEWALK_STATUS_EMPTY` before the first.
ropewalk_status ropewalk_controller_latest(const ropewalk_controller *controller,
                                           const char *kind,
                                           uint8_t channel,
                                           ropewalk_value **out);

// Asks the robot for the latest value of a telemetry kind and channel, and blocks for it at most `timeout_ns`. `ROPEWALK_STATUS_EMPTY`: none was set yet;
// `ROPEWALK_STATUS_REJECTED`: it has no such telemetry; `ROPEWALK_STATUS_TIMEOUT`: it did not answer. Not from a function that the library calls.
ropewalk_status ropewalk_controller_fetch(const ropewalk_controller *controller,
                                          const char *kind,
                                          uint8_t channel,
                                          int64_t timeout_ns,
                                          ropewalk_value **out);

// The bytes of a value, encoded as protocol buffers encode it, valid until it is freed.
ropewalk_status ropewalk_value_data(const ropewalk_value *value, const uint8_t **data, size_t *len);

// Frees a value.
void ropewalk_value_free(ropewalk_value *value);

// Asks for, requests, releases, hands over or takes over the right to move a subsystem (empty: the whole robot). `wish` is a `ropewalk_wish`; `to` is the number of the controller
// that gets it of `ROPEWALK_WISH_HAND_OVER`. Blocks for the answer, at most 30 s: not from a function that the library calls. `ROPEWALK_STATUS_REJECTED`: the robot does not grant it, and the message says why;
// `ROPEWALK_STATUS_TIMEOUT`: it did not answer. `right` may be NULL.
ropewalk_status ropewalk_controller_right(const ropewalk_controller *controller,
                                          const char *subsystem,
                                          uint32_t wish,
                                          uint64_t to,
                                          ropewalk_right *right);

// Calls `callback` for each file that the robot shares under an identifier. Blocks for the answer; not from a function that the library
// calls. `ROPEWALK_STATUS_REJECTED`: it shares nothing of that name; `ROPEWALK_STATUS_TIMEOUT`: it did not answer; `ROPEWALK_STATUS_EMPTY`: `callback`
// ended it.
ropewalk_status ropewalk_controller_files(const ropewalk_controller *controller,
                                          const char *identifier,
                                          ropewalk_file_handler callback,
                                          void *user);

// Fetches a file that the robot shares into the folder `into`, under its path there (a single file, whose path is empty, under its identifier), or with
// `path` NULL all of an identifier, and blocks until it is whole and its SHA-256 is the robot's. An interrupted download goes on where it was; before it is
// whole it is called `.NAME.part`. Nothing outside of `into` is written, whatever the robot calls it. `progress` (may be NULL) is called for each piece
// that came. `written` (may be NULL) gets the paths of what was written, each with its zero byte. Not from a function that the library calls.
// `ROPEWALK_STATUS_REJECTED`: the robot refuses; `ROPEWALK_STATUS_TIMEOUT`: it did not answer; `ROPEWALK_STATUS_INVALID_ARGUMENT`: the path leads out
// of the folder; `ROPEWALK_STATUS_SYSTEM`: it cannot be written; `ROPEWALK_STATUS_CONTENT`: it has another checksum, and was thrown away;
// `ROPEWALK_STATUS_EMPTY`: `progress` ended it.
ropewalk_status ropewalk_controller_download(const ropewalk_controller *controller,
                                             const char *identifier,
                                             const char *path,
                                             const char *into,
                                             ropewalk_file_handler progress,
                                             void *user,
                                             ropewalk_value **written);

// Stops a controller and frees it: what it moves stops. Commands under way end as unreachable. Waits for the functions that it calls, but for the
// one that calls this.
void ropewalk_controller_free(ropewalk_controller *controller);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* ROPEWALK_H */
