//! The map and the plots show what was published, and refuse what is no message.

use super::browser::{Browser, Page};
use super::support::{Host, eventually};
use super::{DESK, Web};
use serde_json::{Value, json};

/// Two rows of four cells of a metre, the lowest row first; -1 is unknown.
const CELLS: [i8; 8] = [0, 100, -1, 0, 100, 0, 0, 100];

pub(crate) fn choose(page: &mut Page, select: &str, value: &str) {
    page.evaluate(&format!(
        "(() => {{
            const select = document.getElementById('{select}');
            select.value = '{value}';
            select.dispatchEvent(new Event('change'));
        }})()"
    ));
}

/// The name of the page's colour at a place on the map, in metres; JavaScript.
fn colour_at(x: f64, y: f64) -> String {
    format!(
        "(() => {{
            const canvas = document.getElementById('map-picture');
            const {{ x, y, scale }} = canvas.dataset;
            const at = [canvas.width / 2 + ({x} - x) * scale, canvas.height / 2 - ({y} - y) * scale];
            const [red, green, blue] = canvas.getContext('2d').getImageData(...at.map(Math.round), 1, 1).data;
            const shown = '#' + [red, green, blue].map((part) => part.toString(16).padStart(2, '0')).join('');
            const style = getComputedStyle(document.documentElement);
            return ['free', 'wall', 'unknown', 'c0'].find((name) => style.getPropertyValue('--' + name).trim() === shown);
        }})()"
    )
}

/// Whether nobody on the bus takes a topic.
pub(crate) fn is_left_alone(host: &Host, topic: &str) -> Option<()> {
    let info = host.run(&["topic", "info", topic, "--json"]);
    let info: Value = serde_json::from_str(&info.stdout).ok()?;
    info["topics"][0]["subscribers"]
        .as_array()?
        .is_empty()
        .then_some(())
}

#[test]
fn a_plot_shows_the_published_value() {
    let host = Host::new();
    let web = Web::start(&host, &[]);
    let Some(mut browser) = Browser::start(&host.path("t")) else {
        return;
    };
    let yaml = "{name: [left, right], position: [0.25, -1.5], effort: [5000, 0]}";
    let publish = [
        "topic",
        "pub",
        "/joints",
        "sensor_msgs/JointState",
        yaml,
        "--rate",
        "20",
    ];
    let _publisher = host.start(&publish);
    let mut page = browser.open(&web.url(), DESK);
    page.wait("document.getElementById('plots-topic').value === '/joints'");
    page.evaluate("document.getElementById('plots').scrollIntoView()");
    choose(&mut page, "plots-field", "position[]");
    page.evaluate("document.querySelector('#plots-indices input').value = 1");
    page.evaluate("document.getElementById('plots-add').click()");
    let legend = "document.querySelector('#plots-legend .what').textContent === '/joints position[1]' && document.querySelector('#plots-legend .value').textContent === '-1.5'";
    page.wait(legend);
    // Its colour is on the canvas, and a number of another kind has a scale of its own below it.
    let drawn = |colour: &str| {
        format!(
            "(() => {{
                const canvas = document.getElementById('plots-picture');
                const {{ data }} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
                const colour = getComputedStyle(document.documentElement).getPropertyValue('--{colour}').trim();
                const parts = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
                const places = [];
                for (let i = 0; i < data.length; i += 4) {{
                    if (parts.every((part, n) => data[i + n] === part)) places.push(i / 4 / canvas.width / canvas.height);
                }}
                return places;
            }})()"
        )
    };
    page.wait(&format!("{}.length > 0", drawn("c0")));
    let add = |page: &mut Page, path: &str| {
        choose(page, "plots-field", path);
        page.evaluate("document.getElementById('plots-add').click()");
    };
    add(&mut page, "effort[]");
    page.wait(&format!(
        "{0}.length > 0 && {0}.every((y) => y < 0.5) && {1}.length > 0 && {1}.every((y) => y > 0.5)",
        drawn("c0"),
        drawn("c1")
    ));
    // Elements of one list share a scale.
    add(&mut page, "position[]");
    page.wait("document.querySelectorAll('#plots-legend li').length === 3");
    page.wait("document.getElementById('plots-picture').dataset.bands === '2'");
    for left in [2, 1] {
        page.evaluate("document.querySelector('#plots-legend li:last-child button').click()");
        page.wait(&format!(
            "document.querySelectorAll('#plots-legend li').length === {left}"
        ));
    }
    // The page remembers the choice.
    page.call("Page.reload", json!({}));
    page.wait("document.querySelector('#plots-legend .value') && document.getElementById('plots-topic').value === '/joints'");
    page.evaluate("document.getElementById('plots').scrollIntoView()");
    page.wait(legend);
    // Without a curve, nobody takes the topic.
    page.evaluate("document.querySelector('#plots-legend button').click()");
    page.wait("!document.getElementById('plots-none').hidden");
    eventually("the topic is not taken any more", || {
        is_left_alone(&host, "/joints")
    });
    assert_eq!(browser.problems(), Vec::<String>::new());
}

#[test]
fn the_map_shows_cells_and_the_robot() {
    let host = Host::new();
    let web = Web::start(&host, &[]);
    let Some(mut browser) = Browser::start(&host.path("t")) else {
        return;
    };
    let grid = format!(
        "{{header: {{frame_id: map}}, info: {{resolution: 1.0, width: 4, height: 2, origin: {{position: {{x: -2, y: -1}}}}}}, data: {CELLS:?}}}"
    );
    let odometry = "{header: {frame_id: odom}, pose: {pose: {position: {x: 1.0, y: -0.75}, orientation: {z: 0.70711, w: 0.70711}}}, twist: {twist: {linear: {x: 0.4}}}}";
    let transform = "{transforms: [{header: {frame_id: map}, child_frame_id: odom, transform: {translation: {x: 0.25}, rotation: {w: 1}}}]}";
    let publish = |topic: &str, kind: &str, yaml: &str| {
        host.start(&["topic", "pub", topic, kind, yaml, "--rate", "10"])
    };
    let _publishers = [
        publish("/map", "nav_msgs/OccupancyGrid", &grid),
        publish("/odom", "nav_msgs/Odometry", odometry),
    ];
    let mut page = browser.open(&web.url(), DESK);
    page.wait("document.getElementById('map-topic').value === '/map'");
    page.evaluate("document.getElementById('map').scrollIntoView()");
    page.wait("document.getElementById('map-problem').textContent === 'no transform from odom to map: shown as if they were one'");
    page.wait("document.getElementById('map-facts').textContent.includes('x 1.00 m, y −0.75 m')");

    let _transforms = publish("/tf", "tf2_msgs/TFMessage", transform);
    page.wait("document.getElementById('map-problem').textContent === ''");
    for text in [
        "x 1.25 m, y −0.75 m",
        "heading 90°",
        "0.40 m/s",
        "4×2 cells of 100.0 cm",
    ] {
        page.wait(&format!(
            "document.getElementById('map-facts').textContent.includes('{text}')"
        ));
    }
    for theme in ["light", "dark"] {
        let features = json!([{ "name": "prefers-color-scheme", "value": theme }]);
        page.call("Emulation.setEmulatedMedia", json!({ "features": features }));
        for (i, cell) in (0u8..).zip(CELLS) {
            let (x, y) = (f64::from(i % 4) - 1.5, f64::from(i / 4) - 0.5);
            let name = match cell {
                0 => "free",
                100 => "wall",
                _ => "unknown",
            };
            page.wait(&format!("{} === '{name}'", colour_at(x, y)));
        }
        page.wait(&format!("{} === 'c0'", colour_at(1.25, -0.75)));
    }
    page.evaluate("document.getElementById('map-follow').click()");
    page.wait("document.getElementById('map-picture').dataset.x === '1.25'");
    // Nobody looks: nobody takes it.
    page.evaluate("document.getElementById('map').hidden = true");
    for topic in ["/map", "/odom", "/tf"] {
        eventually("the topic is not taken any more", || is_left_alone(&host, topic));
    }
    assert_eq!(browser.problems(), Vec::<String>::new());
}

#[test]
fn malformed_messages_are_refused_in_one_line() {
    let host = Host::new();
    let web = Web::start(&host, &[]);
    let Some(mut browser) = Browser::start(&host.path("t")) else {
        return;
    };
    let mut page = browser.open(&web.url(), DESK);
    page.wait("document.getElementById('plots-topic')");
    let read = |definition: &str, paths: &str, bytes: &str| {
        format!(
            "import('/decode.js').then(({{ layout }}) => {{
                const channel = {{ encoding: 'ros1', schemaName: 'a/A', schema: `{definition}` }};
                const bytes = new Uint8Array({bytes});
                try {{
                    return layout(channel).reader({paths})(new DataView(bytes.buffer));
                }} catch (error) {{
                    return error.message;
                }}
            }})"
        )
    };
    let parts = "B[] parts # some\nint16 X=7\nuint8[2] two\n====\nMSG: a/B\nstring name\nint16 at";
    let paths = "['parts[1].at', 'two[1]', 'parts[2].at']";
    let bytes = "[2, 0, 0, 0, 1, 0, 0, 0, 65, 3, 0, 0, 0, 0, 0, 255, 255, 8, 9]";
    assert_eq!(page.evaluate(&read(parts, paths, bytes)), json!([-1, 9, null]));
    for short in 0..19 {
        let bytes = format!("{bytes}.slice(0, {short})");
        assert_eq!(
            page.evaluate(&read(parts, paths, &bytes)),
            "the message is too short"
        );
    }
    let texts = "string[] texts\nuint8 end";
    for (definition, bytes, reported) in [
        ("A again", "[]", "the definition is nested too deeply"),
        ("B other", "[]", "the definition of a/B is missing"),
        ("uint8", "[]", "the definition has a line that is no field"),
        (
            texts,
            "[255, 255, 255, 255, 1, 0, 0, 0]",
            "the message is too short",
        ),
        (
            texts,
            "[255, 255, 255, 255, ...Array(1 << 23).fill(0)]",
            "the message has too many parts",
        ),
    ] {
        assert_eq!(
            page.evaluate(&read(definition, "['end']", bytes)),
            reported,
            "{definition}"
        );
    }
    assert_eq!(browser.problems(), Vec::<String>::new());
}
