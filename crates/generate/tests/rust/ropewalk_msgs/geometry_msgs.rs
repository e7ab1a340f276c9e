// Made by `ropewalk gen rust`; do not edit.
//! The types of geometry_msgs.

use ropewalk::typed;

/// geometry_msgs/Point32
#[derive(Clone, Debug, PartialEq)]
pub struct Point32 {
    pub x: f32,
    pub y: f32,
    pub z: f32,
}

impl Default for Point32 {
    fn default() -> Self {
        Point32 {
            x: Default::default(),
            y: Default::default(),
            z: Default::default(),
        }
    }
}

impl<'a> typed::Fields<'a> for Point32 {
    fn put(&self, to: &mut typed::Put) -> Result<(), typed::FieldError> {
        to.word(&self.x);
        to.word(&self.y);
        to.word(&self.z);
        Ok(())
    }

    fn get(from: &mut typed::Get<'a>) -> Result<Self, typed::FieldError> {
        Ok(Point32 {
            x: from.word("x")?,
            y: from.word("y")?,
            z: from.word("z")?,
        })
    }
}

impl Copy for Point32 {}

impl typed::Element for Point32 {
    const SIZE: usize = 12;
    const ALIGN: usize = 4;

    fn load(bytes: &[u8]) -> Self {
        Point32 {
            x: typed::load_at(bytes, 0),
            y: typed::load_at(bytes, 4),
            z: typed::load_at(bytes, 8),
        }
    }

    fn store(&self, bytes: &mut [u8]) {
        if let Some(bytes) = bytes.get_mut(..12) {
            bytes.fill(0);
        }
        typed::store_at(&self.x, bytes, 0);
        typed::store_at(&self.y, bytes, 4);
        typed::store_at(&self.z, bytes, 8);
    }
}

impl typed::Typed for Point32 {
    const NAME: &'static str = "geometry_msgs/Point32";
    const MD5: &'static str = "cc153912f1453b708d221682bc23d9ac";
    const FLAVOUR: ropewalk::Flavour = ropewalk::Flavour::Ros1;
    const DEFINITION: &'static str = concat!(
        "float32 x\n",
        "float32 y\n",
        "float32 z",
    );
}

impl typed::Structure for Point32 {
    type View<'a> = Point32;
}

/// geometry_msgs/Polygon
#[derive(Clone, Debug, PartialEq)]
pub struct Polygon<'a> {
    pub points: typed::Bulk<'a, super::geometry_msgs::Point32>,
}

impl<'a> Default for Polygon<'a> {
    fn default() -> Self {
        Polygon {
            points: Default::default(),
        }
    }
}

impl<'a> typed::Fields<'a> for Polygon<'a> {
    fn put(&self, to: &mut typed::Put) -> Result<(), typed::FieldError> {
        to.bulk("points", &self.points, None)?;
        Ok(())
    }

    fn get(from: &mut typed::Get<'a>) -> Result<Self, typed::FieldError> {
        Ok(Polygon {
            points: from.bulk("points", None)?,
        })
    }
}

impl typed::Typed for Polygon<'_> {
    const NAME: &'static str = "geometry_msgs/Polygon";
    const MD5: &'static str = "cd60a26494a087f577976f0329fa120e";
    const FLAVOUR: ropewalk::Flavour = ropewalk::Flavour::Ros1;
    const DEFINITION: &'static str = concat!(
        "Point32[] points\n",
        "================================================================================\n",
        "MSG: geometry_msgs/Point32\n",
        "float32 x\n",
        "float32 y\n",
        "float32 z",
    );
}

impl typed::Structure for Polygon<'static> {
    type View<'a> = Polygon<'a>;
}

/// geometry_msgs/Twist
#[derive(Clone, Debug, PartialEq)]
pub struct Twist {
    pub linear: super::geometry_msgs::Vector3,
    pub angular: super::geometry_msgs::Vector3,
}

impl Default for Twist {
    fn default() -> Self {
        Twist {
            linear: Default::default(),
            angular: Default::default(),
        }
    }
}

impl<'a> typed::Fields<'a> for Twist {
    fn put(&self, to: &mut typed::Put) -> Result<(), typed::FieldError> {
        to.message("linear", &self.linear)?;
        to.message("angular", &self.angular)?;
        Ok(())
    }

    fn get(from: &mut typed::Get<'a>) -> Result<Self, typed::FieldError> {
        Ok(Twist {
            linear: from.message()?,
            angular: from.message()?,
        })
    }
}

impl Copy for Twist {}

impl typed::Element for Twist {
    const SIZE: usize = 48;
    const ALIGN: usize = 8;

    fn load(bytes: &[u8]) -> Self {
        Twist {
            linear: typed::load_at(bytes, 0),
            angular: typed::load_at(bytes, 24),
        }
    }

    fn store(&self, bytes: &mut [u8]) {
        if let Some(bytes) = bytes.get_mut(..48) {
            bytes.fill(0);
        }
        typed::store_at(&self.linear, bytes, 0);
        typed::store_at(&self.angular, bytes, 24);
    }
}

impl typed::Typed for Twist {
    const NAME: &'static str = "geometry_msgs/Twist";
    const MD5: &'static str = "9f195f881246fdfa2798d1d3eebca84a";
    const FLAVOUR: ropewalk::Flavour = ropewalk::Flavour::Ros1;
    const DEFINITION: &'static str = concat!(
        "Vector3 linear\n",
        "Vector3 angular\n",
        "================================================================================\n",
        "MSG: geometry_msgs/Vector3\n",
        "float64 x\n",
        "float64 y\n",
        "float64 z",
    );
}

impl typed::Structure for Twist {
    type View<'a> = Twist;
}

/// geometry_msgs/TwistWithCovariance
#[derive(Clone, Debug, PartialEq)]
pub struct TwistWithCovariance {
    pub twist: super::geometry_msgs::Twist,
    pub covariance: [f64; 36],
}

impl Default for TwistWithCovariance {
    fn default() -> Self {
        TwistWithCovariance {
            twist: Default::default(),
            covariance: std::array::from_fn(|_| Default::default()),
        }
    }
}

impl<'a> typed::Fields<'a> for TwistWithCovariance {
    fn put(&self, to: &mut typed::Put) -> Result<(), typed::FieldError> {
        to.message("twist", &self.twist)?;
        for element in &self.covariance { to.word(element); }
        Ok(())
    }

    fn get(from: &mut typed::Get<'a>) -> Result<Self, typed::FieldError> {
        Ok(TwistWithCovariance {
            twist: from.message()?,
            covariance: from.array(|from| from.word("covariance"))?,
        })
    }
}

impl Copy for TwistWithCovariance {}

impl typed::Element for TwistWithCovariance {
    const SIZE: usize = 336;
    const ALIGN: usize = 8;

    fn load(bytes: &[u8]) -> Self {
        TwistWithCovariance {
            twist: typed::load_at(bytes, 0),
            covariance: std::array::from_fn(|i| typed::load_at(bytes, 48 + i * 8)),
        }
    }

    fn store(&self, bytes: &mut [u8]) {
        if let Some(bytes) = bytes.get_mut(..336) {
            bytes.fill(0);
        }
        typed::store_at(&self.twist, bytes, 0);
        for (i, element) in self.covariance.iter().enumerate() {
            typed::store_at(element, bytes, 48 + i * 8);
        }
    }
}

impl typed::Typed for TwistWithCovariance {
    const NAME: &'static str = "geometry_msgs/TwistWithCovariance";
    const MD5: &'static str = "1fe8a28e6890a4cc3ae4c3ca5c7d82e6";
    const FLAVOUR: ropewalk::Flavour = ropewalk::Flavour::Ros1;
    const DEFINITION: &'static str = concat!(
        "Twist twist\n",
        "float64[36] covariance\n",
        "================================================================================\n",
        "MSG: geometry_msgs/Twist\n",
        "Vector3 linear\n",
        "Vector3 angular\n",
        "================================================================================\n",
        "MSG: geometry_msgs/Vector3\n",
        "float64 x\n",
        "float64 y\n",
        "float64 z",
    );
}

impl typed::Structure for TwistWithCovariance {
    type View<'a> = TwistWithCovariance;
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
