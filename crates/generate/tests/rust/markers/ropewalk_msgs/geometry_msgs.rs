// Made by `ropewalk gen rust`; do not edit.
//! The types of geometry_msgs.

use ropewalk::typed;

/// geometry_msgs/Point
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    pub x: f64,
    pub y: f64,
    pub z: f64,
}

impl Default for Point {
    fn default() -> Self {
        Point {
            x: Default::default(),
            y: Default::default(),
            z: Default::default(),
        }
    }
}

impl<'a> typed::Fields<'a> for Point {
    fn put(&self, to: &mut typed::Put) -> Result<(), typed::FieldError> {
        to.word(&self.x);
        to.word(&self.y);
        to.word(&self.z);
        Ok(())
    }

    fn get(from: &mut typed::Get<'a>) -> Result<Self, typed::FieldError> {
        Ok(Point {
            x: from.word("x")?,
            y: from.word("y")?,
            z: from.word("z")?,
        })
    }
}

impl Copy for Point {}

impl typed::Element for Point {
    const SIZE: usize = 24;
    const ALIGN: usize = 8;

    fn load(bytes: &[u8]) -> Self {
        Point {
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

impl typed::Typed for Point {
    const NAME: &'static str = "geometry_msgs/Point";
    const MD5: &'static str = "4a842b65f413084dc2b10fb484ea7f17";
    const FLAVOUR: ropewalk::Flavour = ropewalk::Flavour::Ros1;
    const DEFINITION: &'static str = concat!(
        "float64 x\n",
        "float64 y\n",
        "float64 z",
    );
}

impl typed::Structure for Point {
    type View<'a> = Point;
}

/// geometry_msgs/Pose
#[derive(Clone, Debug, PartialEq)]
pub struct Pose {
    pub position: super::geometry_msgs::Point,
    pub orientation: super::geometry_msgs::Quaternion,
}

impl Default for Pose {
    fn default() -> Self {
        Pose {
            position: Default::default(),
            orientation: Default::default(),
        }
    }
}

impl<'a> typed::Fields<'a> for Pose {
    fn put(&self, to: &mut typed::Put) -> Result<(), typed::FieldError> {
        to.message("position", &self.position)?;
        to.message("orientation", &self.orientation)?;
        Ok(())
    }

    fn get(from: &mut typed::Get<'a>) -> Result<Self, typed::FieldError> {
        Ok(Pose {
            position: from.message()?,
            orientation: from.message()?,
        })
    }
}

impl Copy for Pose {}

impl typed::Element for Pose {
    const SIZE: usize = 56;
    const ALIGN: usize = 8;

    fn load(bytes: &[u8]) -> Self {
        Pose {
            position: typed::load_at(bytes, 0),
            orientation: typed::load_at(bytes, 24),
        }
    }

    fn store(&self, bytes: &mut [u8]) {
        if let Some(bytes) = bytes.get_mut(..56) {
            bytes.fill(0);
        }
        typed::store_at(&self.position, bytes, 0);
        typed::store_at(&self.orientation, bytes, 24);
    }
}

impl typed::Typed for Pose {
    const NAME: &'static str = "geometry_msgs/Pose";
    const MD5: &'static str = "e45d45a5a1ce597b249e23fb30fc871f";
    const FLAVOUR: ropewalk::Flavour = ropewalk::Flavour::Ros1;
    const DEFINITION: &'static str = concat!(
        "Point position\n",
        "Quaternion orientation\n",
        "================================================================================\n",
        "MSG: geometry_msgs/Point\n",
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

impl typed::Structure for Pose {
    type View<'a> = Pose;
}

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
