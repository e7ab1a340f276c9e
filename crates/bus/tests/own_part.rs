//! Data parts that their reader may write to.
#![allow(missing_docs)]

mod common;

use bus::{PublisherOptions, Stamp, SubscriberOptions};
use common::{LONG, bus, folder, topic};

const LEN: usize = 300_000;

#[test]
fn what_a_reader_writes_is_its_own() {
    let dir = folder();
    let (there, here) = (bus(&dir), bus(&dir));
    let publisher = there
        .publisher(topic("/image"), PublisherOptions::default())
        .unwrap();
    let subscriber = here
        .subscriber(topic("/image"), SubscriberOptions::default())
        .unwrap();
    assert!(publisher.wait_for_subscribers(1, LONG));
    for round in 0..40u8 {
        let mut loan = publisher.loan(16, &[LEN, 0, 64]).unwrap();
        loan.part_mut(0).fill(round);
        loan.part_mut(2).fill(!round);
        publisher.publish(loan, Stamp::default()).unwrap();
        let message = subscriber.take().unwrap().expect("a message");
        let (long, short) = (message.own_part(0).unwrap(), message.own_part(2).unwrap());
        assert_eq!((long.len(), short.len()), (LEN, 64));
        assert!(message.own_part(1).is_err(), "it is empty");
        assert!(message.own_part(3).is_err(), "there is none");
        // SAFETY: memory of that length that is nobody else's, as long as `long` lives.
        let bytes = unsafe { std::slice::from_raw_parts_mut(long.as_ptr(), LEN) };
        assert!(bytes.iter().all(|b| *b == round), "of the message before");
        bytes[..5000].fill(0xEE);
        assert_eq!(
            message.part(0).bytes()[0],
            round,
            "others read what was published"
        );
        // SAFETY: likewise.
        let short = unsafe { std::slice::from_raw_parts(short.as_ptr(), 64) };
        assert!(short.iter().all(|b| *b == !round));
        drop(message);
        assert_eq!(bytes[0], 0xEE);
    }
}
