//! A bridge between the bus and a DDS domain, without anything of ROS: its peer there is a participant of `rtps`.

mod bridges;
mod converted;
mod filters;
mod hostile;
mod kept;
mod kit;
mod nodes;
mod services;
mod topics;
mod types;
