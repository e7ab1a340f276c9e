//! Large arrays of messages that a node owns, in pages of the block that was taken.
//!
//! Where `libropewalk_heap.so` is preloaded (`heap.rs`), such an array is not copied when its message is taken: it gets pages of the block that
//! this process maps once more, for itself alone. A page that the node writes to is copied then, by the kernel. The block is given
//! back when the last of the message's arrays was freed, as a node frees any array.

use crate::codec;
use crate::error::Outcome;
use crate::host::Heap;
use crate::typesupport::Type;
use std::ffi::c_void;
use std::sync::Arc;

/// The arrays that nodes own of a subscription's messages.
#[derive(Debug, Default)]
pub(crate) struct Owned {
    /// Each message of which arrays are owned has another handle.
    messages: Arc<()>,
}

/// A message of which arrays are owned.
#[derive(Debug)]
struct Held {
    message: ropewalk::Message,
    _counted: Arc<()>,
}

/// What ends with an array.
struct Array {
    _pages: bus::OwnPart,
    _held: Arc<Held>,
}

/// # Safety
/// `array` was made by [`Owned::read`], for this call.
unsafe extern "C" fn freed(array: *mut c_void) {
    // SAFETY: of the caller.
    drop(unsafe { Box::from_raw(array.cast::<Array>()) });
}

impl Owned {
    /// How many messages nodes own arrays of.
    pub(crate) fn count(&self) -> usize {
        Arc::strong_count(&self.messages) - 1
    }

    /// Reads a message that was taken.
    ///
    /// # Safety
    /// `message` is of this type, was initialised, and is nobody else's.
    pub(crate) unsafe fn read(
        &self,
        ty: &Type,
        heap: Heap,
        from: ropewalk::Message,
        message: *mut c_void,
    ) -> Outcome {
        let held = Arc::new(Held {
            message: from,
            _counted: self.messages.clone(),
        });
        let from = &held.message;
        let mut adopt = |part| {
            let pages = from.bus().own_part(part).ok()?;
            let (start, len) = (pages.as_ptr(), pages.len());
            let array = Box::into_raw(Box::new(Array {
                _pages: pages,
                _held: held.clone(),
            }));
            // SAFETY: the array is not used here any more once it is adopted.
            if unsafe { heap.adopt(start, len, freed, array.cast()) } {
                return Some(start);
            }
            // SAFETY: nobody else has it.
            drop(unsafe { Box::from_raw(array) });
            None
        };
        // SAFETY: of the caller; the pages are mapped until they are freed.
        unsafe { codec::adopt(ty, from.control(), from.bus(), message, &mut adopt) }
    }
}
