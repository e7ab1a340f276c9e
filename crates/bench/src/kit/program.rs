//! Where the program `ropewalk` is, which labs, links and bridges are processes of.

use crate::kit::error::Error;
use std::path::PathBuf;

const NAME: &str = "ropewalk";

/// Returns the file of `ropewalk` next to this program.
///
/// # Errors
/// [`Error`]: it is not there.
pub(crate) fn ropewalk() -> Result<PathBuf, Error> {
    let own = std::env::current_exe().map_err(|source| Error::System {
        doing: "finding this program's file",
        source,
    })?;
    let program = own.with_file_name(NAME);
    if program.is_file() {
        return Ok(program);
    }
    Err(Error::Nothing(format!(
        "{} is missing, which runs labs, links and bridges: install it next to {}",
        program.display(),
        own.display()
    )))
}
