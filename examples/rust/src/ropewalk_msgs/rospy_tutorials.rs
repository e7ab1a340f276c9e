// Made by `ropewalk gen rust`; do not edit.
//! The types of rospy_tutorials.

use ropewalk::typed;

/// rospy_tutorials/AddTwoIntsRequest
#[derive(Clone, Debug, PartialEq)]
pub struct AddTwoIntsRequest {
    pub a: i64,
    pub b: i64,
}

impl Default for AddTwoIntsRequest {
    fn default() -> Self {
        AddTwoIntsRequest {
            a: Default::default(),
            b: Default::default(),
        }
    }
}

impl<'a> typed::Fields<'a> for AddTwoIntsRequest {
    fn put(&self, to: &mut typed::Put) -> Result<(), typed::FieldError> {
        to.word(&self.a);
        to.word(&self.b);
        Ok(())
    }

    fn get(from: &mut typed::Get<'a>) -> Result<Self, typed::FieldError> {
        Ok(AddTwoIntsRequest {
            a: from.word("a")?,
            b: from.word("b")?,
        })
    }
}

impl Copy for AddTwoIntsRequest {}

impl typed::Element for AddTwoIntsRequest {
    const SIZE: usize = 16;
    const ALIGN: usize = 8;

    fn load(bytes: &[u8]) -> Self {
        AddTwoIntsRequest {
            a: typed::load_at(bytes, 0),
            b: typed::load_at(bytes, 8),
        }
    }

    fn store(&self, bytes: &mut [u8]) {
        if let Some(bytes) = bytes.get_mut(..16) {
            bytes.fill(0);
        }
        typed::store_at(&self.a, bytes, 0);
        typed::store_at(&self.b, bytes, 8);
    }
}

/// rospy_tutorials/AddTwoIntsResponse
#[derive(Clone, Debug, PartialEq)]
pub struct AddTwoIntsResponse {
    pub sum: i64,
}

impl Default for AddTwoIntsResponse {
    fn default() -> Self {
        AddTwoIntsResponse {
            sum: Default::default(),
        }
    }
}

impl<'a> typed::Fields<'a> for AddTwoIntsResponse {
    fn put(&self, to: &mut typed::Put) -> Result<(), typed::FieldError> {
        to.word(&self.sum);
        Ok(())
    }

    fn get(from: &mut typed::Get<'a>) -> Result<Self, typed::FieldError> {
        Ok(AddTwoIntsResponse {
            sum: from.word("sum")?,
        })
    }
}

impl Copy for AddTwoIntsResponse {}

impl typed::Element for AddTwoIntsResponse {
    const SIZE: usize = 8;
    const ALIGN: usize = 8;

    fn load(bytes: &[u8]) -> Self {
        AddTwoIntsResponse {
            sum: typed::load_at(bytes, 0),
        }
    }

    fn store(&self, bytes: &mut [u8]) {
        if let Some(bytes) = bytes.get_mut(..8) {
            bytes.fill(0);
        }
        typed::store_at(&self.sum, bytes, 0);
    }
}

/// The service rospy_tutorials/AddTwoInts.
#[derive(Clone, Copy, Debug)]
pub struct AddTwoInts;

impl typed::Typed for AddTwoInts {
    const NAME: &'static str = "rospy_tutorials/AddTwoInts";
    const MD5: &'static str = "6a2e34150c00229791cc89ff309fff21";
    const FLAVOUR: ropewalk::Flavour = ropewalk::Flavour::Ros1;
    const DEFINITION: &'static str = concat!(
        "int64 a\n",
        "int64 b\n",
        "---\n",
        "int64 sum\n",
    );
}

impl typed::ServiceType for AddTwoInts {
    type Request<'a> = AddTwoIntsRequest;
    type Response<'a> = AddTwoIntsResponse;
}
