//! A subscriber that waits for a topic that nobody publishes says so, once.
#![allow(missing_docs)]

use ropewalk::msgs::std_msgs::{Bool, String as Text};
use ropewalk::{BusConfig, Node, Subscriber};
use std::time::Duration;

/// A bit longer than a subscriber waits before it warns.
const WAIT: Duration = Duration::from_millis(5200);

#[test]
fn a_subscriber_that_waits_in_vain_warns_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let node = Node::with_config("tests", BusConfig::new(folder.path())).expect("a node");
    let _silent = node.publisher::<Text>("/silent").expect("a publisher");
    let spoken = node.publisher::<Text>("/spoken").expect("a publisher");
    let subscriber = |topic| node.subscriber::<Text>(topic).expect("a subscriber");
    let warnings = |subscriber: &Subscriber<Text>| {
        let mut all = Vec::new();
        for timeout in [WAIT, Duration::from_millis(1)] {
            let taken = subscriber.take_or_warn(timeout, |text| all.push(text.to_owned()));
            assert!(taken.expect("takes").is_none());
        }
        all
    };
    let (misspelt, silent, gone) = (
        subscriber("/silnet"),
        subscriber("/silent"),
        subscriber("/spoken"),
    );
    let other = node.subscriber::<Bool>("/silent").expect("a subscriber");
    // A publisher that is gone was no mistake.
    assert!(spoken.wait_for_subscribers(1, Duration::from_secs(60)));
    spoken.publish(&Text::default()).expect("published");
    let first = gone.take_timeout(Duration::from_secs(60));
    assert!(first.expect("takes").is_some());
    drop(spoken);

    let [misspelt, silent, gone] = std::thread::scope(|scope| {
        let all = [&misspelt, &silent, &gone].map(|s| scope.spawn(move || warnings(s)));
        all.map(|warned| warned.join().expect("no panic"))
    });
    let wanted = "still waiting: nobody published /silnet within 5s (did you mean /silent?); \
                  `ropewalk topic list` shows what there is";
    assert_eq!(misspelt, [wanted]);
    assert!(silent.is_empty() && gone.is_empty(), "{silent:?}, {gone:?}");

    let mut refused = None;
    let taken = other.take_or_warn(Duration::from_millis(1), |text| refused = Some(text.to_owned()));
    assert!(taken.expect("takes").is_none());
    let refused = refused.expect("a warning");
    assert!(refused.starts_with("no publisher of /silent fits: "), "{refused}");
}
