// Made by `ropewalk gen rust`; do not edit.
//! The types of tf2_msgs.

use ropewalk::typed;

/// tf2_msgs/TFMessage
#[derive(Clone, Debug, PartialEq)]
pub struct TFMessage {
    pub transforms: ::std::vec::Vec<super::geometry_msgs::TransformStamped>,
}

impl Default for TFMessage {
    fn default() -> Self {
        TFMessage {
            transforms: Default::default(),
        }
    }
}

impl<'a> typed::Fields<'a> for TFMessage {
    fn put(&self, to: &mut typed::Put) -> Result<(), typed::FieldError> {
        to.list("transforms", self.transforms.len(), None)?;
        for element in &self.transforms { to.message("transforms", element)?; }
        Ok(())
    }

    fn get(from: &mut typed::Get<'a>) -> Result<Self, typed::FieldError> {
        Ok(TFMessage {
            transforms: from.vec("transforms", None, |from| from.message())?,
        })
    }
}

impl typed::Typed for TFMessage {
    const NAME: &'static str = "tf2_msgs/TFMessage";
    const MD5: &'static str = "94810edda583a504dfda3829e70d7eec";
    const FLAVOUR: ropewalk::Flavour = ropewalk::Flavour::Ros1;
    const DEFINITION: &'static str = concat!(
        "geometry_msgs/TransformStamped[] transforms\n",
        "================================================================================\n",
        "MSG: geometry_msgs/TransformStamped\n",
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

impl typed::Structure for TFMessage {
    type View<'a> = TFMessage;
}
