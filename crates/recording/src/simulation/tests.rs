use super::world::{FURNITURE, ROOM};
use super::*;

fn drive(seconds: f64, seed: u64) -> Vec<Message> {
    generate(seconds, seed).collect()
}

#[test]
fn the_same_seed_gives_the_same_drive_and_another_does_not() {
    assert_eq!(drive(0.3, 1), drive(0.3, 1));
    assert_ne!(drive(0.3, 1), drive(0.3, 2));
}

#[test]
fn rates_sizes_and_order_are_those_of_a_robot() {
    let messages = drive(3.0, 1);
    assert!(messages.is_sorted_by_key(|message| message.log_time));
    let of = |channel| {
        messages
            .iter()
            .filter(move |message| message.channel == ChannelId(channel))
    };
    assert_eq!(of(definitions::SCAN).count(), 90);
    assert_eq!(of(definitions::TF).count(), 240);
    assert_eq!(of(definitions::IMAGE).count(), 20);
    assert!(of(definitions::SCAN).all(|message| (2_600..2_660).contains(&message.data.len())));
    let tf: Vec<usize> = of(definitions::TF).map(|message| message.data.len()).collect();
    assert_eq!(
        (tf.iter().min(), tf.iter().max().is_some_and(|most| *most >= 900)),
        (Some(&93), true)
    );
    let mean = of(definitions::IMAGE)
        .map(|message| message.data.len())
        .sum::<usize>()
        / 20;
    assert!((60_000..95_000).contains(&mean), "{mean}");
    let bits = messages
        .iter()
        .map(|message| message.data.len() * 8)
        .sum::<usize>() as f64
        / 3.0;
    assert!((4.2e6..5.8e6).contains(&bits), "{bits} bit/s");
}

#[test]
fn the_robot_keeps_clear_of_everything_and_the_person() {
    for seed in 0..4 {
        let world = World::new(&mut Random::new(seed));
        for step in 0..2_000 {
            let seconds = f64::from(step) * 0.05;
            let pose = world.robot(seconds);
            let walls = pose.x.min(ROOM.0 - pose.x).min(pose.y).min(ROOM.1 - pose.y);
            assert!(walls > 0.4, "{pose:?}");
            for solid in FURNITURE {
                assert!(
                    solid.footprint.distance(pose.x, pose.y) > 0.3,
                    "{pose:?} {solid:?}"
                );
            }
            let (person, _) = world.person(seconds);
            assert!(
                (person.x - pose.x).hypot(person.y - pose.y) > 0.5,
                "{pose:?} {person:?}"
            );
            for solid in FURNITURE {
                assert!(
                    solid.footprint.distance(person.x, person.y) > 0.15,
                    "{person:?} {solid:?}"
                );
            }
        }
    }
}

#[test]
fn the_robot_moves_smoothly_as_its_wheels_allow() {
    let world = World::new(&mut Random::new(5));
    let step = 0.01;
    for index in 0..3_000 {
        let (a, b) = (
            world.robot(f64::from(index) * step),
            world.robot(f64::from(index + 1) * step),
        );
        let way = (b.x - a.x).hypot(b.y - a.y);
        assert!((way / step - 0.55).abs() < 0.01, "{} m/s", way / step);
        // Forwards, never aside.
        let heading = (b.y - a.y).atan2(b.x - a.x);
        assert!((heading - a.heading).sin().abs() < 0.01, "{a:?} {b:?}");
    }
}

#[test]
fn the_laser_measures_the_room() {
    let world = World::new(&mut Random::new(1));
    let pose = world::Pose {
        x: 4.0,
        y: 1.6,
        heading: 0.0,
    };
    // Ahead the cabinet's neighbour wall, to the right the low bookshelf, to the left the island.
    assert!((world.range(4.0, 1.6, 0.0, 0.0) - 4.0).abs() < 1e-9);
    assert!((world.range(4.0, 1.6, -std::f64::consts::FRAC_PI_2, 0.0) - 1.26).abs() < 1e-9);
    assert!((world.range(4.0, 1.6, std::f64::consts::FRAC_PI_2, 0.0) - 0.95).abs() < 1e-9);
    let ranges = lidar::scan(&world, pose, 0.0, &mut Random::new(2));
    assert_eq!(ranges.len(), lidar::BEAMS);
    let ahead = ranges[lidar::BEAMS / 2];
    assert!((ahead - 3.88).abs() < 0.1 || ahead.is_infinite(), "{ahead}");
    let finite = ranges.iter().filter(|range| range.is_finite()).count();
    assert!(finite > 600, "{finite}");
}

#[test]
fn pictures_are_jpegs_of_the_size_that_they_say_and_show_something() {
    let image = generate(0.2, 1)
        .find(|message| message.channel == ChannelId(definitions::IMAGE))
        .expect("one");
    // Header, "camera_optical", "jpeg", length.
    let jpeg = &image.data[12 + 4 + 14 + 4 + 4 + 4..];
    assert!(jpeg.starts_with(&[0xff, 0xd8]) && jpeg.ends_with(&[0xff, 0xd9]));
    let frame = jpeg
        .windows(2)
        .position(|marker| marker == [0xff, 0xc0])
        .expect("a frame header");
    let size = |at: usize| usize::from(u16::from_be_bytes([jpeg[frame + at], jpeg[frame + at + 1]]));
    assert_eq!((size(5), size(7)), (camera::HEIGHT, camera::WIDTH));
}

#[test]
fn odometry_drifts_but_not_far() {
    let mut random = Random::new(1);
    let world = World::new(&mut random);
    let mut odometry = Odometry::default();
    let start = world.robot(0.0);
    let mut believed = world::Pose::default();
    for step in 0..2_000 {
        believed = odometry.advance(world.robot(f64::from(step) / 80.0), &mut random);
    }
    let end = world.robot(1_999.0 / 80.0);
    let way = (end.x - start.x).hypot(end.y - start.y);
    let error = (believed.x.hypot(believed.y) - way).abs();
    assert!(error > 0.0 && error < 0.5, "{error}");
}

#[test]
fn nonsense_durations_give_nothing() {
    assert_eq!(drive(0.0, 1).len(), 0);
    assert_eq!(drive(-1.0, 1).len(), 0);
    assert_eq!(drive(f64::NAN, 1).len(), 0);
}
