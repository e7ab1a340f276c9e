//! Large arrays that a node owns, in pages of the block of a taken message.
//!
//! If `libropewalk_heap.so` is preloaded (`heap.rs`), such an array is not copied when its message is taken. It gets
//! pages of the block that this process maps a second time, privately, and the kernel copies each page that the node
//! writes to. The block is returned when the node has freed the last array of the message, as it frees any array.

use crate::codec;
use crate::error::Outcome;
use crate::host::Heap;
use crate::typesupport::Type;
use std::ffi::c_void;
use std::sync::Arc;

/// Arrays of a subscription's messages that nodes own.
#[derive(Debug, Default)]
pub(crate) struct Owned {
    /// Each message with owned arrays holds a clone of this handle.
    messages: Arc<()>,
}

/// A message with owned arrays.
#[derive(Debug)]
struct Held {
    message: ropewalk::Message,
    _counted: Arc<()>,
}

/// Dropped when an array is freed.
struct Array {
    _pages: bus::OwnPart,
    _held: Arc<Held>,
}

/// # Safety
/// `array` was made by [`Owned::read`], for this call.
unsafe extern "C" fn freed(array: *mut c_void) {
    // SAFETY: upheld by the caller.
    drop(unsafe { Box::from_raw(array.cast::<Array>()) });
}

impl Owned {
    /// Number of messages with arrays that nodes own.
    pub(crate) fn count(&self) -> usize {
        Arc::strong_count(&self.messages) - 1
    }

    /// Reads a message that was taken.
    ///
    /// # Safety
    /// `message` has this type, is initialised, and is not shared.
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
            // SAFETY: this function no longer uses the array once it is adopted.
            if unsafe { heap.adopt(start, len, freed, array.cast()) } {
                return Some(start);
            }
            // SAFETY: `adopt` failed, so nothing else has the array.
            drop(unsafe { Box::from_raw(array) });
            None
        };
        // SAFETY: upheld by the caller; the pages stay mapped until they are freed.
        unsafe { codec::adopt(ty, from.control(), from.bus(), message, &mut adopt) }
    }
}
