//! Hosts with a bus and a link daemon each, on this machine.
#![allow(missing_docs, reason = "tests")]

mod account;
mod bulk;
mod common;
mod names;
mod pace;
mod relay;
mod sealed;
mod services;
mod settings;
mod spy;
mod unheard;
mod watched;
mod wire;
