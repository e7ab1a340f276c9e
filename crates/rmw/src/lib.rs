//! ROS 2's middleware interface (rmw 7.3 of Jazzy to 7.8 of Kilted) over Ropewalk's bus, as `librmw_ropewalk.so`.
//!
//! Nodes need no change: `RMW_IMPLEMENTATION=rmw_ropewalk` where ROS 2's dispatcher loads the library, and `LD_PRELOAD` where rcl is
//! linked to another rmw, as in the wheels of PyPI. Nothing of ROS is needed to build it: what it needs of the process that loads it
//! is looked up there (`host`).
//!
//! A message is walked by rosidl's introspection type support (`typesupport`, `walk`), which says where each field lies in a C or C++
//! structure. On publishing the small fields go into the control part and each bulk array into the block, once.
//!
//! Publishers, subscriptions, clients and services are endpoints of the bus under their own names; which node each belongs to, and
//! its quality of service, every context tells the others in records on a topic of its own (`graph`).

mod abi;
mod callback;
mod client;
mod codec;
mod context;
mod dynamic;
mod error;
mod event;
mod filter;
mod graph;
mod guard;
mod host;
mod identity;
mod loans;
mod matching;
mod memo;
mod memory;
mod names;
mod node;
mod other;
mod publisher;
mod qos;
mod query;
mod serial;
mod service;
mod signal;
mod subscription;
mod typesupport;
mod wait;
mod walk;
