// Made by `ropewalk gen rust`; do not edit.
//! The types of t.

use ropewalk::typed;

/// t/In
#[derive(Clone, Debug, PartialEq)]
pub struct In {
    pub a: u8,
    pub b: f64,
    pub c: u16,
}

impl Default for In {
    fn default() -> Self {
        In {
            a: Default::default(),
            b: Default::default(),
            c: Default::default(),
        }
    }
}

impl<'a> typed::Fields<'a> for In {
    fn put(&self, to: &mut typed::Put) -> Result<(), typed::FieldError> {
        to.word(&self.a);
        to.word(&self.b);
        to.word(&self.c);
        Ok(())
    }

    fn get(from: &mut typed::Get<'a>) -> Result<Self, typed::FieldError> {
        Ok(In {
            a: from.word("a")?,
            b: from.word("b")?,
            c: from.word("c")?,
        })
    }
}

impl Copy for In {}

impl typed::Element for In {
    const SIZE: usize = 24;
    const ALIGN: usize = 8;

    fn load(bytes: &[u8]) -> Self {
        In {
            a: typed::load_at(bytes, 0),
            b: typed::load_at(bytes, 8),
            c: typed::load_at(bytes, 16),
        }
    }

    fn store(&self, bytes: &mut [u8]) {
        if let Some(bytes) = bytes.get_mut(..24) {
            bytes.fill(0);
        }
        typed::store_at(&self.a, bytes, 0);
        typed::store_at(&self.b, bytes, 8);
        typed::store_at(&self.c, bytes, 16);
    }
}

impl typed::Typed for In {
    const NAME: &'static str = "t/In";
    const MD5: &'static str = "f434774755d86e8e16373b4f4bfc8b88";
    const FLAVOUR: ropewalk::Flavour = ropewalk::Flavour::Ros1;
    const DEFINITION: &'static str = concat!(
        "uint8 a\n",
        "float64 b\n",
        "uint16 c",
    );
}

impl typed::Structure for In {
    type View<'a> = In;
}

/// t/T
#[derive(Clone, Debug, PartialEq)]
pub struct T<'a> {
    pub f: u8,
    pub x: typed::Bulk<'a, super::t::In>,
    pub y: [super::t::In; 1],
    pub e: super::std_msgs::Empty,
    pub t: typed::Bulk<'a, typed::RosTime>,
}

impl<'a> Default for T<'a> {
    fn default() -> Self {
        T {
            f: Default::default(),
            x: Default::default(),
            y: std::array::from_fn(|_| Default::default()),
            e: Default::default(),
            t: Default::default(),
        }
    }
}

impl<'a> typed::Fields<'a> for T<'a> {
    fn put(&self, to: &mut typed::Put) -> Result<(), typed::FieldError> {
        to.word(&self.f);
        to.bulk("x", &self.x, None)?;
        for element in &self.y { to.message("y", element)?; }
        to.message("e", &self.e)?;
        to.bulk("t", &self.t, None)?;
        Ok(())
    }

    fn get(from: &mut typed::Get<'a>) -> Result<Self, typed::FieldError> {
        Ok(T {
            f: from.word("f")?,
            x: from.bulk("x", None)?,
            y: from.array(|from| from.message())?,
            e: from.message()?,
            t: from.bulk("t", None)?,
        })
    }
}

impl typed::Typed for T<'_> {
    const NAME: &'static str = "t/T";
    const MD5: &'static str = "15f00e78681a75f7f58e20fa1c849670";
    const FLAVOUR: ropewalk::Flavour = ropewalk::Flavour::Ros1;
    const DEFINITION: &'static str = concat!(
        "bool f\n",
        "In[] x\n",
        "In[1] y\n",
        "std_msgs/Empty e\n",
        "time[] t\n",
        "================================================================================\n",
        "MSG: t/In\n",
        "uint8 a\n",
        "float64 b\n",
        "uint16 c\n",
        "================================================================================\n",
        "MSG: std_msgs/Empty\n",
    );
}

impl typed::Structure for T<'static> {
    type View<'a> = T<'a>;
}
