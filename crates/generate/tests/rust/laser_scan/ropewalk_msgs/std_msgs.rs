// Made by `ropewalk gen rust`; do not edit.
//! The types of std_msgs.

use ropewalk::typed;

/// std_msgs/Header
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    pub seq: u32,
    pub stamp: typed::RosTime,
    pub frame_id: ::std::string::String,
}

impl Default for Header {
    fn default() -> Self {
        Header {
            seq: Default::default(),
            stamp: Default::default(),
            frame_id: Default::default(),
        }
    }
}

impl<'a> typed::Fields<'a> for Header {
    fn put(&self, to: &mut typed::Put) -> Result<(), typed::FieldError> {
        to.word(&self.seq);
        to.word(&self.stamp);
        to.text("frame_id", &self.frame_id, None)?;
        Ok(())
    }

    fn get(from: &mut typed::Get<'a>) -> Result<Self, typed::FieldError> {
        Ok(Header {
            seq: from.word("seq")?,
            stamp: from.word("stamp")?,
            frame_id: from.text("frame_id", None)?,
        })
    }
}

impl typed::Typed for Header {
    const NAME: &'static str = "std_msgs/Header";
    const MD5: &'static str = "2176decaecbce78abc3b96ef049fabed";
    const FLAVOUR: ropewalk::Flavour = ropewalk::Flavour::Ros1;
    const DEFINITION: &'static str = concat!(
        "uint32 seq\n",
        "time stamp\n",
        "string frame_id",
    );
}

impl typed::Structure for Header {
    type View<'a> = Header;
}
