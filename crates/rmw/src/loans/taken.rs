//! Messages that a subscription lends: bulk arrays stay in the block of the taken message.

use super::{MAX_IN_PLACE, make, unknown};
use crate::codec;
use crate::error::Outcome;
use crate::graph::lock;
use crate::typesupport::Type;
use crate::walk::{Borrowed, Instance};
use std::ffi::c_void;
use std::sync::Mutex;

/// Maximum number of unused messages kept for the next loans.
const MAX_IDLE: usize = 4;

/// The loans of a subscription.
#[derive(Debug, Default)]
pub(crate) struct Taken(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// Loans that are out, with their addresses: a few.
    out: Vec<(usize, Loan)>,
    /// Initialized messages that are not in use.
    idle: Vec<Instance>,
    in_place: usize,
    /// Control part of a message with default values.
    default: Option<Vec<u8>>,
}

/// A message that a node uses. Fields drop in this order: arrays get their own words back before the message is
/// dropped.
#[derive(Debug)]
struct Loan {
    borrowed: Borrowed,
    instance: Instance,
    /// The block that holds the arrays.
    block: Option<ropewalk::Message>,
}

impl Taken {
    /// Number of loans that hold blocks.
    pub(crate) fn count(&self) -> usize {
        lock(&self.0).in_place
    }

    /// Lends a message that was taken. Its arrays stay in place unless too many are out. `others` messages are held in
    /// addition to loans.
    pub(crate) fn lend(&self, ty: &Type, message: ropewalk::Message, others: usize) -> Outcome<*mut c_void> {
        let mut inner = lock(&self.0);
        let instance = match inner.idle.pop() {
            Some(instance) => instance,
            None => make(ty)?,
        };
        let at = instance.as_ptr();
        let mut loan = Loan {
            borrowed: Borrowed::default(),
            instance,
            block: None,
        };
        if message.part_count() > 0 && inner.in_place + others < MAX_IN_PLACE {
            // SAFETY: a message of this type that is not shared. The loan keeps the message and the block longer than
            // what is borrowed.
            loan.borrowed = unsafe { codec::borrow(ty, message.control(), message.bus(), at)? };
            loan.block = Some(message);
            inner.in_place += 1;
        } else {
            // SAFETY: likewise.
            unsafe { codec::read(ty, message.control(), message.bus(), at)? };
        }
        inner.out.push((at.addr(), loan));
        Ok(at)
    }

    /// Makes a message and reads default values into it, for the next [`lend`](Self::lend), which then finds its code in
    /// the processor's caches.
    pub(crate) fn rehearse(&self, ty: &Type) {
        let mut inner = lock(&self.0);
        let Some(instance) = inner.idle.pop().or_else(|| make(ty).ok()) else {
            return;
        };
        let default = inner.default.get_or_insert_with(|| {
            // SAFETY: a message of this type that is not shared.
            let default = make(ty).and_then(|new| unsafe { codec::control(ty, new.as_ptr()) });
            default.unwrap_or_default()
        });
        // SAFETY: likewise. A message with default values has no data parts. An error leaves a valid message.
        let _ = unsafe { ty.borrow(default, &[], instance.as_ptr()) };
        inner.idle.push(instance);
    }

    /// Ends a loan. The message is kept for the next loan, which overwrites its content.
    pub(super) fn take_back(&self, message: *mut c_void) -> Outcome {
        let mut inner = lock(&self.0);
        let place = inner.out.iter().position(|(at, _)| *at == message.addr());
        let (_, loan) = place
            .map(|i| inner.out.swap_remove(i))
            .ok_or_else(|| unknown(message))?;
        let Loan {
            borrowed,
            instance,
            block,
        } = loan;
        drop(borrowed);
        inner.in_place -= usize::from(block.is_some());
        if inner.idle.len() < MAX_IDLE {
            inner.idle.push(instance);
        }
        Ok(())
    }
}
