// Made by `ropewalk gen rust`; do not edit.
//! The types of t.

use ropewalk::typed;

/// t/T
#[derive(Clone, Debug, PartialEq)]
pub struct T<'a> {
    pub a: ::std::string::String,
    pub b: typed::Bulk<'a, i32>,
    pub w: ::std::vec::Vec<u16>,
    pub d: f64,
    pub s: ::std::vec::Vec<::std::string::String>,
    pub h: super::std_msgs::Header,
}

impl<'a> Default for T<'a> {
    fn default() -> Self {
        T {
            a: Default::default(),
            b: Default::default(),
            w: Default::default(),
            d: Default::default(),
            s: Default::default(),
            h: Default::default(),
        }
    }
}

impl<'a> typed::Fields<'a> for T<'a> {
    fn put(&self, to: &mut typed::Put) -> Result<(), typed::FieldError> {
        to.text("a", &self.a, Some(5))?;
        to.bulk("b", &self.b, Some(4))?;
        to.wide("w", &self.w, None)?;
        to.word(&self.d);
        to.list("s", self.s.len(), None)?;
        for element in &self.s { to.text("s", element, None)?; }
        to.message("h", &self.h)?;
        Ok(())
    }

    fn get(from: &mut typed::Get<'a>) -> Result<Self, typed::FieldError> {
        Ok(T {
            a: from.text("a", Some(5))?,
            b: from.bulk("b", Some(4))?,
            w: from.wide("w", None)?,
            d: from.word("d")?,
            s: from.vec("s", None, |from| from.text("s", None))?,
            h: from.message()?,
        })
    }
}

impl typed::Typed for T<'_> {
    const NAME: &'static str = "t/T";
    const MD5: &'static str = "76a073a20f072ecdfc9a1a9b93bf2fd2";
    const FLAVOUR: ropewalk::Flavour = ropewalk::Flavour::Ros2;
    const DEFINITION: &'static str = concat!(
        "string<=5 a\n",
        "int32[<=4] b\n",
        "wstring w\n",
        "float64 d\n",
        "string[] s\n",
        "std_msgs/Header h\n",
        "================================================================================\n",
        "MSG: std_msgs/Header\n",
        "builtin_interfaces/Time stamp\n",
        "string frame_id\n",
        "================================================================================\n",
        "MSG: builtin_interfaces/Time\n",
        "int32 sec\n",
        "uint32 nanosec\n",
    );
}

impl typed::Structure for T<'static> {
    type View<'a> = T<'a>;
}
