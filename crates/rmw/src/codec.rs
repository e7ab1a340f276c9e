//! Converts messages in memory into blocks of the bus, and back.

use crate::error::{Failure, Outcome};
use crate::typesupport::Type;
use crate::walk::Borrowed;
use std::ffi::c_void;

/// Writes a message into a block: its control part, and a single copy of each bulk array.
///
/// # Safety
/// `message` has this type.
pub(crate) unsafe fn written(
    ty: &Type,
    message: *const c_void,
    loan: impl FnOnce(usize, &[usize]) -> Result<bus::Loan, bus::LoanError>,
) -> Outcome<bus::Loan> {
    // SAFETY: upheld by the caller.
    let sizes = unsafe { ty.sizes(message)? };
    let mut loan = loan(sizes.control, sizes.parts())?;
    let (control, parts) = loan.split_mut();
    // SAFETY: upheld by the caller.
    unsafe { ty.write(message, control, parts)? };
    Ok(loan)
}

/// Returns the control part of a message without data parts.
///
/// # Safety
/// `message` has this type.
pub(crate) unsafe fn control(ty: &Type, message: *const c_void) -> Outcome<Vec<u8>> {
    // SAFETY: upheld by the caller.
    let mut control = vec![0; unsafe { ty.sizes(message)? }.control];
    // SAFETY: likewise.
    unsafe { ty.write(message, &mut control, [])? };
    Ok(control)
}

/// Reads a message that was taken.
///
/// # Safety
/// `message` has this type, is initialised, and is not shared.
pub(crate) unsafe fn read(ty: &Type, control: &[u8], from: &bus::Message, message: *mut c_void) -> Outcome {
    // SAFETY: upheld by the caller.
    unsafe { ty.read(control, &parts(from), message).map_err(Failure::from) }
}

/// As [`read`], but leaves bulk arrays in the block.
///
/// # Safety
/// As [`read`] and [`Type::borrow`].
pub(crate) unsafe fn borrow(
    ty: &Type,
    control: &[u8],
    from: &bus::Message,
    message: *mut c_void,
) -> Outcome<Borrowed> {
    // SAFETY: upheld by the caller.
    unsafe { ty.borrow(control, &parts(from), message).map_err(Failure::from) }
}

/// As [`read`], but large arrays without memory get pages of the block. `adopt` maps the pages of the part with a given
/// number.
///
/// # Safety
/// As [`read`] and [`Type::adopt`].
pub(crate) unsafe fn adopt(
    ty: &Type,
    control: &[u8],
    from: &bus::Message,
    message: *mut c_void,
    adopt: &mut dyn FnMut(usize) -> Option<*mut u8>,
) -> Outcome {
    // SAFETY: upheld by the caller.
    unsafe {
        ty.adopt(control, &parts(from), message, adopt)
            .map_err(Failure::from)
    }
}

fn parts(from: &bus::Message) -> Vec<&[u8]> {
    (0..from.part_count()).map(|i| from.part(i).bytes()).collect()
}
