// Made by `ropewalk gen rust`; do not edit.
//! The types of builtin_interfaces.

use ropewalk::typed;

/// builtin_interfaces/Time
#[derive(Clone, Debug, PartialEq)]
pub struct Time {
    pub sec: i32,
    pub nanosec: u32,
}

impl Default for Time {
    fn default() -> Self {
        Time {
            sec: Default::default(),
            nanosec: Default::default(),
        }
    }
}

impl<'a> typed::Fields<'a> for Time {
    fn put(&self, to: &mut typed::Put) -> Result<(), typed::FieldError> {
        to.word(&self.sec);
        to.word(&self.nanosec);
        Ok(())
    }

    fn get(from: &mut typed::Get<'a>) -> Result<Self, typed::FieldError> {
        Ok(Time {
            sec: from.word("sec")?,
            nanosec: from.word("nanosec")?,
        })
    }
}

impl Copy for Time {}

impl typed::Element for Time {
    const SIZE: usize = 8;
    const ALIGN: usize = 4;

    fn load(bytes: &[u8]) -> Self {
        Time {
            sec: typed::load_at(bytes, 0),
            nanosec: typed::load_at(bytes, 4),
        }
    }

    fn store(&self, bytes: &mut [u8]) {
        if let Some(bytes) = bytes.get_mut(..8) {
            bytes.fill(0);
        }
        typed::store_at(&self.sec, bytes, 0);
        typed::store_at(&self.nanosec, bytes, 4);
    }
}

impl typed::Typed for Time {
    const NAME: &'static str = "builtin_interfaces/Time";
    const MD5: &'static str = "8255142433c342f21ece78aae48f7907";
    const FLAVOUR: ropewalk::Flavour = ropewalk::Flavour::Ros2;
    const DEFINITION: &'static str = concat!(
        "int32 sec\n",
        "uint32 nanosec\n",
    );
}

impl typed::Structure for Time {
    type View<'a> = Time;
}
