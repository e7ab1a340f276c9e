//! The shape of every benchmark's JSON.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The result of one experiment: which machine and versions, and a cell for every system and setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report<P, M> {
    /// Which experiment this is.
    pub experiment: String,
    /// The machine: processor, cores, memory, kernel, scheduling; names to values.
    pub machine: BTreeMap<String, serde_json::Value>,
    /// Versions of everything measured.
    pub versions: BTreeMap<String, String>,
    /// One entry for each system and setting.
    pub cells: Vec<Cell<P, M>>,
}

/// One measured system under one setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell<P, M> {
    /// What was measured.
    pub system: String,
    /// Under which setting.
    pub params: P,
    /// What came out; units are in the field names.
    pub metrics: M,
}
