/* Absolute names keep their place at the source. */
TOPIC(turtlesim::Pose, "/turtle/pose", 0, "1", 100, 15, 1000);
TOPIC(geometry_msgs::Twist, "/turtle/cmd_vel", 1, "0", 110, 500, 1000);
TOPIC(std_msgs::Bool, "/lamp", 0, "1", 5, 0, 0);
