// Made by `ropewalk gen rust`; do not edit.
//! The types of std_srvs.

use ropewalk::typed;

/// std_srvs/SetBoolRequest
#[derive(Clone, Debug, PartialEq)]
pub struct SetBoolRequest {
    pub data: u8,
}

impl Default for SetBoolRequest {
    fn default() -> Self {
        SetBoolRequest {
            data: Default::default(),
        }
    }
}

impl<'a> typed::Fields<'a> for SetBoolRequest {
    fn put(&self, to: &mut typed::Put) -> Result<(), typed::FieldError> {
        to.word(&self.data);
        Ok(())
    }

    fn get(from: &mut typed::Get<'a>) -> Result<Self, typed::FieldError> {
        Ok(SetBoolRequest {
            data: from.word("data")?,
        })
    }
}

impl Copy for SetBoolRequest {}

impl typed::Element for SetBoolRequest {
    const SIZE: usize = 1;
    const ALIGN: usize = 1;

    fn load(bytes: &[u8]) -> Self {
        SetBoolRequest {
            data: typed::load_at(bytes, 0),
        }
    }

    fn store(&self, bytes: &mut [u8]) {
        if let Some(bytes) = bytes.get_mut(..1) {
            bytes.fill(0);
        }
        typed::store_at(&self.data, bytes, 0);
    }
}

/// std_srvs/SetBoolResponse
#[derive(Clone, Debug, PartialEq)]
pub struct SetBoolResponse {
    pub success: u8,
    pub message: ::std::string::String,
}

impl Default for SetBoolResponse {
    fn default() -> Self {
        SetBoolResponse {
            success: Default::default(),
            message: Default::default(),
        }
    }
}

impl<'a> typed::Fields<'a> for SetBoolResponse {
    fn put(&self, to: &mut typed::Put) -> Result<(), typed::FieldError> {
        to.word(&self.success);
        to.text("message", &self.message, None)?;
        Ok(())
    }

    fn get(from: &mut typed::Get<'a>) -> Result<Self, typed::FieldError> {
        Ok(SetBoolResponse {
            success: from.word("success")?,
            message: from.text("message", None)?,
        })
    }
}

/// The service std_srvs/SetBool.
#[derive(Clone, Copy, Debug)]
pub struct SetBool;

impl typed::Typed for SetBool {
    const NAME: &'static str = "std_srvs/SetBool";
    const MD5: &'static str = "09fb03525b03e7ea1fd3992bafd87e16";
    const FLAVOUR: ropewalk::Flavour = ropewalk::Flavour::Ros1;
    const DEFINITION: &'static str = concat!(
        "bool data\n",
        "---\n",
        "bool success\n",
        "string message",
    );
}

impl typed::ServiceType for SetBool {
    type Request<'a> = SetBoolRequest;
    type Response<'a> = SetBoolResponse;
}
