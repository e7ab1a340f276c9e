//! A message with every kind of field.

use crate::{r2r, ros2_rust, runtime};

/// Its definition.
pub(crate) const EVERYTHING: &str = "bool[3] bools
bool[] flags
byte a_byte
char a_char
int8 small
int64 large
uint64[] larger
uint16[4] words
float32[<=4] bounded
string<=5 name
string[2] names
string[<=3] tags
wstring wide
wstring<=4 short
wstring[] wides
builtin_interfaces/Time stamp
builtin_interfaces/Duration[] durations
Nested[2] pair
Nested[<=2] some
Inner[] inners
float64[36] covariance
std_msgs/Empty nothing
std_msgs/Empty[] nothings
int32 type
";

/// One such message, as text.
const YAML: &str = "{bools: [true, false, true], flags: [false, true], a_byte: 200, a_char: 65, small: -1, large: -9000000000,
larger: [18446744073709551615, 1], words: [1, 2, 3, 65535], bounded: [0.5, -2], name: abcde, names: [x, ''], tags: [t],
wide: 'ü𝄞', short: abcd, wides: ['', w], stamp: {sec: 1, nanosec: 2}, durations: [{sec: -3, nanosec: 4}],
pair: [{name: one, inner: {a: 1, b: 1.5, c: -1}, flags: [true]}, {}], some: [{name: two, flags: [false, true]}],
inners: [{a: 3, b: 0.25, c: 4}, {a: 5, b: -1, c: 6}], covariance: COVARIANCE, nothings: [{}, {}], type: 7}";

pub(crate) fn yaml() -> String {
    YAML.replace("COVARIANCE", &format!("{:?}", covariance()))
}

fn covariance() -> [f64; 36] {
    std::array::from_fn(|i| i as f64 / 4.0)
}

pub(crate) fn everything_of_r2r() -> r2r::test_msgs::Everything {
    use r2r::builtin_interfaces::Time;
    use r2r::test_msgs::{Inner, Nested};
    let nested = |name: &str, inner, flags: &[bool]| Nested {
        name: name.into(),
        inner,
        flags: flags.into(),
    };
    r2r::test_msgs::Everything {
        bools: vec![true, false, true],
        flags: vec![false, true],
        a_byte: 200,
        a_char: b'A',
        small: -1,
        large: -9_000_000_000,
        larger: vec![u64::MAX, 1],
        words: vec![1, 2, 3, 65535],
        bounded: vec![0.5, -2.0],
        name: "abcde".into(),
        names: vec!["x".into(), String::new()],
        tags: vec!["t".into()],
        wide: "ü𝄞".into(),
        short: "abcd".into(),
        wides: vec![String::new(), "w".into()],
        stamp: Time { sec: 1, nanosec: 2 },
        durations: vec![Time { sec: -3, nanosec: 4 }],
        pair: vec![
            nested("one", Inner { a: 1, b: 1.5, c: -1 }, &[true]),
            Nested::default(),
        ],
        some: vec![nested("two", Inner::default(), &[false, true])],
        inners: vec![Inner { a: 3, b: 0.25, c: 4 }, Inner { a: 5, b: -1.0, c: 6 }],
        covariance: covariance().into(),
        nothing: r2r::std_msgs::Empty {},
        nothings: vec![r2r::std_msgs::Empty {}; 2],
        type_: 7,
    }
}

pub(crate) fn everything_of_ros2_rust() -> ros2_rust::test_msgs::Everything {
    use ros2_rust::builtin_interfaces::{Duration, Time};
    use ros2_rust::test_msgs::{Inner, Nested, rmw};
    use runtime::{BoundedSequence, BoundedString, BoundedWString, Sequence};
    let one = Nested {
        name: "one".into(),
        inner: Inner { a: 1, b: 1.5, c: -1 },
        flags: vec![true],
    };
    let two = rmw::Nested {
        name: "two".into(),
        inner: Inner::default(),
        flags: Sequence(vec![false, true]),
    };
    ros2_rust::test_msgs::Everything {
        bools: [true, false, true],
        flags: vec![false, true],
        a_byte: 200,
        a_char: b'A',
        small: -1,
        large: -9_000_000_000,
        larger: vec![u64::MAX, 1],
        words: [1, 2, 3, 65535],
        bounded: BoundedSequence(Sequence(vec![0.5, -2.0])),
        name: BoundedString("abcde".into()),
        names: ["x".into(), String::new()],
        tags: BoundedSequence(Sequence(vec!["t".into()])),
        wide: "ü𝄞".into(),
        short: BoundedWString("abcd".into()),
        wides: vec![String::new(), "w".into()],
        stamp: Time { sec: 1, nanosec: 2 },
        durations: vec![Duration { sec: -3, nanosec: 4 }],
        pair: [one, Nested::default()],
        some: BoundedSequence(Sequence(vec![two])),
        inners: vec![Inner { a: 3, b: 0.25, c: 4 }, Inner { a: 5, b: -1.0, c: 6 }],
        covariance: covariance(),
        nothing: ros2_rust::std_msgs::Empty::default(),
        nothings: vec![ros2_rust::std_msgs::Empty::default(); 2],
        type_: 7,
    }
}
