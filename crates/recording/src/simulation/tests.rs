use super::*;

#[test]
fn the_same_seed_gives_the_same_drive_and_another_does_not() {
    let drive = |seed| generate(0.3, seed).collect::<Vec<_>>();
    assert_eq!(drive(1), drive(1));
    assert_ne!(drive(1), drive(2));
}
