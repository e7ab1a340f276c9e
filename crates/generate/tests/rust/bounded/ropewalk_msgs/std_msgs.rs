// Made by `ropewalk gen rust`; do not edit.
//! The types of std_msgs.

use ropewalk::typed;

/// std_msgs/Header
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    pub stamp: super::builtin_interfaces::Time,
    pub frame_id: ::std::string::String,
}

impl Default for Header {
    fn default() -> Self {
        Header {
            stamp: Default::default(),
            frame_id: Default::default(),
        }
    }
}

impl<'a> typed::Fields<'a> for Header {
    fn put(&self, to: &mut typed::Put) -> Result<(), typed::FieldError> {
        to.message("stamp", &self.stamp)?;
        to.text("frame_id", &self.frame_id, None)?;
        Ok(())
    }

    fn get(from: &mut typed::Get<'a>) -> Result<Self, typed::FieldError> {
        Ok(Header {
            stamp: from.message()?,
            frame_id: from.text("frame_id", None)?,
        })
    }
}

impl typed::Typed for Header {
    const NAME: &'static str = "std_msgs/Header";
    const MD5: &'static str = "3cca5e8ccb31a32fff4058beb6f250e3";
    const FLAVOUR: ropewalk::Flavour = ropewalk::Flavour::Ros2;
    const DEFINITION: &'static str = concat!(
        "builtin_interfaces/Time stamp\n",
        "string frame_id\n",
        "================================================================================\n",
        "MSG: builtin_interfaces/Time\n",
        "int32 sec\n",
        "uint32 nanosec\n",
    );
}

impl typed::Structure for Header {
    type View<'a> = Header;
}
