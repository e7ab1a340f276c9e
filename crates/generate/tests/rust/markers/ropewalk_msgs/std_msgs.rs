// Made by `ropewalk gen rust`; do not edit.
//! The types of std_msgs.

use ropewalk::typed;

/// std_msgs/ColorRGBA
#[derive(Clone, Debug, PartialEq)]
pub struct ColorRGBA {
    pub r: f32,
    pub g: f32,
    pub b: f32,
    pub a: f32,
}

impl Default for ColorRGBA {
    fn default() -> Self {
        ColorRGBA {
            r: Default::default(),
            g: Default::default(),
            b: Default::default(),
            a: Default::default(),
        }
    }
}

impl<'a> typed::Fields<'a> for ColorRGBA {
    fn put(&self, to: &mut typed::Put) -> Result<(), typed::FieldError> {
        to.word(&self.r);
        to.word(&self.g);
        to.word(&self.b);
        to.word(&self.a);
        Ok(())
    }

    fn get(from: &mut typed::Get<'a>) -> Result<Self, typed::FieldError> {
        Ok(ColorRGBA {
            r: from.word("r")?,
            g: from.word("g")?,
            b: from.word("b")?,
            a: from.word("a")?,
        })
    }
}

impl Copy for ColorRGBA {}

impl typed::Element for ColorRGBA {
    const SIZE: usize = 16;
    const ALIGN: usize = 4;

    fn load(bytes: &[u8]) -> Self {
        ColorRGBA {
            r: typed::load_at(bytes, 0),
            g: typed::load_at(bytes, 4),
            b: typed::load_at(bytes, 8),
            a: typed::load_at(bytes, 12),
        }
    }

    fn store(&self, bytes: &mut [u8]) {
        if let Some(bytes) = bytes.get_mut(..16) {
            bytes.fill(0);
        }
        typed::store_at(&self.r, bytes, 0);
        typed::store_at(&self.g, bytes, 4);
        typed::store_at(&self.b, bytes, 8);
        typed::store_at(&self.a, bytes, 12);
    }
}

impl typed::Typed for ColorRGBA {
    const NAME: &'static str = "std_msgs/ColorRGBA";
    const MD5: &'static str = "a29a96539573343b1310c73607334b00";
    const FLAVOUR: ropewalk::Flavour = ropewalk::Flavour::Ros1;
    const DEFINITION: &'static str = concat!(
        "float32 r\n",
        "float32 g\n",
        "float32 b\n",
        "float32 a",
    );
}

impl typed::Structure for ColorRGBA {
    type View<'a> = ColorRGBA;
}

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
