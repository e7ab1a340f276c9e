//! Blocks that are being written.

use crate::pointer::{array, consume, give, handle, invalid, output, places, set};
use crate::status::{Failure, Status, free, guard};

/// A block that is being written: the control part and the data parts of a future message.
pub struct Loan(pub(crate) bus::Loan);

/// Bytes to write in place.
#[repr(C)]
pub struct MutableBytes {
    /// Address of the first byte.
    pub data: *mut u8,
    /// Number of bytes.
    pub len: usize,
}

/// Returns everything that `ropewalk_loan_control` and `ropewalk_loan_part` return, at once. `parts` has room
/// for `capacity` data parts (there are at most 32), and `count` gets their number.
/// `ROPEWALK_STATUS_BUFFER_TOO_SMALL` if there are more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_loan_content(
    loan: *const Loan,
    control: *mut MutableBytes,
    parts: *mut MutableBytes,
    capacity: usize,
    count: *mut usize,
) -> Status {
    guard(|| {
        output(control, "control")?;
        // SAFETY: the crate's contract.
        let loan = unsafe { handle(loan, "loan") }?;
        let part = |i| MutableBytes {
            data: loan.0.part_ptr(i).unwrap_or(std::ptr::null()).cast_mut(),
            len: loan.0.part_len(i),
        };
        let whole = MutableBytes {
            data: loan.0.control_ptr(),
            len: loan.0.control_len(),
        };
        // SAFETY: the crate's contract; `control` was checked.
        unsafe {
            set(control, whole);
            places(parts, capacity, count, loan.0.part_count(), part)
        }
    })
}

/// Returns where to write the control part. Its initial content is undefined.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_loan_control(
    loan: *const Loan,
    data: *mut *mut u8,
    len: *mut usize,
) -> Status {
    guard(|| {
        output(data, "data")?;
        // SAFETY: the crate's contract.
        let loan = unsafe { handle(loan, "loan") }?;
        // SAFETY: the crate's contract.
        unsafe {
            set(data, loan.0.control_ptr());
            set(len, loan.0.control_len());
        }
        Ok(Status::Ok)
    })
}

/// Returns where to write data part `i`, aligned to 64 bytes. Its initial content is undefined.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_loan_part(
    loan: *const Loan,
    i: usize,
    data: *mut *mut u8,
    len: *mut usize,
) -> Status {
    guard(|| {
        output(data, "data")?;
        // SAFETY: the crate's contract.
        let loan = unsafe { handle(loan, "loan") }?;
        let Some(start) = loan.0.part_ptr(i) else {
            let count = loan.0.part_count();
            return Err(invalid(&format!(
                "data part {i}: the loan has {count}, counted from 0"
            )));
        };
        // SAFETY: the crate's contract.
        unsafe {
            set(data, start.cast_mut());
            set(len, loan.0.part_len(i));
        }
        Ok(Status::Ok)
    })
}

/// Truncates the control part to its first `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_loan_shrink_control(loan: *mut Loan, len: usize) -> Status {
    guard(|| {
        // SAFETY: the crate's contract: a loan is filled by one thread at a time.
        let loan = unsafe { loan.as_mut() }.ok_or_else(|| invalid("the loan is NULL"))?;
        if loan.0.shrink_control(len) {
            return Ok(Status::Ok);
        }
        let have = loan.0.control_len();
        Err(invalid(&format!(
            "a control part of {have} bytes cannot shrink to {len}"
        )))
    })
}

/// Returns a loan unpublished.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_loan_free(loan: *mut Loan) {
    // SAFETY: the crate's contract.
    free(|| drop(unsafe { consume(loan, "loan") }));
}

/// Loans a block through `reserve`.
///
/// # Safety
/// As for the crate.
pub(crate) unsafe fn lend(
    control_len: usize,
    part_lens: *const usize,
    part_count: usize,
    out: *mut *mut Loan,
    reserve: impl FnOnce(usize, &[usize]) -> Result<bus::Loan, bus::LoanError>,
) -> Result<Status, Failure> {
    output(out, "out")?;
    // SAFETY: by this function's contract.
    let lens = unsafe { array(part_lens, part_count, "array of part lengths") }?;
    let loan = reserve(control_len, lens)?;
    // SAFETY: by this function's contract; `out` was checked.
    unsafe { give(Loan(loan), out) };
    Ok(Status::Ok)
}
