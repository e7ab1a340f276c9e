//! Counts copied bytes, with a library that is loaded into the peers.

use crate::kit::error::RunError;
use crate::kit::sandbox::Sandbox;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Only copies of at least this many bytes between memory regions are counted: smaller ones carry no significant
/// payload.
const SMALLEST: u64 = 1024;

/// Bytes that one process copied.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(super) struct CopyCount {
    pub(super) user_copies_bytes: u64,
    pub(super) kernel_in_bytes: u64,
    pub(super) kernel_out_bytes: u64,
}

/// Loads the library into a peer.
pub(super) fn prepare(command: &mut Command, library: &Path, sandbox: &Sandbox, peer: usize) {
    command
        .env("LD_PRELOAD", library)
        .env("COPYCOUNT_OUT", file(sandbox, peer));
    command.env("COPYCOUNT_MIN", SMALLEST.to_string());
}

/// Reads what a peer copied, after its end.
pub(super) fn read(sandbox: &Sandbox, peer: usize) -> Result<CopyCount, RunError> {
    let path = file(sandbox, peer);
    let text = std::fs::read_to_string(&path).map_err(|e| format!("cannot read the count of copies: {e}"))?;
    let _ = std::fs::remove_file(&path);
    Ok(serde_json::from_str(&text).map_err(|e| format!("not a count of copies: {e}"))?)
}

fn file(sandbox: &Sandbox, peer: usize) -> PathBuf {
    sandbox.path().join(format!("copies-{peer}.json"))
}
