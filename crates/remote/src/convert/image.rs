//! Images.

use super::read::{Reader, bad};
use super::write::Writer;
use super::{ConvertError, Ros};
use crate::types::Image;
use std::borrow::Cow;

/// Both have the same fields. From ROS, the pixels are copied once; to ROS, they are borrowed.
impl Ros for Image {
    const NAME: &'static str = "Image";
    const TYPES: &'static [&'static str] = &["sensor_msgs/Image"];

    fn read(_: &str, from: &mut Reader<'_>) -> Result<Self, ConvertError> {
        Ok(Image {
            header: Some(from.header()?),
            height: from.word("height")?,
            width: from.word("width")?,
            encoding: from.text("encoding")?,
            is_bigendian: from.word::<u8>("is_bigendian")?.into(),
            step: from.word("step")?,
            data: from.bytes("data", 1)?.to_vec(),
        })
    }

    fn write<'a>(&'a self, _: &str, to: &mut Writer<'a>) {
        to.header(self.header.as_ref());
        to.word(self.height);
        to.word(self.width);
        to.text("encoding", &self.encoding);
        match u8::try_from(self.is_bigendian) {
            Ok(byte) => to.byte(byte),
            Err(_) => to.fail(bad(
                "is_bigendian",
                format!("{} does not fit into a byte", self.is_bigendian),
            )),
        }
        to.word(self.step);
        to.bytes("data", 1, Cow::Borrowed(&self.data));
    }
}
