//! The page's files.

const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Path, media type and content of each file.
const FILES: [(&str, &str, &str); 12] = [
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
];

/// Media type and content of the file at a path.
pub(super) fn find(path: &str) -> Option<(&'static str, &'static str)> {
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
