//! Finds H.264 pictures that cannot be decoded without the previous one (decision 354).

use ropewalk::{Message, Value};
use schema::Numbers;

/// Maximum number of pictures of one topic that wait for a client: a third of a second at 30 Hz. The page's decoder has
/// the same limit.
pub(crate) const KEEP: usize = 10;
/// Types of messages with one picture each.
const TYPES: [&str; 2] = ["foxglove_msgs/CompressedVideo", "sensor_msgs/CompressedImage"];
/// The first slice must begin within this many bytes; the units before it are short.
const LOOKED: usize = 16 << 10;

/// Whether an H.264 picture refers to the previous one; `None` if the message is not an H.264 picture.
pub(crate) fn follows(message: &Message) -> Option<bool> {
    if !TYPES.contains(&message.schema().name()) {
        return None;
    }
    let small = message.small_value().ok()?;
    let fields = small.as_message()?;
    let format = fields.field("format")?.as_str()?;
    if !format.to_ascii_lowercase().contains("h264") {
        return None;
    }
    match (message.part_count(), fields.field("data")) {
        (1, _) => Some(refers(message.part(0).bytes())),
        (_, Some(Value::Numbers(Numbers::U8(data)))) => Some(refers(data)),
        _ => None,
    }
}

/// Whether a picture in Annex B (ITU-T H.264, table 7-1) begins with a slice that needs other pictures, without
/// parameters or an IDR slice before it.
fn refers(data: &[u8]) -> bool {
    let mut rest = &data[..data.len().min(LOOKED)];
    while let Some(at) = rest.windows(3).position(|w| w == [0, 0, 1]) {
        rest = &rest[at + 3..];
        match rest.first().map(|head| head & 0x1f) {
            Some(1..=4) => return true,
            Some(5 | 7) => return false,
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_refer_unless_parameters_or_an_idr_slice_come_first() {
        for (data, expected) in [
            (&[0, 0, 0, 1, 0x41, 0x9a][..], true),
            (&[0, 0, 1, 9, 0x10, 0, 0, 1, 0x01, 1], true),
            (&[0, 0, 0, 1, 0x65, 0x88], false),
            (&[0, 0, 1, 9, 0x10, 0, 0, 0, 1, 0x67, 0x42, 0, 0, 1, 0x41], false),
            (&[0, 0, 1], false),
            (&[0xff, 0xd8, 0xff], false),
            (&[], false),
        ] {
            assert_eq!(refers(data), expected, "{data:?}");
        }
        let late = [&[7; LOOKED][..], &[0, 0, 1, 0x41]].concat();
        assert!(!refers(&late));
    }
}
