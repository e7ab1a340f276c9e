//! Layout of a fixed-size type in the three encodings.
//!
//! *Packed* is ROS 1 (no padding), *natural* is the layout of a C compiler (data parts), CDR aligns every word to its
//! own size from the start of the message. In XCDR1 a struct has no padding at its end, so that natural and CDR layout
//! agree only for elements made of equal words.

use crate::definition::Arity;
use crate::types::{Field, FieldType};

/// A run of equal words at a fixed place of a fixed-size type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    /// Size of one word: 1, 2, 4 or 8. Zero for the byte that an empty message takes only in CDR.
    pub(crate) word: u8,
    /// Number of words.
    pub(crate) count: u32,
    /// Offset in the packed layout.
    pub(crate) packed: u32,
    /// Offset in the natural layout.
    pub(crate) natural: u32,
}

impl Run {
    pub(crate) fn len(&self) -> usize {
        self.word as usize * self.count as usize
    }
}

/// Layout of a fixed-size type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fixed {
    /// Bytes in ROS 1 form.
    pub(crate) packed: u32,
    /// Bytes in natural layout, with the padding after the last field.
    pub(crate) natural: u32,
    /// Alignment in natural layout.
    pub(crate) align: u8,
    /// Its words, in order.
    pub(crate) runs: Vec<Run>,
}

impl Fixed {
    pub(crate) fn words(word: u8, count: u32) -> Self {
        let len = u32::from(word) * count;
        let runs = vec![Run {
            word,
            count,
            packed: 0,
            natural: 0,
        }];
        Fixed {
            packed: len,
            natural: len,
            align: word,
            runs,
        }
    }

    /// Whether natural and packed layout differ.
    pub(crate) fn padded(&self) -> bool {
        self.packed != self.natural
    }

    /// The word size, if the type is one run of equal words: then an array has the same bytes in all encodings.
    pub(crate) fn uniform(&self) -> Option<u8> {
        match self.runs.as_slice() {
            [run] if run.word > 0 && !self.padded() => Some(run.word),
            _ => None,
        }
    }
}

/// Lays fields out one after another; `None` if one of them varies in size.
///
/// Call only within the limits on leaves and size, which bound the work and keep the sums below 2^32.
pub(crate) fn lay_out(fields: &[Field]) -> Option<Fixed> {
    let mut out = Fixed {
        packed: 0,
        natural: 0,
        align: 1,
        runs: Vec::new(),
    };
    for field in fields {
        let count = match field.arity {
            Arity::One => 1,
            Arity::Fixed(n) => n,
            Arity::Bounded(_) | Arity::Unbounded => return None,
        };
        match &field.ty {
            FieldType::Primitive(p) => {
                let (word, per) = p.words();
                if count > 0 {
                    append(&mut out, &Fixed::words(word, per * count));
                }
            }
            FieldType::String { .. } | FieldType::WString { .. } => return None,
            FieldType::Message(m) => {
                let inner = m.measure.fixed.as_deref()?;
                for _ in 0..count {
                    append(&mut out, inner);
                }
            }
        }
    }
    if out.runs.is_empty() && fields.is_empty() {
        out.runs.push(Run {
            word: 0,
            count: 1,
            packed: 0,
            natural: 0,
        });
    }
    out.natural = out.natural.next_multiple_of(out.align.into());
    Some(out)
}

fn append(out: &mut Fixed, inner: &Fixed) {
    let start = out.natural.next_multiple_of(inner.align.into());
    for run in &inner.runs {
        let run = Run {
            packed: out.packed + run.packed,
            natural: start + run.natural,
            ..*run
        };
        match out.runs.last_mut() {
            Some(last)
                if last.word == run.word
                    && last.packed as usize + last.len() == run.packed as usize
                    && last.natural as usize + last.len() == run.natural as usize =>
            {
                last.count += run.count;
            }
            _ => out.runs.push(run),
        }
    }
    out.natural = start + inner.natural;
    out.packed += inner.packed;
    out.align = out.align.max(inner.align);
}

/// Copies elements from packed into natural layout; padding becomes zero.
///
/// Both slices hold the same number of elements.
pub(crate) fn packed_to_natural(fixed: &Fixed, from: &[u8], to: &mut [u8]) {
    if !fixed.padded() {
        to.copy_from_slice(from);
        return;
    }
    for (src, dst) in from
        .chunks_exact(fixed.packed as usize)
        .zip(to.chunks_exact_mut(fixed.natural as usize))
    {
        dst.fill(0);
        for run in &fixed.runs {
            let (p, n, len) = (run.packed as usize, run.natural as usize, run.len());
            dst[n..n + len].copy_from_slice(&src[p..p + len]);
        }
    }
}

/// Copies elements from natural into packed layout, ignoring padding.
///
/// Both slices hold the same number of elements.
pub(crate) fn natural_to_packed(fixed: &Fixed, from: &[u8], to: &mut [u8]) {
    if !fixed.padded() {
        to.copy_from_slice(from);
        return;
    }
    for (src, dst) in from
        .chunks_exact(fixed.natural as usize)
        .zip(to.chunks_exact_mut(fixed.packed as usize))
    {
        for run in &fixed.runs {
            let (p, n, len) = (run.packed as usize, run.natural as usize, run.len());
            dst[p..p + len].copy_from_slice(&src[n..n + len]);
        }
    }
}
