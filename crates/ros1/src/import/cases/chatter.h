// A topic by a relative name, from node 1 to node 2.
TOPIC(std_msgs::String, "chatter", 1, "2", 100, 5, 10000)
