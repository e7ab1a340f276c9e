// Made by `ropewalk gen rust`; do not edit.
//! The types of std_msgs.

use ropewalk::typed;

/// std_msgs/Empty
#[derive(Clone, Debug, PartialEq)]
pub struct Empty {
}

impl Default for Empty {
    fn default() -> Self {
        Empty {
        }
    }
}

impl<'a> typed::Fields<'a> for Empty {
    fn put(&self, to: &mut typed::Put) -> Result<(), typed::FieldError> {
        Ok(())
    }

    fn get(from: &mut typed::Get<'a>) -> Result<Self, typed::FieldError> {
        Ok(Empty {
        })
    }
}

impl typed::Typed for Empty {
    const NAME: &'static str = "std_msgs/Empty";
    const MD5: &'static str = "d41d8cd98f00b204e9800998ecf8427e";
    const FLAVOUR: ropewalk::Flavour = ropewalk::Flavour::Ros1;
    const DEFINITION: &'static str = concat!(
    );
}

impl typed::Structure for Empty {
    type View<'a> = Empty;
}
