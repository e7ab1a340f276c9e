//! Lists and downloads the robot's files.

use super::session::{Done, PATIENCE, Problem, Session, usage};
use remote::controller::{Progress, Saving};
use remote::telemetry;
use serde_json::json;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

const FORM: &str = "files ls [IDENTIFIER] | files get IDENTIFIER [PATH [FOLDER]] [--replace] [--hidden]";
/// Interval between two progress reports.
const PERIOD: Duration = Duration::from_millis(200);

/// Lists or downloads files.
pub(super) fn files(session: &Session, line: &str, words: &[&str]) -> Done {
    let saving = Saving::default()
        .with_replace(words.contains(&"--replace"))
        .with_hidden(words.contains(&"--hidden"));
    let words: Vec<&str> = words
        .iter()
        .copied()
        .filter(|w| !["--replace", "--hidden"].contains(w))
        .collect();
    match words[..] {
        ["ls"] => shared(session, line),
        ["ls", identifier] => list(session, line, identifier),
        ["get", identifier] => get(session, line, identifier, (None, "."), saving),
        ["get", identifier, path] => get(session, line, identifier, (Some(path), "."), saving),
        ["get", identifier, path, folder] => get(session, line, identifier, (Some(path), folder), saving),
        _ => usage(FORM),
    }
}

fn shared(session: &Session, line: &str) -> Done {
    let definition = session
        .controller
        .fetch_within::<telemetry::FileDefinition>(0, PATIENCE)
        .wait();
    let definition = definition.map_err(Problem::failed)?.unwrap_or_default();
    let kinds = definition.is_folder.iter().chain(std::iter::repeat(&false));
    let all: Vec<_> = definition.file.iter().zip(kinds).collect();
    let text = |(file, folder): &(&remote::types::File, &bool)| {
        let kind = if **folder { "folder" } else { "file" };
        format!("{:<20} {kind} {}", file.identifier, file.path)
    };
    let text: Vec<_> = all.iter().map(text).collect();
    let json: Vec<_> = all
        .iter()
        .map(|(file, folder)| json!({ "identifier": file.identifier, "path": file.path, "folder": folder }))
        .collect();
    session
        .output
        .result(line, &text.join("\n"), json!({ "shared": json }));
    Ok(())
}

fn list(session: &Session, line: &str, identifier: &str) -> Done {
    let files = session.controller.files(identifier).map_err(Problem::failed)?;
    let text: Vec<_> = files
        .iter()
        .map(|f| format!("{:>12} B  {}", f.size, f.path))
        .collect();
    let json: Vec<_> = files
        .iter()
        .map(|f| json!({ "path": f.path, "size_bytes": f.size }))
        .collect();
    session
        .output
        .result(line, &text.join("\n"), json!({ "files": json }));
    Ok(())
}

/// Downloads one file to its path, or all files of an identifier into a folder of that name.
fn get(
    session: &Session,
    line: &str,
    identifier: &str,
    (path, folder): (Option<&str>, &str),
    saving: Saving,
) -> Done {
    let show = session.interactive && !session.output.json;
    let mut reported = Instant::now();
    let progress = |progress: Progress<'_>| {
        if show && reported.elapsed() >= PERIOD {
            reported = Instant::now();
            let path = stats::text::printable(progress.path);
            let mut out = crate::screen::raw();
            let _ = write!(out, "\r\x1b[K{path}: {} of {} B", progress.done, progress.size);
            let _ = out.flush();
        }
    };
    let (controller, into, began) = (
        session.controller.saving(saving),
        Path::new(folder),
        Instant::now(),
    );
    let fetched = match path {
        Some(path) => controller
            .download(identifier, path, into, progress)
            .map(|file| vec![file]),
        None => controller.download_all(identifier, into, progress),
    };
    if show {
        let _ = write!(crate::screen::raw(), "\r\x1b[K");
    }
    let seconds = began.elapsed().as_secs_f64();
    let fetched = fetched.map_err(Problem::failed)?;
    let text: Vec<_> = fetched
        .iter()
        .map(|file| format!("fetched {}", file.display()))
        .collect();
    session.output.result(
        line,
        &text.join("\n"),
        json!({ "fetched": fetched, "duration_s": seconds }),
    );
    Ok(())
}
