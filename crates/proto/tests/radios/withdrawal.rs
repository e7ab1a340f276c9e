//! Topics that end and come back as something else.

use crate::common::*;
use proto::*;
use std::time::Duration;

const RUN: Duration = Duration::from_secs(2);

#[test]
fn a_withdrawn_topic_ends_at_the_peer_and_comes_back_under_its_number() {
    let mut w = Setup::hops(1).build();
    // Losses of announcements and answers are made up for.
    w.faults.loss = 0.2;
    let id = w.source(0, topic("/image", 10, 2), ms(50), RUN, fixed(50, 31_950));
    w.run(Duration::from_millis(1_510));
    let stats = |w: &World| w.nodes[0].radio.topic_stats(id).expect("a topic");
    assert_eq!(stats(&w).state, TopicState::Ready);
    let now = w.now;
    w.nodes[0].radio.withdraw_topic(now, id).expect("a topic");
    w.check_books();
    assert_eq!((stats(&w).state, stats(&w).queued), (TopicState::Withdrawn, 0));
    // The source continues, but nothing of it is sent.
    let sent = stats(&w).sent;
    w.run(RUN);
    assert_eq!(stats(&w).sent, sent);
    assert!(stats(&w).drops.count(stats::DropReason::Unannounced) > 5);
    let far = &w.nodes[1];
    assert_eq!(far.sink.withdrawn, [RemoteTopic(id.0)]);
    assert_eq!(far.sink.open(), 0, "nothing half-received is kept");
    w.check_books();

    let again = TopicConfig {
        type_name: "pkg/Other".into(),
        ..topic("/image", 20, 2)
    };
    let now = w.now;
    let n = &mut w.nodes[0];
    assert_eq!(n.radio.add_topic(now, n.peer, again), Ok(id));
    w.again(0, 20, ms(100));
    w.run(RUN + RUN);
    let far = &w.nodes[1];
    assert_eq!(far.sink.names[&RemoteTopic(id.0)].type_name, "pkg/Other");
    assert_eq!(stats(&w).state, TopicState::Ready);
    assert!(stats(&w).sent > sent);
    w.check_books();
}

#[test]
fn a_new_session_does_not_learn_of_withdrawn_topics() {
    let setup = Setup::hops(1);
    let mut w = setup.build();
    let gone = w.source(0, topic("/gone", 10, 2), ms(50), RUN, fixed(50, 950));
    w.source(0, topic("/kept", 10, 2), ms(50), RUN + RUN, fixed(50, 950));
    w.run(RUN);
    w.kill(1);
    let now = w.now;
    w.nodes[0].radio.withdraw_topic(now, gone).expect("a topic");
    w.start(1, &setup, 9);
    w.nodes[1].sink.names.clear();
    w.run(RUN);
    let names: Vec<_> = w.nodes[1].sink.names.values().map(|a| a.name.clone()).collect();
    assert_eq!(names, ["/kept"]);
    assert!(w.nodes[1].sink.withdrawn.is_empty());
    let (node, unknown) = (&mut w.nodes[0], TopicId(99));
    assert!(node.radio.withdraw_topic(w.now, unknown).is_err());
    w.check_books();
}
