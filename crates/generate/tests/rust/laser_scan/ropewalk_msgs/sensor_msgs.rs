// Made by `ropewalk gen rust`; do not edit.
//! The types of sensor_msgs.

use ropewalk::typed;

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
