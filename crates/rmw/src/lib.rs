//! ROS 2's middleware interface (rmw 7.3 of Jazzy to 7.8 of Kilted) over Ropewalk's bus, as `librmw_ropewalk.so`.
//!
//! Nodes need no change: `RMW_IMPLEMENTATION=rmw_ropewalk` where ROS 2's dispatcher loads the library, and `LD_PRELOAD` where rcl is
//! linked to another rmw, as in the wheels of PyPI. Nothing of ROS is needed to build it: what it needs of the process that loads it
//! is looked up there (`host`).
//!
//! A message is walked by rosidl's introspection type support (`introspection`), which says where each field lies in a C or C++
//! structure. On publishing the small fields go into the control part and each bulk array into the block, once.

mod abi;
mod typesupport;
mod walk;
