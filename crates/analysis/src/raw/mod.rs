//! Foreign raw data of round trips: `id,sent,received` rows, one file a sender, folders for frequency, number of nodes
//! and run (`ropewalk bench analyze`).
//!
//! Overload is told, not averaged away: the log closes some seconds after the last message was sent, so the mean of
//! what came until then is too small wherever something did not. Such cells are ranked by their delivery alone.

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

/// Statistics and models of raw data that others measured.
///
/// DIR holds rows `id,sent,received` of round trips, one file a sender; received is empty where no
/// answer came before the log closed. A YAML file tells what folders and columns mean, for example
///
///   files: "{hz}Hz/{nodes}nodes/run{run}/*.csv"
///   payload_bytes: 4250
///   messages: 1195
///   closes_after: 5s
///
/// Given are delivery, mean, median and 99 % quantile of the round trip of each cell, with 95 %
/// confidence intervals by Student's t over its runs. Where messages are missing the mean is right-
/// censored (what did not come until the log closed is not in it): it is marked, and such cells are
/// ranked by delivery, never by their mean.
#[derive(Args, Clone, Debug)]
#[command(verbatim_doc_comment)]
pub struct Options {
    /// The folder of the raw data.
    pub dir: PathBuf,
    /// What folders, files and columns mean; by default DIR/layout.yaml.
    #[arg(long, value_name = "FILE")]
    pub layout: Option<PathBuf>,
    /// Print the result as JSON.
    #[arg(long)]
    pub json: bool,
    /// Write a line for each cell to this file.
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
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The layout.
    #[error(transparent)]
    Layout(#[from] layout::LayoutError),
    /// A row.
    #[error("{path}: {source}")]
    Row {
        /// In which file.
        path: PathBuf,
        /// Line and problem.
        source: rows::RowError,
    },
    /// No file lies where the layout says.
    #[error("{dir} has no file that `files` of the layout matches{hint}")]
    Nothing {
        /// The folder.
        dir: PathBuf,
        /// A file that is there.
        hint: String,
    },
    /// Files beyond any sense.
    #[error("{path}: {problem}")]
    TooMuch {
        /// Where.
        path: PathBuf,
        /// What.
        problem: String,
    },
    /// The user stopped it.
    #[error("stopped before the end")]
    Stopped,
}

impl Error {
    /// Whether the input is to blame.
    pub fn is_input(&self) -> bool {
        !matches!(self, Error::Stopped)
    }
}

/// Reads and analyzes; `stopped` is asked between files.
///
/// # Errors
/// What cannot be read, with file and line.
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
