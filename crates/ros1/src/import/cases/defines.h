#include "data_types.h"
#define SCAN_MS 100   // the laser's period
#define ROBOT 0
#define UNUSED 7
#ifdef REAL
TOPIC(sensor_msgs::LaserScan, "scan", ROBOT, "1", 90, SCAN_MS, 200)
#endif
