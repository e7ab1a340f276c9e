//! Messages that a publisher lends.
//!
//! If `libropewalk_heap.so` is preloaded (`heap.rs`), the arrays of a lent message have room in a block, as much as
//! they had in the previous message. Data that a node writes there is published without a copy. If the arrays outgrow the
//! room or lie elsewhere when the message is published, the message is published like any other.

use super::{make, unknown};
use crate::error::{Failure, Outcome};
use crate::graph::lock;
use crate::host::Heap;
use crate::typesupport::Type;
use crate::walk::{Instance, Placed, Shape};
use std::ffi::c_void;
use std::sync::Mutex;

/// Spare bytes for strings and small fields that grow since the previous message.
const SLACK: usize = 256;

/// The loans of a publisher.
#[derive(Debug, Default)]
pub(crate) struct Lent(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// Loans that are out, with their addresses: a few.
    out: Vec<(usize, Loan)>,
    /// Shape of the last message.
    last: Option<Shape>,
    /// Room that a node moved out of a message and still uses.
    escaped: Vec<(Address, bus::Kept)>,
}

#[derive(Debug, Clone, Copy)]
struct Address(*mut u8);

// SAFETY: this is only compared as an address and never dereferenced.
unsafe impl Send for Address {}

/// A message that a node fills.
#[derive(Debug)]
pub(crate) struct Loan {
    /// Dropped first: arrays return their room before the message is dropped.
    room: Option<Room>,
    instance: Instance,
}

/// Room for a message's arrays.
#[derive(Debug)]
struct Room {
    /// Present until the message is published.
    block: Option<bus::Loan>,
    /// Array `i` lies in data part `i`.
    placed: Vec<Placed>,
    heap: Heap,
}

impl Lent {
    /// Lends a new message.
    pub(super) fn lend(&self, ty: &Type, publisher: &bus::Publisher) -> Outcome<*mut c_void> {
        let instance = make(ty)?;
        let at = instance.as_ptr();
        let mut inner = lock(&self.0);
        let last = inner.last.clone();
        let room = Heap::find().zip(last).and_then(|(heap, last)| {
            inner.escaped.retain(|(start, _)| heap.is_claimed(start.0));
            room(ty, at, publisher, heap, &last)
        });
        inner.out.push((at.addr(), Loan { room, instance }));
        Ok(at)
    }

    pub(super) fn take_back(&self, message: *mut c_void) -> Outcome<Loan> {
        let mut inner = lock(&self.0);
        let place = inner.out.iter().position(|(at, _)| *at == message.addr());
        let (_, loan) = place
            .map(|i| inner.out.swap_remove(i))
            .ok_or_else(|| unknown(message))?;
        inner.escaped.extend(loan.escaped());
        Ok(loan)
    }

    /// Returns the block with the whole message, if its arrays lie in their room. The next message gets as much room as
    /// this one needs.
    pub(super) fn written(&self, ty: &Type, loan: &mut Loan) -> Outcome<Option<bus::Loan>> {
        if Heap::find().is_none() {
            return Ok(None);
        }
        let message = loan.message();
        // SAFETY: the loan's message has this type and is no longer shared.
        let shape = unsafe { ty.shape(message) };
        let block = match (&mut loan.room, &shape) {
            (Some(room), Some(shape)) => room.written(ty, message, shape)?,
            _ => None,
        };
        lock(&self.0).last = shape;
        Ok(block)
    }
}

/// Places the arrays of a message in a block. If that is not possible, returns `None` and changes nothing: the arrays
/// then live on the heap.
fn room(
    ty: &Type,
    message: *mut c_void,
    publisher: &bus::Publisher,
    heap: Heap,
    last: &Shape,
) -> Option<Room> {
    let bytes: Vec<usize> = last.long.iter().map(|l| l.bytes).collect();
    let block = publisher.loan(last.control + SLACK, &bytes).ok()?;
    let parts: Vec<_> = (0..bytes.len()).filter_map(|i| block.part_ptr(i)).collect();
    let mut room = Room {
        block: Some(block),
        placed: Vec::new(),
        heap,
    };
    for (long, start) in last.long.iter().zip(parts) {
        let start = start.cast_mut();
        if !heap.claim(start, long.bytes) {
            return None;
        }
        // SAFETY: a new message of this type; the part belongs to the block, is aligned to 64 bytes, and is claimed.
        match unsafe { ty.place(message, *long, start) } {
            Some(placed) => room.placed.push(placed),
            None => {
                heap.release(start);
                return None;
            }
        }
    }
    Some(room)
}

impl Loan {
    pub(super) fn message(&self) -> *mut c_void {
        self.instance.as_ptr()
    }

    /// Room that a node moved out of the message and did not free. Its block stays.
    fn escaped(&self) -> Vec<(Address, bus::Kept)> {
        let Some(room) = &self.room else {
            return Vec::new();
        };
        let gone = room.placed.iter().filter(|p| {
            // SAFETY: the message lives, and nothing else uses it.
            let in_place = unsafe { p.is_in_place() };
            !in_place && room.heap.is_claimed(p.start())
        });
        let kept = gone.filter_map(|p| Some((Address(p.start()), room.block.as_ref()?.keep())));
        kept.collect()
    }
}

impl Room {
    /// Returns the block, with control part and lengths, if all arrays that are data parts lie in it.
    fn written(&mut self, ty: &Type, message: *mut c_void, shape: &Shape) -> Outcome<Option<bus::Loan>> {
        let Some(block) = &mut self.block else {
            return Ok(None);
        };
        let long = &shape.long;
        let same = long.iter().map(|l| l.step).eq(self.placed.iter().map(Placed::step))
            // SAFETY: the message lives, and nothing else uses it; likewise below.
            && self.placed.iter().all(|p| unsafe { p.is_in_place() });
        // An array in place never exceeds its room.
        let fits = same
            && block.shrink_control(shape.control)
            && long
                .iter()
                .enumerate()
                .all(|(i, l)| block.shrink_part(i, l.bytes));
        if !fits {
            return Ok(None);
        }
        let (control, parts) = block.split_mut();
        // SAFETY: as above. Data part `i` is the room of the array that becomes it, so `write` leaves it as it is.
        unsafe { ty.write(message, control, parts) }.map_err(Failure::error)?;
        self.empty();
        Ok(self.block.take())
    }

    /// Takes the room from the arrays.
    fn empty(&mut self) {
        for placed in self.placed.drain(..) {
            // SAFETY: the message lives: it is dropped after its room. Arrays that were moved out of it stay claimed
            // until they are freed.
            unsafe {
                if placed.is_in_place() {
                    placed.take_back();
                    self.heap.release(placed.start());
                }
            }
        }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.empty();
    }
}
