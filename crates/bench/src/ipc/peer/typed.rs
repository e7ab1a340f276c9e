//! Images as generated structures.

use crate::kit::part::PeerError;
use bus::Loan;
use ropewalk::msgs::std_msgs::Header;
use ropewalk::typed::{self, Bulk};
use ropewalk::{Message, Publisher};

pub(super) use ropewalk::msgs::sensor_msgs::Image;

/// Returns an image whose `data` has `size` bytes, the same as that of the peer in C++.
pub(super) fn image(size: usize) -> Result<Image<'static>, PeerError> {
    let width = u32::try_from(size).map_err(|e| PeerError::Type(format!("sensor_msgs/Image: {e}")))?;
    Ok(Image {
        header: Header {
            frame_id: "camera".into(),
            ..Header::default()
        },
        height: 1,
        width,
        encoding: "mono8".into(),
        step: width,
        data: Bulk::Sized(size),
        ..Image::default()
    })
}

/// Returns a block with all of `image` except its data, which are data part 0.
pub(super) fn loan(publisher: &Publisher, image: &Image<'_>) -> Result<Loan, PeerError> {
    let loan = typed::loan(image, |control, parts| publisher.loan(control, parts))?;
    Ok(loan.into_inner())
}

/// Reads all fields.
pub(super) fn read(message: &Message) -> Result<Image<'_>, PeerError> {
    Ok(typed::read(message)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::part::control_part;

    #[test]
    fn structures_and_the_control_part_made_beforehand_are_the_same_image() {
        let schema = typed::schema::<Image<'_>>().expect("generated");
        let control = control_part(&schema, 1, 5000, "mono8", 5000).expect("an image");
        let data = [7; 5000];
        let read: Image<'_> = typed::from_parts(&control, vec![&data]).expect("an image");
        let made = Image {
            data: Bulk::Part(&data),
            ..image(5000).expect("fits")
        };
        assert_eq!(read, made);
    }
}
