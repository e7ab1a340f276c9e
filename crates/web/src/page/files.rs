//! The page's files: in the program, or in a folder while the page is being written.

use std::borrow::Cow;
use std::path::PathBuf;

const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Path, media type and content of each file.
const FILES: [(&str, &str, &str); 30] = [
    (
        "/",
        "text/html; charset=utf-8",
        include_str!("../../page/index.html"),
    ),
    (
        "/page.css",
        "text/css; charset=utf-8",
        include_str!("../../page/page.css"),
    ),
    ("/icon.svg", "image/svg+xml", include_str!("../../page/icon.svg")),
    ("/main.js", SCRIPT, include_str!("../../page/main.js")),
    ("/server.js", SCRIPT, include_str!("../../page/server.js")),
    ("/dom.js", SCRIPT, include_str!("../../page/dom.js")),
    ("/peers.js", SCRIPT, include_str!("../../page/peers.js")),
    ("/topics.js", SCRIPT, include_str!("../../page/topics.js")),
    ("/journal.js", SCRIPT, include_str!("../../page/journal.js")),
    ("/air.js", SCRIPT, include_str!("../../page/air.js")),
    ("/messages.js", SCRIPT, include_str!("../../page/messages.js")),
    ("/views.js", SCRIPT, include_str!("../../page/views.js")),
    ("/stages.js", SCRIPT, include_str!("../../page/stages.js")),
    ("/video.js", SCRIPT, include_str!("../../page/video.js")),
    ("/h264.js", SCRIPT, include_str!("../../page/h264.js")),
    ("/drive.js", SCRIPT, include_str!("../../page/drive.js")),
    ("/driver.js", SCRIPT, include_str!("../../page/driver.js")),
    ("/record.js", SCRIPT, include_str!("../../page/record.js")),
    ("/robots.js", SCRIPT, include_str!("../../page/robots.js")),
    ("/hold.js", SCRIPT, include_str!("../../page/hold.js")),
    ("/pad.js", SCRIPT, include_str!("../../page/pad.js")),
    ("/map.js", SCRIPT, include_str!("../../page/map.js")),
    ("/eye.js", SCRIPT, include_str!("../../page/eye.js")),
    ("/frames.js", SCRIPT, include_str!("../../page/frames.js")),
    ("/ground.js", SCRIPT, include_str!("../../page/ground.js")),
    ("/marks.js", SCRIPT, include_str!("../../page/marks.js")),
    ("/places.js", SCRIPT, include_str!("../../page/places.js")),
    ("/plots.js", SCRIPT, include_str!("../../page/plots.js")),
    ("/curve.js", SCRIPT, include_str!("../../page/curve.js")),
    ("/decode.js", SCRIPT, include_str!("../../page/decode.js")),
];

/// Where the files are.
#[derive(Debug, Default)]
pub(super) struct Files(pub(super) Option<PathBuf>);

impl Files {
    /// Whether the page has a file at this path.
    pub(super) fn has(&self, path: &str) -> bool {
        find(path).is_some() || self.0.is_some() && kind(path).is_some()
    }

    /// Media type and content of the file at a path.
    pub(super) fn get(&self, path: &str) -> Option<(&'static str, Cow<'static, [u8]>)> {
        let Some(folder) = &self.0 else {
            return find(path).map(|(kind, content)| (kind, content.as_bytes().into()));
        };
        let (kind, name) = match path {
            "/" => (find(path)?.0, "index.html"),
            _ => (kind(path)?, &path[1..]),
        };
        let content = std::fs::read(folder.join(name)).ok()?;
        Some((kind, content.into()))
    }
}

/// The media type of a file in a folder, by its name.
fn kind(path: &str) -> Option<&'static str> {
    let (name, ending) = path.strip_prefix('/')?.rsplit_once('.')?;
    if !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
        return None;
    }
    match ending {
        "js" => Some(SCRIPT),
        "css" => Some("text/css; charset=utf-8"),
        "svg" => Some("image/svg+xml"),
        _ => None,
    }
}

/// Media type and content of the file at a path, in the program.
fn find(path: &str) -> Option<(&'static str, &'static str)> {
    let found = FILES.iter().find(|(at, ..)| *at == path);
    found.map(|(_, kind, content)| (*kind, *content))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write;

    #[test]
    fn a_folder_serves_the_page_and_nothing_else() {
        let page = Files(Some("page".into()));
        assert_eq!(page.get("/").unwrap().1, Files::default().get("/").unwrap().1);
        assert_eq!(
            page.get("/main.js").unwrap().1,
            Files::default().get("/main.js").unwrap().1
        );
        for path in [
            "/../Cargo.toml",
            "/..%2fmain.js",
            "/sub/main.js",
            "/.js",
            "/index.html",
            "/gone.js",
            "",
        ] {
            assert!(page.get(path).is_none(), "{path}");
        }
    }

    #[test]
    fn the_page_is_small_and_needs_no_other_site() {
        let mut size = 0;
        for (path, _, content) in FILES {
            let mut packed = GzEncoder::new(Vec::new(), Compression::default());
            packed.write_all(content.as_bytes()).unwrap();
            size += packed.finish().unwrap().len();
            let elsewhere = content.match_indices("://").map(|(at, _)| {
                let start = content[..at]
                    .rfind(|c: char| !c.is_ascii_lowercase())
                    .map_or(0, |i| i + 1);
                &content[start..content.len().min(at + 30)]
            });
            // Namespaces are names, not addresses; the page's own address is known only where it runs.
            let good = |s: &str| s.starts_with("http://www.w3.org/") || s.starts_with("://${location.host}/");
            let bad: Vec<_> = elsewhere.filter(|s| !good(s)).collect();
            assert!(bad.is_empty(), "{path}: {bad:?}");
            let inline = ["style=", "onclick=", "javascript:", "innerHTML", "eval("];
            assert!(!inline.iter().any(|word| content.contains(word)), "{path}");
        }
        assert!(size <= 150_000, "{size} bytes");
        let html = FILES[0].2;
        for reference in html.split(['"', '\'']).filter(|s| s.starts_with('/')) {
            assert!(find(reference).is_some(), "{reference}");
        }
    }
}
