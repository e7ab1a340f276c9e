TFTOPIC("/tf", 0, "1", 60, 100, 500)
TF_ADD_WHITELIST("/tf", "map->odom");
TF_ADD_WHITELIST("/tf", "odom->base_link");
TFTOPIC("tf", 1, "0", 60, 200, 500)
TF_ADD_BLACKLIST("tf", "base_link->camera");
TF_OUT_TOPIC("tf", "/tf_far");
