SERVICE(std_srvs::SetBool, "/lights", 0, 100, 100);
SERVICE(std_srvs::Trigger, "dock", 1, 90, 500);
TOPIC(std_msgs::Float64, "battery", 2, "0", 20, 1000, 5000);
