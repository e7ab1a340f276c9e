//! ROS 2's middleware interface (rmw 7.3 of Jazzy to 7.8 of Kilted) over Ropewalk's bus, as `librmw_ropewalk.so`.
//!
//! Nodes need no change: set `RMW_IMPLEMENTATION=rmw_ropewalk` where ROS 2's dispatcher loads the library, or
//! `LD_PRELOAD` where rcl is linked to another rmw, as in the wheels on PyPI. Building it needs nothing of ROS: the
//! library looks up what it needs in the process that loads it (`host`).
//!
//! rosidl's introspection type support says where each field lies in a C or C++ structure, and messages are walked with
//! it (`typesupport`, `walk`). On publishing, the small fields go into the control part, and each bulk array is copied
//! once into the block.
//!
//! Publishers, subscriptions, clients and services are endpoints of the bus under their own names. Every context
//! publishes records on a topic of its own that say which node each endpoint belongs to, and its quality of service
//! (`graph`).

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
