// Made by `ropewalk gen rust`; do not edit.
//! The types of visualization_msgs.

use ropewalk::typed;

/// visualization_msgs/Marker
#[derive(Clone, Debug, PartialEq)]
pub struct Marker<'a> {
    pub header: super::std_msgs::Header,
    pub ns: ::std::string::String,
    pub id: i32,
    pub r#type: i32,
    pub action: i32,
    pub pose: super::geometry_msgs::Pose,
    pub scale: super::geometry_msgs::Vector3,
    pub color: super::std_msgs::ColorRGBA,
    pub lifetime: typed::RosDuration,
    pub frame_locked: u8,
    pub points: typed::Bulk<'a, super::geometry_msgs::Point>,
    pub colors: typed::Bulk<'a, super::std_msgs::ColorRGBA>,
    pub text: ::std::string::String,
    pub mesh_resource: ::std::string::String,
    pub mesh_use_embedded_materials: u8,
}

impl<'a> Default for Marker<'a> {
    fn default() -> Self {
        Marker {
            header: Default::default(),
            ns: Default::default(),
            id: Default::default(),
            r#type: Default::default(),
            action: Default::default(),
            pose: Default::default(),
            scale: Default::default(),
            color: Default::default(),
            lifetime: Default::default(),
            frame_locked: Default::default(),
            points: Default::default(),
            colors: Default::default(),
            text: Default::default(),
            mesh_resource: Default::default(),
            mesh_use_embedded_materials: Default::default(),
        }
    }
}

impl<'a> Marker<'a> {
    pub const ARROW: u8 = 0_i128 as u8;
    pub const CUBE: u8 = 1_i128 as u8;
    pub const SPHERE: u8 = 2_i128 as u8;
    pub const CYLINDER: u8 = 3_i128 as u8;
    pub const LINE_STRIP: u8 = 4_i128 as u8;
    pub const LINE_LIST: u8 = 5_i128 as u8;
    pub const CUBE_LIST: u8 = 6_i128 as u8;
    pub const SPHERE_LIST: u8 = 7_i128 as u8;
    pub const POINTS: u8 = 8_i128 as u8;
    pub const TEXT_VIEW_FACING: u8 = 9_i128 as u8;
    pub const MESH_RESOURCE: u8 = 10_i128 as u8;
    pub const TRIANGLE_LIST: u8 = 11_i128 as u8;
    pub const ADD: u8 = 0_i128 as u8;
    pub const MODIFY: u8 = 0_i128 as u8;
    pub const DELETE: u8 = 2_i128 as u8;
    pub const DELETEALL: u8 = 3_i128 as u8;
}

impl<'a> typed::Fields<'a> for Marker<'a> {
    fn put(&self, to: &mut typed::Put) -> Result<(), typed::FieldError> {
        to.message("header", &self.header)?;
        to.text("ns", &self.ns, None)?;
        to.word(&self.id);
        to.word(&self.r#type);
        to.word(&self.action);
        to.message("pose", &self.pose)?;
        to.message("scale", &self.scale)?;
        to.message("color", &self.color)?;
        to.word(&self.lifetime);
        to.word(&self.frame_locked);
        to.bulk("points", &self.points, None)?;
        to.bulk("colors", &self.colors, None)?;
        to.text("text", &self.text, None)?;
        to.text("mesh_resource", &self.mesh_resource, None)?;
        to.word(&self.mesh_use_embedded_materials);
        Ok(())
    }

    fn get(from: &mut typed::Get<'a>) -> Result<Self, typed::FieldError> {
        Ok(Marker {
            header: from.message()?,
            ns: from.text("ns", None)?,
            id: from.word("id")?,
            r#type: from.word("type")?,
            action: from.word("action")?,
            pose: from.message()?,
            scale: from.message()?,
            color: from.message()?,
            lifetime: from.word("lifetime")?,
            frame_locked: from.word("frame_locked")?,
            points: from.bulk("points", None)?,
            colors: from.bulk("colors", None)?,
            text: from.text("text", None)?,
            mesh_resource: from.text("mesh_resource", None)?,
            mesh_use_embedded_materials: from.word("mesh_use_embedded_materials")?,
        })
    }
}

impl typed::Typed for Marker<'_> {
    const NAME: &'static str = "visualization_msgs/Marker";
    const MD5: &'static str = "4048c9de2a16f4ae8e0538085ebf1b97";
    const FLAVOUR: ropewalk::Flavour = ropewalk::Flavour::Ros1;
    const DEFINITION: &'static str = concat!(
        "uint8 ARROW=0\n",
        "uint8 CUBE=1\n",
        "uint8 SPHERE=2\n",
        "uint8 CYLINDER=3\n",
        "uint8 LINE_STRIP=4\n",
        "uint8 LINE_LIST=5\n",
        "uint8 CUBE_LIST=6\n",
        "uint8 SPHERE_LIST=7\n",
        "uint8 POINTS=8\n",
        "uint8 TEXT_VIEW_FACING=9\n",
        "uint8 MESH_RESOURCE=10\n",
        "uint8 TRIANGLE_LIST=11\n",
        "uint8 ADD=0\n",
        "uint8 MODIFY=0\n",
        "uint8 DELETE=2\n",
        "uint8 DELETEALL=3\n",
        "Header header\n",
        "string ns\n",
        "int32 id\n",
        "int32 type\n",
        "int32 action\n",
        "geometry_msgs/Pose pose\n",
        "geometry_msgs/Vector3 scale\n",
        "std_msgs/ColorRGBA color\n",
        "duration lifetime\n",
        "bool frame_locked\n",
        "geometry_msgs/Point[] points\n",
        "std_msgs/ColorRGBA[] colors\n",
        "string text\n",
        "string mesh_resource\n",
        "bool mesh_use_embedded_materials\n",
        "================================================================================\n",
        "MSG: std_msgs/Header\n",
        "uint32 seq\n",
        "time stamp\n",
        "string frame_id\n",
        "================================================================================\n",
        "MSG: geometry_msgs/Pose\n",
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
        "float64 w\n",
        "================================================================================\n",
        "MSG: geometry_msgs/Vector3\n",
        "float64 x\n",
        "float64 y\n",
        "float64 z\n",
        "================================================================================\n",
        "MSG: std_msgs/ColorRGBA\n",
        "float32 r\n",
        "float32 g\n",
        "float32 b\n",
        "float32 a",
    );
}

impl typed::Structure for Marker<'static> {
    type View<'a> = Marker<'a>;
}

/// visualization_msgs/MarkerArray
#[derive(Clone, Debug, PartialEq)]
pub struct MarkerArray<'a> {
    pub markers: ::std::vec::Vec<super::visualization_msgs::Marker<'a>>,
}

impl<'a> Default for MarkerArray<'a> {
    fn default() -> Self {
        MarkerArray {
            markers: Default::default(),
        }
    }
}

impl<'a> typed::Fields<'a> for MarkerArray<'a> {
    fn put(&self, to: &mut typed::Put) -> Result<(), typed::FieldError> {
        to.list("markers", self.markers.len(), None)?;
        for element in &self.markers { to.message("markers", element)?; }
        Ok(())
    }

    fn get(from: &mut typed::Get<'a>) -> Result<Self, typed::FieldError> {
        Ok(MarkerArray {
            markers: from.vec("markers", None, |from| from.message())?,
        })
    }
}

impl typed::Typed for MarkerArray<'_> {
    const NAME: &'static str = "visualization_msgs/MarkerArray";
    const MD5: &'static str = "d155b9ce5188fbaf89745847fd5882d7";
    const FLAVOUR: ropewalk::Flavour = ropewalk::Flavour::Ros1;
    const DEFINITION: &'static str = concat!(
        "Marker[] markers\n",
        "================================================================================\n",
        "MSG: visualization_msgs/Marker\n",
        "uint8 ARROW=0\n",
        "uint8 CUBE=1\n",
        "uint8 SPHERE=2\n",
        "uint8 CYLINDER=3\n",
        "uint8 LINE_STRIP=4\n",
        "uint8 LINE_LIST=5\n",
        "uint8 CUBE_LIST=6\n",
        "uint8 SPHERE_LIST=7\n",
        "uint8 POINTS=8\n",
        "uint8 TEXT_VIEW_FACING=9\n",
        "uint8 MESH_RESOURCE=10\n",
        "uint8 TRIANGLE_LIST=11\n",
        "uint8 ADD=0\n",
        "uint8 MODIFY=0\n",
        "uint8 DELETE=2\n",
        "uint8 DELETEALL=3\n",
        "Header header\n",
        "string ns\n",
        "int32 id\n",
        "int32 type\n",
        "int32 action\n",
        "geometry_msgs/Pose pose\n",
        "geometry_msgs/Vector3 scale\n",
        "std_msgs/ColorRGBA color\n",
        "duration lifetime\n",
        "bool frame_locked\n",
        "geometry_msgs/Point[] points\n",
        "std_msgs/ColorRGBA[] colors\n",
        "string text\n",
        "string mesh_resource\n",
        "bool mesh_use_embedded_materials\n",
        "================================================================================\n",
        "MSG: std_msgs/Header\n",
        "uint32 seq\n",
        "time stamp\n",
        "string frame_id\n",
        "================================================================================\n",
        "MSG: geometry_msgs/Pose\n",
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
        "float64 w\n",
        "================================================================================\n",
        "MSG: geometry_msgs/Vector3\n",
        "float64 x\n",
        "float64 y\n",
        "float64 z\n",
        "================================================================================\n",
        "MSG: std_msgs/ColorRGBA\n",
        "float32 r\n",
        "float32 g\n",
        "float32 b\n",
        "float32 a",
    );
}

impl typed::Structure for MarkerArray<'static> {
    type View<'a> = MarkerArray<'a>;
}
