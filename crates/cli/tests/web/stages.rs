//! Where the age of a picture comes from.

use super::browser::Page;
use super::support::{Host, eventually};
use serde_json::{Value, json};

/// The page of a base shows where the age of a picture comes from, and saves it.
pub(crate) fn are_shown_and_saved(page: &mut Page, base: &Host) {
    let names = ["capture", "link", "server", "browser", "decode", "draw", "all"];
    for name in names {
        page.wait(&format!(
            "document.querySelector('[data-stage={name}] dd').textContent.endsWith(' ms')"
        ));
    }
    let of_bus = page.evaluate("document.querySelector('[data-stage=bus]')");
    assert_eq!(of_bus, Value::Null, "it came over the link");
    let folder = base.path("saved");
    let to = json!({ "behavior": "allow", "downloadPath": folder });
    page.call("Browser.setDownloadBehavior", to);
    page.evaluate("document.getElementById('camera-save').click()");
    let saved = eventually("the times are saved", || {
        std::fs::read_to_string(folder.join("camera_image_stages.csv")).ok()
    });
    let mut lines = saved.lines();
    let heads: Vec<&str> = lines.next().expect("a head").split(',').collect();
    let last: Vec<&str> = lines.next_back().expect("a picture").split(',').collect();
    let number = |name: &str| -> f64 {
        let at = heads.iter().position(|head| *head == name).expect(name);
        last[at]
            .parse()
            .unwrap_or_else(|e| panic!("{name}: {e}: {saved}"))
    };
    for pair in [
        ["captured_s", "published_s"],
        ["published_s", "taken_s"],
        ["taken_s", "sent_s"],
        ["received_s", "decoded_s"],
        ["decoded_s", "drawn_s"],
    ] {
        // Clocks that somebody sets may step back a little.
        assert!(number(pair[0]) <= number(pair[1]) + 1e-3, "{pair:?}: {saved}");
    }
    for name in names.iter().filter(|name| **name != "all") {
        assert!(number(&format!("{name}_ms")) >= 0.0, "{name}: {saved}");
    }
}
