//! The camera view shows H.264 from a key frame on, waits for the next one after a gap, and survives what is no video.

use super::browser::{Browser, Page};
use super::h264::{self, Kind, parameters, picture};
use super::map::choose;
use super::support::{Host, eventually};
use super::{DESK, Web};
use ropewalk::{BusConfig, Flavour, Node, Publisher, Registry, Schema};
use serde_json::{Value, json};
use std::time::Duration;

const WATCHDOG: Duration = Duration::from_secs(120);
/// How far a shown grey may be off.
const TOLERANCE: u64 = 3;

/// A publisher of video.
struct Source {
    publisher: Publisher,
    schema: Schema,
    /// The name of its field with the time.
    time: &'static str,
}

impl Source {
    fn new(node: &Node, topic: &str, schema: Schema) -> Source {
        let publisher = node.dynamic_publisher(topic, &schema).expect("publishes");
        let time = match schema.name() {
            "foxglove_msgs/CompressedVideo" => "timestamp",
            _ => "header",
        };
        Source {
            publisher,
            schema,
            time,
        }
    }

    /// Publishes a picture that was captured `at` seconds after 1970.
    fn publish(&self, at: u32, data: &[u8]) {
        let at = json!([at, 0]);
        let time = match self.time {
            "header" => json!({ "stamp": at }),
            _ => at,
        };
        let message = json!({ self.time: time, "format": "h264", "data": data });
        let message = self.schema.value_from_json(&message).expect("a message");
        self.publisher.publish_value(&message).expect("publishes");
    }

    fn wait_for_the_page(&self) {
        assert!(self.publisher.wait_for_subscribers(1, WATCHDOG), "nobody watches");
    }
}

fn compressed_video(flavour: Flavour) -> Schema {
    let mut registry = Registry::new(flavour);
    let time = match flavour {
        Flavour::Ros1 => "time",
        Flavour::Ros2 => "builtin_interfaces/Time",
    };
    let text = format!("{time} timestamp\nstring frame_id\nuint8[] data\nstring format\n");
    registry
        .add_message("foxglove_msgs/CompressedVideo", &text)
        .expect("a definition");
    registry.schema("foxglove_msgs/CompressedVideo").expect("a type")
}

/// Publishes ten key frames a second on a host's bus until the test ends.
pub(crate) fn start(host: &Host, topic: &str) {
    let node = Node::with_config("camera", BusConfig::new(host.path("bus"))).expect("a node");
    let camera = Source::new(&node, topic, compressed_video(Flavour::Ros1));
    std::thread::spawn(move || {
        for number in 0.. {
            camera.publish(number, &key(number % 2, 126));
            std::thread::sleep(Duration::from_millis(100));
        }
        drop(node);
    });
}

fn key(number: u32, grey: u8) -> Vec<u8> {
    [parameters(), picture(Kind::Idr(number), Some(grey))].concat()
}

/// Waits until the picture that was captured at this time is shown, and is of this grey.
fn shows(page: &mut Page, at: u32, grey: u64) {
    page.wait(&format!(
        "document.getElementById('camera-picture').dataset.stamp === '{at}'"
    ));
    let (width, height) = h264::PIXELS;
    let shown = page.evaluate(&format!(
        "(() => {{
            const canvas = document.getElementById('camera-picture');
            const {{ data }} = canvas.getContext('2d').getImageData(0, 0, {width}, {height});
            const colours = data.filter((_, i) => i % 4 < 3);
            return [canvas.width, canvas.height, Math.min(...colours), Math.max(...colours)];
        }})()"
    ));
    assert_eq!((&shown[0], &shown[1]), (&json!(width), &json!(height)));
    for of in [&shown[2], &shown[3]] {
        let value = of.as_u64().expect("a number");
        assert!(value.abs_diff(grey) <= TOLERANCE, "{shown} instead of {grey}");
    }
}

fn says(page: &mut Page, text: &str) {
    page.wait(&format!(
        "document.getElementById('camera-problem').textContent.includes('{text}')"
    ));
}

#[test]
fn video_is_shown_from_a_key_frame_on_and_never_past_a_gap() {
    let host = Host::new();
    let web = Web::start(&host, &[]);
    let Some(mut browser) = Browser::start(&host.path("t")) else {
        return;
    };
    let node = Node::with_config("camera", BusConfig::new(host.path("bus"))).expect("a node");
    let camera = Source::new(&node, "/camera/video", compressed_video(Flavour::Ros1));
    let mut page = browser.open(&web.url(), DESK);
    camera.wait_for_the_page();
    // It cannot begin in the middle.
    camera.publish(1, &picture(Kind::P(5), Some(60)));
    says(&mut page, "waiting for a key frame");
    camera.publish(2, &key(0, 235));
    shows(&mut page, 2, 255);
    page.wait("document.getElementById('camera-problem').textContent === ''");
    camera.publish(3, &picture(Kind::P(1), Some(126)));
    shows(&mut page, 3, 128);
    // A copy of the one before is shorter than what stands apart on the bus.
    camera.publish(4, &picture(Kind::P(2), None));
    shows(&mut page, 4, 128);
    // The third is missing.
    camera.publish(5, &picture(Kind::P(4), Some(60)));
    says(&mut page, "waiting for a key frame");
    camera.publish(6, &picture(Kind::P(5), Some(60)));
    // Anything except a picture changes nothing.
    for odd in [
        &[][..],
        &[0],
        &[0, 0, 1],
        &[0, 0, 1, 0x41],
        &[0, 0, 1, 0x65, 0x88],
        &[0, 0, 1, 0x67, 66, 0, 10, 0, 0, 0, 0, 0, 0, 0, 0],
        &[0xff; 1000],
        &[0, 0, 0, 1, 0x67, 0xff],
    ] {
        camera.publish(7, odd);
    }
    says(&mut page, "the picture is cut short");
    shows(&mut page, 4, 128);
    // A key frame without parameters of its own; those of before hold.
    camera.publish(8, &picture(Kind::Idr(1), Some(16)));
    shows(&mut page, 8, 0);
    // One whose slice is cut: whatever the decoder makes of it, the next one is shown.
    camera.publish(9, &key(2, 60)[..700]);
    let mut number = 2;
    eventually("the next key frame is shown", || {
        number += 1;
        camera.publish(10, &picture(Kind::Idr(number), Some(235)));
        let stamp = page.evaluate("document.getElementById('camera-picture').dataset.stamp");
        (stamp == "10").then_some(())
    });
    shows(&mut page, 10, 255);
    assert_eq!(browser.problems(), Vec::<String>::new());
}

#[test]
fn video_of_both_ros_versions_and_in_compressed_images_is_shown() {
    let host = Host::new();
    let web = Web::start(&host, &[]);
    let Some(mut browser) = Browser::start(&host.path("t")) else {
        return;
    };
    let node = Node::with_config("camera", BusConfig::new(host.path("bus"))).expect("a node");
    let compressed = |flavour| {
        Registry::new(flavour)
            .schema("sensor_msgs/CompressedImage")
            .expect("a type")
    };
    let cameras = [
        ("/a", compressed_video(Flavour::Ros2)),
        ("/b", compressed(Flavour::Ros1)),
        ("/c", compressed(Flavour::Ros2)),
    ];
    let cameras = cameras.map(|(topic, schema)| (topic, Source::new(&node, topic, schema)));
    let mut page = browser.open(&web.url(), DESK);
    page.wait("document.getElementById('camera-topic').options.length === 3");
    for (n, (topic, camera)) in (1..).zip(&cameras) {
        choose(&mut page, "camera-topic", topic);
        camera.wait_for_the_page();
        camera.publish(n, &key(0, 235));
        shows(&mut page, n, 255);
        camera.publish(n + 10, &picture(Kind::P(1), Some(16)));
        shows(&mut page, n + 10, 0);
        page.wait("document.getElementById('camera-facts').textContent.includes('h264 64×48')");
    }
    // The times of capture are of 1970: the page says so instead of counting from there.
    page.wait("document.getElementById('camera-stages-note').textContent.includes('Its times of capture are not from the')");
    for (stage, shown) in [
        ("bus", true),
        ("server", true),
        ("decode", true),
        ("draw", true),
        ("capture", false),
        ("link", false),
        ("all", false),
    ] {
        let found = page.evaluate(&format!(
            "document.querySelector('[data-stage={stage}] dd')?.textContent.endsWith(' ms') ?? false"
        ));
        assert_eq!(found, shown, "{stage}");
    }
    // A browser without a decoder says so.
    page.evaluate("delete window.VideoDecoder");
    choose(&mut page, "camera-topic", "/a");
    cameras[0].1.wait_for_the_page();
    cameras[0].1.publish(99, &key(0, 235));
    says(&mut page, "this browser has no WebCodecs");
    assert_eq!(browser.problems(), Vec::<String>::new());
}

#[test]
fn streams_are_read_and_their_mutants_too() {
    let host = Host::new();
    let web = Web::start(&host, &[]);
    let Some(mut browser) = Browser::start(&host.path("t")) else {
        return;
    };
    let mut page = browser.open(&web.url(), DESK);
    page.wait("document.getElementById('camera-topic')");
    let stream = [
        key(0, 60),
        picture(Kind::P(1), None),
        picture(Kind::P(2), None),
        picture(Kind::Idr(1), Some(60)),
    ];
    let run = |page: &mut Page, body: &str| {
        page.evaluate(&format!(
            "import('/h264.js').then(({{ Order, units }}) => {{
                const stream = {stream:?}.map((bytes) => new Uint8Array(bytes));
                {body}
            }})"
        ))
    };
    assert_eq!(
        run(&mut page, "return units(stream[0]).map(({ type }) => type);"),
        json!([7, 8, 5])
    );
    // Of each picture whether it is a key frame; null where one is waited for.
    let passes = |page: &mut Page, pictures: &str| -> Value {
        run(
            page,
            &format!(
                "const order = new Order();
                return {pictures}.map(([i, at]) => order.take(stream[i], at)?.isKey ?? null);"
            ),
        )
    };
    let [yes, no, wait] = [json!(true), json!(false), Value::Null];
    assert_eq!(
        passes(&mut page, "[[1, 0], [0, 1], [1, 2], [2, 3]]"),
        json!([wait, yes, no, no])
    );
    assert_eq!(
        passes(&mut page, "[[0, 1], [2, 3], [1, 4], [0, 5], [1, 6]]"),
        json!([yes, wait, wait, yes, no])
    );
    assert_eq!(
        run(&mut page, "return new Order().take(stream[0], 0).codec;"),
        "avc1.42c00a"
    );
    // Parameters of before go into a key frame without them, behind its delimiter.
    assert_eq!(
        run(
            &mut page,
            "const order = new Order();
            order.take(stream[0], 0);
            const bytes = new Uint8Array([0, 0, 0, 1, 9, 16, ...stream[3]]);
            return units(order.take(bytes, 1).data).map(({ type }) => type);"
        ),
        json!([9, 7, 8, 5])
    );
    // A pause in which 16 pictures may be missing, after which the numbers are the same again.
    assert_eq!(
        passes(&mut page, "[[0, 1], [1, 2], [2, 17]]"),
        json!([yes, no, no])
    );
    assert_eq!(
        passes(&mut page, "[[0, 1], [1, 2], [2, 19]]"),
        json!([yes, no, wait])
    );
    // Cut anywhere, and changed anywhere: an answer, or an error that says what is wrong.
    let kept = run(
        &mut page,
        "let [state, ours] = [1, 0];
        const random = (most) => (state = (state * 48271) % 2147483647) % most;
        const take = (order, bytes) => {
            try {
                order.take(bytes, 0);
            } catch (error) {
                if (!/^the (picture|parameters) (is|are) (cut short|damaged)$/.test(error.message)) throw error;
                ours++;
            }
        };
        for (let n = 0; n < 120; n++) take(new Order(), stream[0].subarray(0, n));
        for (let n = 0; n < 20000; n++) {
            const order = new Order();
            for (const bytes of stream) {
                const mutant = bytes.slice(0, random(120));
                for (let i = random(4); i > 0; i--) mutant[random(mutant.length + 1)] = random(256);
                take(order, mutant);
            }
        }
        return ours;",
    );
    assert!(kept.as_u64() > Some(100), "{kept}");
    assert_eq!(browser.problems(), Vec::<String>::new());
}
