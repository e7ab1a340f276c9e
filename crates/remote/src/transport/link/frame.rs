//! The form of a frame in a block: the message `uint8[] data` (`docs/wire/control-part.md`).

use ::link::direct::Content;
use ropewalk::Loan;

/// Frames of this many bytes or more are a data part.
const PART_FROM: usize = 256;
/// Flag of a count word: the elements are a data part.
const LIFTED: u32 = 1 << 31;
const COUNT: usize = 4;

/// Maximum length of a frame: a link's longest message, minus the overhead of the layers around a frame.
pub(super) const MAX: usize = (64 << 20) - 4096;

/// Writes a frame into a block that `take` returns for a control part and data parts of these lengths.
pub(super) fn write<E>(
    frame: &[u8],
    take: impl FnOnce(usize, &[usize]) -> Result<Loan, E>,
) -> Result<Loan, E> {
    // Frames are bounded by `MAX`.
    let count = frame.len() as u32;
    if frame.len() < PART_FROM {
        let mut loan = take(COUNT + frame.len(), &[])?;
        let (head, data) = loan.control_mut().split_at_mut(COUNT);
        head.copy_from_slice(&count.to_le_bytes());
        data.copy_from_slice(frame);
        return Ok(loan);
    }
    let mut loan = take(COUNT, &[frame.len()])?;
    loan.control_mut()
        .copy_from_slice(&(count | LIFTED).to_le_bytes());
    loan.part_mut(0).copy_from_slice(frame);
    Ok(loan)
}

/// A block that contains no frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected one `uint8[] data`, got a control part of {control} B and {parts} data parts")]
pub(super) struct Malformed {
    control: usize,
    parts: usize,
}

/// A block's content.
pub(super) trait Block {
    /// The control part, which can no longer change.
    fn control(&self) -> &[u8];
    /// Number of data parts.
    fn parts(&self) -> usize;
    /// Length of the first data part.
    fn part_len(&self) -> usize;
    /// Copies the first data part, which a hostile publisher may be writing.
    fn copy(&self, to: &mut [u8]);
}

impl Block for bus::Message {
    fn control(&self) -> &[u8] {
        bus::Message::control(self)
    }

    fn parts(&self) -> usize {
        self.part_count()
    }

    fn part_len(&self) -> usize {
        self.part(0).len()
    }

    fn copy(&self, to: &mut [u8]) {
        self.part(0).copy_to(0, to);
    }
}

impl Block for ropewalk::Message {
    fn control(&self) -> &[u8] {
        ropewalk::Message::control(self)
    }

    fn parts(&self) -> usize {
        self.part_count()
    }

    fn part_len(&self) -> usize {
        self.part(0).len()
    }

    fn copy(&self, to: &mut [u8]) {
        self.part(0).copy_to(0, to);
    }
}

/// Splits a frame into a control part, and a data part if it needs one.
pub(super) fn parts(frame: &[u8]) -> (Vec<u8>, Option<&[u8]>) {
    // Frames are bounded by `MAX`.
    let count = frame.len() as u32;
    match frame.len() < PART_FROM {
        true => ([&count.to_le_bytes(), frame].concat(), None),
        false => ((count | LIFTED).to_le_bytes().to_vec(), Some(frame)),
    }
}

/// Finds the frame: whether it is the data part, and its length.
fn find(control: &[u8], parts: usize, part_len: usize) -> Result<(bool, usize), Malformed> {
    let malformed = Malformed {
        control: control.len(),
        parts,
    };
    let (head, data) = control.split_first_chunk::<COUNT>().ok_or(malformed)?;
    let count = u32::from_le_bytes(*head);
    let len = (count & !LIFTED) as usize;
    match (count & LIFTED != 0, parts) {
        (false, 0) if data.len() == len => Ok((false, len)),
        (true, 1) if data.is_empty() && part_len == len && len <= MAX => Ok((true, len)),
        _ => Err(malformed),
    }
}

/// Copies the frame of a block into `buffer`, which grows as needed and is reused: the block's publisher may be
/// hostile.
pub(super) fn read<'a>(block: &impl Block, buffer: &'a mut Vec<u8>) -> Result<&'a [u8], Malformed> {
    let control = block.control();
    let (is_part, len) = find(control, block.parts(), block.part_len())?;
    if buffer.len() < len {
        buffer.resize(len, 0);
    }
    let to = &mut buffer[..len];
    match is_part {
        false => to.copy_from_slice(&control[COUNT..]),
        true => block.copy(to),
    }
    Ok(to)
}

/// Returns the frame of content in this program's own memory.
pub(super) fn of<'a>(content: &Content<'a>) -> Result<&'a [u8], Malformed> {
    let (control, part) = (content.control(), content.part(0));
    let (is_part, _) = find(control, content.part_count(), part.len())?;
    Ok(match is_part {
        true => part,
        false => &control[COUNT..],
    })
}

/// Any bytes as a block. The first bytes give the length of the control part and the number of parts.
pub(crate) fn fuzz(bytes: &[u8]) {
    let Some((first, rest)) = bytes.split_first() else {
        return;
    };
    let (control, part) = rest.split_at(usize::from(first >> 2).min(rest.len()));
    if let Ok((is_part, len)) = find(control, usize::from(first & 3), part.len()) {
        let there = if is_part {
            part.len()
        } else {
            control.len() - COUNT
        };
        assert_eq!(len, there, "a frame is all that is there");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    struct Made(Vec<u8>, Vec<Vec<u8>>);

    impl Block for Made {
        fn control(&self) -> &[u8] {
            &self.0
        }

        fn parts(&self) -> usize {
            self.1.len()
        }

        fn part_len(&self) -> usize {
            self.1.first().map_or(0, Vec::len)
        }

        fn copy(&self, to: &mut [u8]) {
            to.copy_from_slice(&self.1[0]);
        }
    }

    #[test]
    fn a_frame_is_read_as_it_is_written_and_as_the_schema_has_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let node = ropewalk::Node::with_config("test", bus::BusConfig::new(folder.path())).expect("a node");
        let schema = super::super::types::telemetry(50).expect("a type");
        let publisher = node.dynamic_publisher("/t", &schema).expect("a publisher");
        let subscriber = node.dynamic_subscriber("/t", &schema).expect("a subscriber");
        assert!(publisher.wait_for_subscribers(1, std::time::Duration::from_secs(30)));
        let mut buffer = Vec::new();
        for len in [0, 1, 255, 256, 257, 70_000, 3] {
            let frame: Vec<u8> = (0..len).map(|i| i as u8).collect();
            let loan = write(&frame, |c, p| publisher.loan(c, p)).expect("a loan");
            publisher.publish(loan).expect("publishes");
            let message = subscriber
                .take_timeout(std::time::Duration::from_secs(30))
                .expect("takes")
                .expect("a message");
            assert_eq!(read(&message, &mut buffer), Ok(&*frame));
            let ros1 = message.ros1().expect("is of its type");
            assert_eq!(ros1[4..], frame, "{len}");
        }
    }

    #[test]
    fn invalid_frames_are_refused() {
        let mut buffer = Vec::new();
        let lifted = |n: u32| (n | LIFTED).to_le_bytes().to_vec();
        for (control, parts) in [
            (vec![], vec![]),
            (vec![0, 0, 0], vec![]),
            (vec![1, 0, 0, 0], vec![]),
            (vec![0, 0, 0, 0, 9], vec![]),
            (vec![0, 0, 0, 0], vec![vec![]]),
            (lifted(3), vec![]),
            (lifted(3), vec![vec![1, 2]]),
            (lifted(3), vec![vec![1, 2, 3], vec![]]),
            (lifted(u32::MAX), vec![vec![1, 2, 3]]),
            ([lifted(3), vec![1]].concat(), vec![vec![1, 2, 3]]),
        ] {
            let made = Made(control.clone(), parts.clone());
            assert!(read(&made, &mut buffer).is_err(), "{control:?} {parts:?}");
        }
    }

    proptest! {
        #[test]
        fn any_block_gives_a_frame_or_an_error(
            control in proptest::collection::vec(any::<u8>(), 0..20),
            parts in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..20), 0..3),
        ) {
            let (made, mut buffer) = (Made(control, parts), Vec::new());
            let whole: usize = made.0.len() + made.1.iter().map(Vec::len).sum::<usize>();
            if let Ok(frame) = read(&made, &mut buffer) {
                prop_assert_eq!(frame.len() + COUNT, whole);
            }
        }
    }
}
