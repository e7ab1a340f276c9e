//! The command as a user runs it: real processes, real sockets, real files.
// Tests print only their own text.
#![allow(clippy::disallowed_macros, clippy::disallowed_methods)]

mod actions;
mod analysis;
mod bad_input;
mod bench;
mod bench_agent;
mod bench_lab;
mod bench_link;
mod bench_remote;
mod bench_scale;
mod complete;
mod demo;
mod documented;
mod habits;
mod import;
mod interfaces;
mod lab;
mod lab_kills;
mod link;
mod nodes;
mod operate;
mod parameters;
mod play;
mod quality;
mod record;
mod remote;
mod ros1;
mod services;
mod smaller;
mod support;
mod team;
mod terminal;
mod tools;
mod topics;
mod tutorial;
