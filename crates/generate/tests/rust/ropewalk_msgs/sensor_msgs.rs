// Made by `ropewalk gen rust`; do not edit.
//! The types of sensor_msgs.

use ropewalk::typed;

/// sensor_msgs/Image
#[derive(Clone, Debug, PartialEq)]
pub struct Image<'a> {
    pub header: super::std_msgs::Header,
    pub height: u32,
    pub width: u32,
    pub encoding: ::std::string::String,
    pub is_bigendian: u8,
    pub step: u32,
    pub data: typed::Bulk<'a, u8>,
}

impl<'a> Default for Image<'a> {
    fn default() -> Self {
        Image {
            header: Default::default(),
            height: Default::default(),
            width: Default::default(),
            encoding: Default::default(),
            is_bigendian: Default::default(),
            step: Default::default(),
            data: Default::default(),
        }
    }
}

impl<'a> typed::Fields<'a> for Image<'a> {
    fn put(&self, to: &mut typed::Put) -> Result<(), typed::FieldError> {
        to.message("header", &self.header)?;
        to.word(&self.height);
        to.word(&self.width);
        to.text("encoding", &self.encoding, None)?;
        to.word(&self.is_bigendian);
        to.word(&self.step);
        to.bulk("data", &self.data, None)?;
        Ok(())
    }

    fn get(from: &mut typed::Get<'a>) -> Result<Self, typed::FieldError> {
        Ok(Image {
            header: from.message()?,
            height: from.word("height")?,
            width: from.word("width")?,
            encoding: from.text("encoding", None)?,
            is_bigendian: from.word("is_bigendian")?,
            step: from.word("step")?,
            data: from.bulk("data", None)?,
        })
    }
}

impl typed::Typed for Image<'_> {
    const NAME: &'static str = "sensor_msgs/Image";
    const MD5: &'static str = "060021388200f6f0f447d0fcd9c64743";
    const FLAVOUR: ropewalk::Flavour = ropewalk::Flavour::Ros1;
    const DEFINITION: &'static str = concat!(
        "Header header\n",
        "uint32 height\n",
        "uint32 width\n",
        "string encoding\n",
        "uint8 is_bigendian\n",
        "uint32 step\n",
        "uint8[] data\n",
        "================================================================================\n",
        "MSG: std_msgs/Header\n",
        "uint32 seq\n",
        "time stamp\n",
        "string frame_id",
    );
}

impl typed::Structure for Image<'static> {
    type View<'a> = Image<'a>;
}

/// sensor_msgs/LaserScan
#[derive(Clone, Debug, PartialEq)]
pub struct LaserScan<'a> {
    pub header: super::std_msgs::Header,
    pub angle_min: f32,
    pub angle_max: f32,
    pub angle_increment: f32,
    pub time_increment: f32,
    pub scan_time: f32,
    pub range_min: f32,
    pub range_max: f32,
    pub ranges: typed::Bulk<'a, f32>,
    pub intensities: typed::Bulk<'a, f32>,
}

impl<'a> Default for LaserScan<'a> {
    fn default() -> Self {
        LaserScan {
            header: Default::default(),
            angle_min: Default::default(),
            angle_max: Default::default(),
            angle_increment: Default::default(),
            time_increment: Default::default(),
            scan_time: Default::default(),
            range_min: Default::default(),
            range_max: Default::default(),
            ranges: Default::default(),
            intensities: Default::default(),
        }
    }
}

impl<'a> typed::Fields<'a> for LaserScan<'a> {
    fn put(&self, to: &mut typed::Put) -> Result<(), typed::FieldError> {
        to.message("header", &self.header)?;
        to.word(&self.angle_min);
        to.word(&self.angle_max);
        to.word(&self.angle_increment);
        to.word(&self.time_increment);
        to.word(&self.scan_time);
        to.word(&self.range_min);
        to.word(&self.range_max);
        to.bulk("ranges", &self.ranges, None)?;
        to.bulk("intensities", &self.intensities, None)?;
        Ok(())
    }

    fn get(from: &mut typed::Get<'a>) -> Result<Self, typed::FieldError> {
        Ok(LaserScan {
            header: from.message()?,
            angle_min: from.word("angle_min")?,
            angle_max: from.word("angle_max")?,
            angle_increment: from.word("angle_increment")?,
            time_increment: from.word("time_increment")?,
            scan_time: from.word("scan_time")?,
            range_min: from.word("range_min")?,
            range_max: from.word("range_max")?,
            ranges: from.bulk("ranges", None)?,
            intensities: from.bulk("intensities", None)?,
        })
    }
}

impl typed::Typed for LaserScan<'_> {
    const NAME: &'static str = "sensor_msgs/LaserScan";
    const MD5: &'static str = "90c7ef2dc6895d81024acba2ac42f369";
    const FLAVOUR: ropewalk::Flavour = ropewalk::Flavour::Ros1;
    const DEFINITION: &'static str = concat!(
        "Header header\n",
        "float32 angle_min\n",
        "float32 angle_max\n",
        "float32 angle_increment\n",
        "float32 time_increment\n",
        "float32 scan_time\n",
        "float32 range_min\n",
        "float32 range_max\n",
        "float32[] ranges\n",
        "float32[] intensities\n",
        "================================================================================\n",
        "MSG: std_msgs/Header\n",
        "uint32 seq\n",
        "time stamp\n",
        "string frame_id",
    );
}

impl typed::Structure for LaserScan<'static> {
    type View<'a> = LaserScan<'a>;
}

/// sensor_msgs/PointCloud2
#[derive(Clone, Debug, PartialEq)]
pub struct PointCloud2<'a> {
    pub header: super::std_msgs::Header,
    pub height: u32,
    pub width: u32,
    pub fields: ::std::vec::Vec<super::sensor_msgs::PointField>,
    pub is_bigendian: u8,
    pub point_step: u32,
    pub row_step: u32,
    pub data: typed::Bulk<'a, u8>,
    pub is_dense: u8,
}

impl<'a> Default for PointCloud2<'a> {
    fn default() -> Self {
        PointCloud2 {
            header: Default::default(),
            height: Default::default(),
            width: Default::default(),
            fields: Default::default(),
            is_bigendian: Default::default(),
            point_step: Default::default(),
            row_step: Default::default(),
            data: Default::default(),
            is_dense: Default::default(),
        }
    }
}

impl<'a> typed::Fields<'a> for PointCloud2<'a> {
    fn put(&self, to: &mut typed::Put) -> Result<(), typed::FieldError> {
        to.message("header", &self.header)?;
        to.word(&self.height);
        to.word(&self.width);
        to.list("fields", self.fields.len(), None)?;
        for element in &self.fields { to.message("fields", element)?; }
        to.word(&self.is_bigendian);
        to.word(&self.point_step);
        to.word(&self.row_step);
        to.bulk("data", &self.data, None)?;
        to.word(&self.is_dense);
        Ok(())
    }

    fn get(from: &mut typed::Get<'a>) -> Result<Self, typed::FieldError> {
        Ok(PointCloud2 {
            header: from.message()?,
            height: from.word("height")?,
            width: from.word("width")?,
            fields: from.vec("fields", None, |from| from.message())?,
            is_bigendian: from.word("is_bigendian")?,
            point_step: from.word("point_step")?,
            row_step: from.word("row_step")?,
            data: from.bulk("data", None)?,
            is_dense: from.word("is_dense")?,
        })
    }
}

impl typed::Typed for PointCloud2<'_> {
    const NAME: &'static str = "sensor_msgs/PointCloud2";
    const MD5: &'static str = "1158d486dd51d683ce2f1be655c3c181";
    const FLAVOUR: ropewalk::Flavour = ropewalk::Flavour::Ros1;
    const DEFINITION: &'static str = concat!(
        "Header header\n",
        "uint32 height\n",
        "uint32 width\n",
        "PointField[] fields\n",
        "bool is_bigendian\n",
        "uint32 point_step\n",
        "uint32 row_step\n",
        "uint8[] data\n",
        "bool is_dense\n",
        "================================================================================\n",
        "MSG: std_msgs/Header\n",
        "uint32 seq\n",
        "time stamp\n",
        "string frame_id\n",
        "================================================================================\n",
        "MSG: sensor_msgs/PointField\n",
        "uint8 INT8=1\n",
        "uint8 UINT8=2\n",
        "uint8 INT16=3\n",
        "uint8 UINT16=4\n",
        "uint8 INT32=5\n",
        "uint8 UINT32=6\n",
        "uint8 FLOAT32=7\n",
        "uint8 FLOAT64=8\n",
        "string name\n",
        "uint32 offset\n",
        "uint8 datatype\n",
        "uint32 count",
    );
}

impl typed::Structure for PointCloud2<'static> {
    type View<'a> = PointCloud2<'a>;
}

/// sensor_msgs/PointField
#[derive(Clone, Debug, PartialEq)]
pub struct PointField {
    pub name: ::std::string::String,
    pub offset: u32,
    pub datatype: u8,
    pub count: u32,
}

impl Default for PointField {
    fn default() -> Self {
        PointField {
            name: Default::default(),
            offset: Default::default(),
            datatype: Default::default(),
            count: Default::default(),
        }
    }
}

impl PointField {
    pub const INT8: u8 = 1_i128 as u8;
    pub const UINT8: u8 = 2_i128 as u8;
    pub const INT16: u8 = 3_i128 as u8;
    pub const UINT16: u8 = 4_i128 as u8;
    pub const INT32: u8 = 5_i128 as u8;
    pub const UINT32: u8 = 6_i128 as u8;
    pub const FLOAT32: u8 = 7_i128 as u8;
    pub const FLOAT64: u8 = 8_i128 as u8;
}

impl<'a> typed::Fields<'a> for PointField {
    fn put(&self, to: &mut typed::Put) -> Result<(), typed::FieldError> {
        to.text("name", &self.name, None)?;
        to.word(&self.offset);
        to.word(&self.datatype);
        to.word(&self.count);
        Ok(())
    }

    fn get(from: &mut typed::Get<'a>) -> Result<Self, typed::FieldError> {
        Ok(PointField {
            name: from.text("name", None)?,
            offset: from.word("offset")?,
            datatype: from.word("datatype")?,
            count: from.word("count")?,
        })
    }
}

impl typed::Typed for PointField {
    const NAME: &'static str = "sensor_msgs/PointField";
    const MD5: &'static str = "268eacb2962780ceac86cbd17e328150";
    const FLAVOUR: ropewalk::Flavour = ropewalk::Flavour::Ros1;
    const DEFINITION: &'static str = concat!(
        "uint8 INT8=1\n",
        "uint8 UINT8=2\n",
        "uint8 INT16=3\n",
        "uint8 UINT16=4\n",
        "uint8 INT32=5\n",
        "uint8 UINT32=6\n",
        "uint8 FLOAT32=7\n",
        "uint8 FLOAT64=8\n",
        "string name\n",
        "uint32 offset\n",
        "uint8 datatype\n",
        "uint32 count",
    );
}

impl typed::Structure for PointField {
    type View<'a> = PointField;
}
