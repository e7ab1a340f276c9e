// The header in plain C: a message of a type that is found by name, from publisher to subscriber.

#include <stdio.h>
#include <string.h>

#include "ropewalk.h"

#define OK(call)                                                       \
    do {                                                               \
        if ((call) != ROPEWALK_STATUS_OK) {                            \
            fprintf(stderr, "%s: %s\n", #call, ropewalk_error_message()); \
            return 1;                                                  \
        }                                                              \
    } while (0)

int main(void) {
    ropewalk_node *node;
    ropewalk_type *type;
    ropewalk_publisher *publisher;
    ropewalk_subscriber *subscriber;
    OK(ropewalk_node_new("plain", NULL, &node));
    OK(ropewalk_type_find("std_msgs/String", ROPEWALK_FLAVOUR_ROS1, &type));
    OK(ropewalk_node_subscriber(node, "/plain", type, NULL, &subscriber));
    OK(ropewalk_node_publisher(node, "/plain", type, NULL, &publisher));
    OK(ropewalk_publisher_wait_for_subscribers(publisher, 1, 60000000000LL));
    const uint8_t hello[] = "\5\0\0\0hello";
    OK(ropewalk_publisher_publish_ros1(publisher, hello, 9, NULL));
    ropewalk_message *message;
    OK(ropewalk_subscriber_take(subscriber, 60000000000LL, &message));
    uint8_t bytes[16];
    size_t len;
    OK(ropewalk_message_ros1(message, bytes, sizeof bytes, &len));
    if (len != 9 || memcmp(bytes, hello, 9) != 0) return 1;
    ropewalk_message_free(message);
    ropewalk_publisher_free(publisher);
    ropewalk_subscriber_free(subscriber);
    ropewalk_type_free(type);
    ropewalk_node_free(node);
    printf("plain C: done\n");
    return 0;
}
