//! Messages as CDR, which `rmw_serialize` returns and recordings hold.

use super::MessageError;
use crate::typesupport::{Message, Type};
use std::ffi::c_void;

impl Type {
    /// Returns the message as CDR: little-endian, with its encapsulation header.
    ///
    /// # Safety
    /// As [`sizes`](Self::sizes).
    pub(crate) unsafe fn serialize(&self, message: Message) -> Result<Vec<u8>, MessageError> {
        // SAFETY: upheld by the caller.
        let sizes = unsafe { self.sizes(message) }?;
        let mut control = vec![0; sizes.control];
        let mut parts: Vec<_> = sizes.parts().iter().map(|len| vec![0; *len]).collect();
        // SAFETY: upheld by the caller.
        unsafe { self.write(message, &mut control, parts.iter_mut().map(Vec::as_mut_slice)) }?;
        let parts: Vec<_> = parts.iter().map(Vec::as_slice).collect();
        Ok(self.schema().join_cdr(&control, &parts)?)
    }

    /// Reads CDR of either byte order into an initialized message.
    ///
    /// # Safety
    /// As [`read`](Self::read).
    pub(crate) unsafe fn deserialize(&self, bytes: &[u8], message: *mut c_void) -> Result<(), MessageError> {
        let split = self.schema().split_cdr(bytes)?.to_parts();
        // SAFETY: upheld by the caller.
        unsafe { self.read(&split.control, &split.slices(), message) }
    }
}
