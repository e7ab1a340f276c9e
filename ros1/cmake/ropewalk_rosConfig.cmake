# find_package(ropewalk_ros) gives the target ropewalk_ros::ropewalk_ros: headers, libropewalk, and roscpp.
include(CMakeFindDependencyMacro)
find_dependency(ropewalk)
find_dependency(PkgConfig)

if(NOT TARGET ropewalk_ros::ropewalk_ros)
  pkg_check_modules(ROPEWALK_ROS_ROSCPP REQUIRED roscpp sensor_msgs std_msgs)
  get_filename_component(ROPEWALK_ROS_PREFIX "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
  add_library(ropewalk_ros::ropewalk_ros INTERFACE IMPORTED)
  set_target_properties(ropewalk_ros::ropewalk_ros PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${ROPEWALK_ROS_PREFIX}/include;${ROPEWALK_ROS_ROSCPP_INCLUDE_DIRS}"
    INTERFACE_LINK_LIBRARIES "ropewalk::ropewalk;${ROPEWALK_ROS_ROSCPP_LINK_LIBRARIES}"
    INTERFACE_COMPILE_FEATURES cxx_std_17)
endif()
