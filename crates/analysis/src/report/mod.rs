//! Renders any benchmark's JSON as one page (`ropewalk bench report`): tables with the papers' rows, box plots,
//! distributions, delays by message, curves.
//!
//! The page is one file that loads and executes nothing. Everything drawn carries its value (`data-file`, `data-cell`,
//! `data-metric`, `data-value`), so that the page can be read back and compared.

mod figures;
mod page;
mod read;

pub use read::{Document, Flat, ReadError};

use crate::file::{self, FileError};
use clap::Args;
use std::path::PathBuf;

/// Render the results of any benchmarks as a page with tables and figures.
///
/// FILE is the output of any `ropewalk bench … --json` (or `demo --json`, `plan --json`). The page is one HTML file
/// without scripts or external resources, light or dark as the reader prefers, and suitable for printing.
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

/// Why no page can be written.
pub type Error = FileError<ReadError>;

/// Reads the files and writes the page.
///
/// # Errors
/// If a file cannot be read or written.
pub fn run(options: &Options) -> Result<(), Error> {
    let mut documents = Vec::new();
    for path in &options.files {
        let name = path
            .file_name()
            .map_or_else(String::new, |n| n.to_string_lossy().into_owned());
        documents.push(file::read(path, |text| Document::parse(text, name))?);
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
