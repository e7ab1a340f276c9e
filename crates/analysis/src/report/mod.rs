//! One page of any benchmark's JSON (`ropewalk bench report`): tables with the papers' rows, box plots, distributions, delays
//! by message, curves.
//!
//! The page is one file that loads nothing and runs nothing. Whatever it draws carries its value (`data-file`, `data-cell`,
//! `data-metric`, `data-value`), so that the page can be read back and compared.

mod axis;
mod figures;
mod page;
mod read;

pub use read::{Document, Flat, ReadError};

use clap::Args;
use std::path::PathBuf;

/// A page with tables and figures of any benchmarks' results.
///
/// FILE is what any `ropewalk bench … --json` (or `demo --json`, `plan --json`) printed. The page is one HTML file without
/// scripts or outside resources, light or dark as the reader prefers, and fit to be printed.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Results as JSON.
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Write the page to this file.
    #[arg(long, short, value_name = "FILE", default_value = "ropewalk-report.html")]
    pub output: PathBuf,
    /// The page's title.
    #[arg(long, default_value = "Ropewalk: measured")]
    pub title: String,
}

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file cannot be read or written.
    #[error("{path}: {source}")]
    File {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file is no benchmark's result.
    #[error("{path}: {source}")]
    Read {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        source: ReadError,
    },
}

/// Reads the files and writes the page.
///
/// # Errors
/// What cannot be read or written.
pub fn run(options: &Options) -> Result<(), Error> {
    let mut documents = Vec::new();
    for path in &options.files {
        let text = std::fs::read_to_string(path).map_err(|source| Error::File {
            path: path.clone(),
            source,
        })?;
        let name = path
            .file_name()
            .map_or_else(String::new, |n| n.to_string_lossy().into_owned());
        documents.push(Document::parse(&text, name).map_err(|source| Error::Read {
            path: path.clone(),
            source,
        })?);
    }
    std::fs::write(&options.output, html(&options.title, &documents)).map_err(|source| Error::File {
        path: options.output.clone(),
        source,
    })
}

/// The page.
pub fn html(title: &str, documents: &[Document]) -> String {
    page::html(title, documents)
}
