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

/// std_msgs/MultiArrayDimension
#[derive(Clone, Debug, PartialEq)]
pub struct MultiArrayDimension {
    pub label: ::std::string::String,
    pub size: u32,
    pub stride: u32,
}

impl Default for MultiArrayDimension {
    fn default() -> Self {
        MultiArrayDimension {
            label: Default::default(),
            size: Default::default(),
            stride: Default::default(),
        }
    }
}

impl<'a> typed::Fields<'a> for MultiArrayDimension {
    fn put(&self, to: &mut typed::Put) -> Result<(), typed::FieldError> {
        to.text("label", &self.label, None)?;
        to.word(&self.size);
        to.word(&self.stride);
        Ok(())
    }

    fn get(from: &mut typed::Get<'a>) -> Result<Self, typed::FieldError> {
        Ok(MultiArrayDimension {
            label: from.text("label", None)?,
            size: from.word("size")?,
            stride: from.word("stride")?,
        })
    }
}

impl typed::Typed for MultiArrayDimension {
    const NAME: &'static str = "std_msgs/MultiArrayDimension";
    const MD5: &'static str = "4cd0c83a8683deae40ecdac60e53bfa8";
    const FLAVOUR: ropewalk::Flavour = ropewalk::Flavour::Ros1;
    const DEFINITION: &'static str = concat!(
        "string label\n",
        "uint32 size\n",
        "uint32 stride",
    );
}

impl typed::Structure for MultiArrayDimension {
    type View<'a> = MultiArrayDimension;
}

/// std_msgs/MultiArrayLayout
#[derive(Clone, Debug, PartialEq)]
pub struct MultiArrayLayout {
    pub dim: ::std::vec::Vec<super::std_msgs::MultiArrayDimension>,
    pub data_offset: u32,
}

impl Default for MultiArrayLayout {
    fn default() -> Self {
        MultiArrayLayout {
            dim: Default::default(),
            data_offset: Default::default(),
        }
    }
}

impl<'a> typed::Fields<'a> for MultiArrayLayout {
    fn put(&self, to: &mut typed::Put) -> Result<(), typed::FieldError> {
        to.list("dim", self.dim.len(), None)?;
        for element in &self.dim { to.message("dim", element)?; }
        to.word(&self.data_offset);
        Ok(())
    }

    fn get(from: &mut typed::Get<'a>) -> Result<Self, typed::FieldError> {
        Ok(MultiArrayLayout {
            dim: from.vec("dim", None, |from| from.message())?,
            data_offset: from.word("data_offset")?,
        })
    }
}

impl typed::Typed for MultiArrayLayout {
    const NAME: &'static str = "std_msgs/MultiArrayLayout";
    const MD5: &'static str = "0fed2a11c13e11c5571b4e2a995a91a3";
    const FLAVOUR: ropewalk::Flavour = ropewalk::Flavour::Ros1;
    const DEFINITION: &'static str = concat!(
        "MultiArrayDimension[] dim\n",
        "uint32 data_offset\n",
        "================================================================================\n",
        "MSG: std_msgs/MultiArrayDimension\n",
        "string label\n",
        "uint32 size\n",
        "uint32 stride",
    );
}

impl typed::Structure for MultiArrayLayout {
    type View<'a> = MultiArrayLayout;
}

/// std_msgs/String
#[derive(Clone, Debug, PartialEq)]
pub struct String {
    pub data: ::std::string::String,
}

impl Default for String {
    fn default() -> Self {
        String {
            data: Default::default(),
        }
    }
}

impl<'a> typed::Fields<'a> for String {
    fn put(&self, to: &mut typed::Put) -> Result<(), typed::FieldError> {
        to.text("data", &self.data, None)?;
        Ok(())
    }

    fn get(from: &mut typed::Get<'a>) -> Result<Self, typed::FieldError> {
        Ok(String {
            data: from.text("data", None)?,
        })
    }
}

impl typed::Typed for String {
    const NAME: &'static str = "std_msgs/String";
    const MD5: &'static str = "992ce8a1687cec8c8bd883ec73ca41d1";
    const FLAVOUR: ropewalk::Flavour = ropewalk::Flavour::Ros1;
    const DEFINITION: &'static str = concat!(
        "string data",
    );
}

impl typed::Structure for String {
    type View<'a> = String;
}

/// std_msgs/UInt8MultiArray
#[derive(Clone, Debug, PartialEq)]
pub struct UInt8MultiArray<'a> {
    pub layout: super::std_msgs::MultiArrayLayout,
    pub data: typed::Bulk<'a, u8>,
}

impl<'a> Default for UInt8MultiArray<'a> {
    fn default() -> Self {
        UInt8MultiArray {
            layout: Default::default(),
            data: Default::default(),
        }
    }
}

impl<'a> typed::Fields<'a> for UInt8MultiArray<'a> {
    fn put(&self, to: &mut typed::Put) -> Result<(), typed::FieldError> {
        to.message("layout", &self.layout)?;
        to.bulk("data", &self.data, None)?;
        Ok(())
    }

    fn get(from: &mut typed::Get<'a>) -> Result<Self, typed::FieldError> {
        Ok(UInt8MultiArray {
            layout: from.message()?,
            data: from.bulk("data", None)?,
        })
    }
}

impl typed::Typed for UInt8MultiArray<'_> {
    const NAME: &'static str = "std_msgs/UInt8MultiArray";
    const MD5: &'static str = "82373f1612381bb6ee473b5cd6f5d89c";
    const FLAVOUR: ropewalk::Flavour = ropewalk::Flavour::Ros1;
    const DEFINITION: &'static str = concat!(
        "MultiArrayLayout layout\n",
        "uint8[] data\n",
        "\n",
        "================================================================================\n",
        "MSG: std_msgs/MultiArrayLayout\n",
        "MultiArrayDimension[] dim\n",
        "uint32 data_offset\n",
        "================================================================================\n",
        "MSG: std_msgs/MultiArrayDimension\n",
        "string label\n",
        "uint32 size\n",
        "uint32 stride",
    );
}

impl typed::Structure for UInt8MultiArray<'static> {
    type View<'a> = UInt8MultiArray<'a>;
}
