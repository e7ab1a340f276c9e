//! Raw results of an experiment's runs, for closer inspection.

use crate::kit::error::RunError;
use serde_json::Value;
use std::cell::Cell;
use std::fs;
use std::path::PathBuf;

/// Writes the raw result of each run into its own file, `000.json` and on, if a folder was given.
pub(crate) struct Keep {
    folder: Option<PathBuf>,
    written: Cell<u32>,
}

impl Keep {
    pub(crate) fn new(folder: Option<PathBuf>) -> Keep {
        Keep {
            folder,
            written: Cell::new(0),
        }
    }

    /// Writes the raw result of a run; `left` is called only if it is written.
    pub(crate) fn put(&self, left: impl FnOnce() -> Value) -> Result<(), RunError> {
        let Some(folder) = &self.folder else {
            return Ok(());
        };
        let number = self.written.get();
        self.written.set(number + 1);
        let file = folder.join(format!("{number:03}.json"));
        let written = fs::create_dir_all(folder).and_then(|()| fs::write(&file, left().to_string()));
        written.map_err(|e| RunError::Failed(format!("{}: {e}", file.display())))
    }
}
