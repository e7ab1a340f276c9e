//! The JSON format of every benchmark.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The result of one experiment: the machine and versions, and a cell for each system and setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report<P, M> {
    /// Name of the experiment.
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
    /// The measured system.
    pub system: String,
    /// The setting.
    pub params: P,
    /// The results; units are in the field names.
    pub metrics: M,
}
