// Made by `ropewalk gen rust`; do not edit.
//! The types of geometry_msgs.

use ropewalk::typed;

/// geometry_msgs/Quaternion
#[derive(Clone, Debug, PartialEq)]
pub struct Quaternion {
    pub x: f64,
    pub y: f64,
    pub z: f64,
    pub w: f64,
}

impl Default for Quaternion {
    fn default() -> Self {
        Quaternion {
            x: Default::default(),
            y: Default::default(),
            z: Default::default(),
            w: Default::default(),
        }
    }
}

impl<'a> typed::Fields<'a> for Quaternion {
    fn put(&self, to: &mut typed::Put) -> Result<(), typed::FieldError> {
        to.word(&self.x);
        to.word(&self.y);
        to.word(&self.z);
        to.word(&self.w);
        Ok(())
    }

    fn get(from: &mut typed::Get<'a>) -> Result<Self, typed::FieldError> {
        Ok(Quaternion {
            x: from.word("x")?,
            y: from.word("y")?,
            z: from.word("z")?,
            w: from.word("w")?,
        })
    }
}

impl Copy for Quaternion {}

impl typed::Element for Quaternion {
    const SIZE: usize = 32;
    const ALIGN: usize = 8;

    fn load(bytes: &[u8]) -> Self {
        Quaternion {
            x: typed::load_at(bytes, 0),
            y: typed::load_at(bytes, 8),
            z: typed::load_at(bytes, 16),
            w: typed::load_at(bytes, 24),
        }
    }

    fn store(&self, bytes: &mut [u8]) {
        if let Some(bytes) = bytes.get_mut(..32) {
            bytes.fill(0);
        }
        typed::store_at(&self.x, bytes, 0);
        typed::store_at(&self.y, bytes, 8);
        typed::store_at(&self.z, bytes, 16);
        typed::store_at(&self.w, bytes, 24);
    }
}

impl typed::Typed for Quaternion {
    const NAME: &'static str = "geometry_msgs/Quaternion";
    const MD5: &'static str = "a779879fadf0160734f906b8c19c7004";
    const FLAVOUR: ropewalk::Flavour = ropewalk::Flavour::Ros1;
    const DEFINITION: &'static str = concat!(
        "float64 x\n",
        "float64 y\n",
        "float64 z\n",
        "float64 w",
    );
}

impl typed::Structure for Quaternion {
    type View<'a> = Quaternion;
}

/// geometry_msgs/Transform
#[derive(Clone, Debug, PartialEq)]
pub struct Transform {
    pub translation: super::geometry_msgs::Vector3,
    pub rotation: super::geometry_msgs::Quaternion,
}

impl Default for Transform {
    fn default() -> Self {
        Transform {
            translation: Default::default(),
            rotation: Default::default(),
        }
    }
}

impl<'a> typed::Fields<'a> for Transform {
    fn put(&self, to: &mut typed::Put) -> Result<(), typed::FieldError> {
        to.message("translation", &self.translation)?;
        to.message("rotation", &self.rotation)?;
        Ok(())
    }

    fn get(from: &mut typed::Get<'a>) -> Result<Self, typed::FieldError> {
        Ok(Transform {
            translation: from.message()?,
            rotation: from.message()?,
        })
    }
}

impl Copy for Transform {}

impl typed::Element for Transform {
    const SIZE: usize = 56;
    const ALIGN: usize = 8;

    fn load(bytes: &[u8]) -> Self {
        Transform {
            translation: typed::load_at(bytes, 0),
            rotation: typed::load_at(bytes, 24),
        }
    }

    fn store(&self, bytes: &mut [u8]) {
        if let Some(bytes) = bytes.get_mut(..56) {
            bytes.fill(0);
        }
        typed::store_at(&self.translation, bytes, 0);
        typed::store_at(&self.rotation, bytes, 24);
    }
}

impl typed::Typed for Transform {
    const NAME: &'static str = "geometry_msgs/Transform";
    const MD5: &'static str = "ac9eff44abf714214112b05d54a3cf9b";
    const FLAVOUR: ropewalk::Flavour = ropewalk::Flavour::Ros1;
    const DEFINITION: &'static str = concat!(
        "Vector3 translation\n",
        "Quaternion rotation\n",
        "================================================================================\n",
        "MSG: geometry_msgs/Vector3\n",
        "float64 x\n",
        "float64 y\n",
        "float64 z\n",
        "================================================================================\n",
        "MSG: geometry_msgs/Quaternion\n",
        "float64 x\n",
        "float64 y\n",
        "float64 z\n",
        "float64 w",
    );
}

impl typed::Structure for Transform {
    type View<'a> = Transform;
}

/// geometry_msgs/TransformStamped
#[derive(Clone, Debug, PartialEq)]
pub struct TransformStamped {
    pub header: super::std_msgs::Header,
    pub child_frame_id: ::std::string::String,
    pub transform: super::geometry_msgs::Transform,
}

impl Default for TransformStamped {
    fn default() -> Self {
        TransformStamped {
            header: Default::default(),
            child_frame_id: Default::default(),
            transform: Default::default(),
        }
    }
}

impl<'a> typed::Fields<'a> for TransformStamped {
    fn put(&self, to: &mut typed::Put) -> Result<(), typed::FieldError> {
        to.message("header", &self.header)?;
        to.text("child_frame_id", &self.child_frame_id, None)?;
        to.message("transform", &self.transform)?;
        Ok(())
    }

    fn get(from: &mut typed::Get<'a>) -> Result<Self, typed::FieldError> {
        Ok(TransformStamped {
            header: from.message()?,
            child_frame_id: from.text("child_frame_id", None)?,
            transform: from.message()?,
        })
    }
}

impl typed::Typed for TransformStamped {
    const NAME: &'static str = "geometry_msgs/TransformStamped";
    const MD5: &'static str = "b5764a33bfeb3588febc2682852579b0";
    const FLAVOUR: ropewalk::Flavour = ropewalk::Flavour::Ros1;
    const DEFINITION: &'static str = concat!(
        "Header header\n",
        "string child_frame_id\n",
        "Transform transform\n",
        "================================================================================\n",
        "MSG: std_msgs/Header\n",
        "uint32 seq\n",
        "time stamp\n",
        "string frame_id\n",
        "================================================================================\n",
        "MSG: geometry_msgs/Transform\n",
        "Vector3 translation\n",
        "Quaternion rotation\n",
        "================================================================================\n",
        "MSG: geometry_msgs/Vector3\n",
        "float64 x\n",
        "float64 y\n",
        "float64 z\n",
        "================================================================================\n",
        "MSG: geometry_msgs/Quaternion\n",
        "float64 x\n",
        "float64 y\n",
        "float64 z\n",
        "float64 w",
    );
}

impl typed::Structure for TransformStamped {
    type View<'a> = TransformStamped;
}

/// geometry_msgs/Vector3
#[derive(Clone, Debug, PartialEq)]
pub struct Vector3 {
    pub x: f64,
    pub y: f64,
    pub z: f64,
}

impl Default for Vector3 {
    fn default() -> Self {
        Vector3 {
            x: Default::default(),
            y: Default::default(),
            z: Default::default(),
        }
    }
}

impl<'a> typed::Fields<'a> for Vector3 {
    fn put(&self, to: &mut typed::Put) -> Result<(), typed::FieldError> {
        to.word(&self.x);
        to.word(&self.y);
        to.word(&self.z);
        Ok(())
    }

    fn get(from: &mut typed::Get<'a>) -> Result<Self, typed::FieldError> {
        Ok(Vector3 {
            x: from.word("x")?,
            y: from.word("y")?,
            z: from.word("z")?,
        })
    }
}

impl Copy for Vector3 {}

impl typed::Element for Vector3 {
    const SIZE: usize = 24;
    const ALIGN: usize = 8;

    fn load(bytes: &[u8]) -> Self {
        Vector3 {
            x: typed::load_at(bytes, 0),
            y: typed::load_at(bytes, 8),
            z: typed::load_at(bytes, 16),
        }
    }

    fn store(&self, bytes: &mut [u8]) {
        if let Some(bytes) = bytes.get_mut(..24) {
            bytes.fill(0);
        }
        typed::store_at(&self.x, bytes, 0);
        typed::store_at(&self.y, bytes, 8);
        typed::store_at(&self.z, bytes, 16);
    }
}

impl typed::Typed for Vector3 {
    const NAME: &'static str = "geometry_msgs/Vector3";
    const MD5: &'static str = "4a842b65f413084dc2b10fb484ea7f17";
    const FLAVOUR: ropewalk::Flavour = ropewalk::Flavour::Ros1;
    const DEFINITION: &'static str = concat!(
        "float64 x\n",
        "float64 y\n",
        "float64 z",
    );
}

impl typed::Structure for Vector3 {
    type View<'a> = Vector3;
}
