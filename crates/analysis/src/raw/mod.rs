//! Third-party raw data of round trips: `id,sent,received` rows, one file per sender, folders for frequency, number of
//! nodes and run (`ropewalk bench analyze`).
//!
//! Overload is reported, not averaged away: the log closes some seconds after the last message was sent, so the mean of
//! the messages received until then is too small if others are missing. Such cells are ranked only by their delivery.

mod cell;
mod figure;
mod gather;
pub mod layout;
mod outcome;
pub mod pattern;
pub mod rows;
mod statistics;

pub use cell::{CellMetrics, Intervals, Rtt, Spread};
pub use gather::Gathered;
pub use layout::Layout;
pub(crate) use outcome::value;
pub use outcome::{Cells, Outcome};
pub use statistics::Run;

use clap::Args;
use std::path::PathBuf;

/// Compute statistics and models of third-party raw data
///
/// DIR contains rows `id,sent,received` of round trips, one file per sender;
/// received is empty if no answer arrived before the log closed. A YAML file
/// describes the folders and columns, for example
///
///   files: "{hz}Hz/{nodes}nodes/run{run}/*.csv"
///   payload_bytes: 4250
///   messages: 1195
///   closes_after: 5s
///
/// Prints delivery, mean, median and 99 % quantile of the round trip of each
/// cell, with 95 % confidence intervals by Student's t over its runs. If
/// messages are missing, the mean is right-censored: it lacks answers after the
/// log closed. Such cells are marked, and ranked by delivery, never by their
/// mean.
#[derive(Args, Clone, Debug)]
#[command(verbatim_doc_comment)]
pub struct Options {
    /// The folder of the raw data.
    pub dir: PathBuf,
    /// Description of folders, files and columns (default: DIR/layout.yaml).
    #[arg(long, value_name = "FILE")]
    pub layout: Option<PathBuf>,
    /// `--json`.
    #[command(flatten)]
    pub json: terminal::json::Json,
    /// Write one line per cell to this CSV file.
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write the figure (delays by frequency and number of nodes) to this file.
    #[arg(long, value_name = "FILE")]
    pub figure: Option<PathBuf>,
}

/// Why raw data cannot be analyzed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or folder cannot be read.
    #[error("{path}: {source}")]
    File {
        /// Path of the file or folder.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The layout is invalid.
    #[error(transparent)]
    Layout(#[from] layout::LayoutError),
    /// A row is invalid.
    #[error("{path}: {source}")]
    Row {
        /// Path of the file.
        path: PathBuf,
        /// Line and problem.
        source: rows::RowError,
    },
    /// No file matches the layout.
    #[error("{dir} has no file that matches `files` of the layout{hint}")]
    Nothing {
        /// The folder.
        dir: PathBuf,
        /// A hint: a file that exists.
        hint: String,
    },
    /// A file is too large, or there are too many.
    #[error("{path}: {problem}")]
    TooMuch {
        /// Path.
        path: PathBuf,
        /// Kind of excess.
        problem: String,
    },
    /// The user stopped it.
    #[error("stopped before the end")]
    Stopped,
}

impl Error {
    /// Whether the user's input caused the error.
    pub fn is_input(&self) -> bool {
        !matches!(self, Error::Stopped)
    }
}

/// Reads and analyzes the data; `stopped` is checked between files.
///
/// # Errors
/// If something cannot be read, with file and line.
pub fn run(options: &Options, stopped: &dyn Fn() -> bool) -> Result<Outcome, Error> {
    let file = (options.layout.clone()).unwrap_or_else(|| options.dir.join("layout.yaml"));
    let text = std::fs::read_to_string(&file).map_err(|source| Error::File {
        path: file.clone(),
        source,
    })?;
    let layout = Layout::parse(&text, &file.display().to_string())?;
    let gathered = gather::gather(&options.dir, &layout, stopped)?;
    Ok(Outcome::of(gathered, &layout))
}
