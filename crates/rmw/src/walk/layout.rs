//! Elements of fixed size: where their words lie in memory, in a data part (natural C layout) and in a control part
//! (packed).

/// Words that are contiguous in all three layouts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) memory: usize,
    pub(super) natural: usize,
    pub(super) packed: usize,
    pub(super) len: usize,
    pub(super) bools: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Element {
    /// Bytes from one element to the next in memory, in a data part and in a control part.
    pub(super) stride: usize,
    pub(super) natural: usize,
    pub(super) packed: usize,
    /// Alignment in a data part.
    pub(super) align: usize,
    pub(super) runs: Vec<Run>,
}

impl Element {
    /// A word.
    pub(super) fn word(len: usize, bools: bool) -> Self {
        let run = Run {
            memory: 0,
            natural: 0,
            packed: 0,
            len,
            bools,
        };
        Self {
            stride: len,
            natural: len,
            packed: len,
            align: len,
            runs: vec![run],
        }
    }

    /// A structure of `stride` bytes in memory, without fields yet.
    pub(super) fn structure(stride: usize) -> Self {
        Self {
            stride,
            natural: 0,
            packed: 0,
            align: 1,
            runs: Vec::new(),
        }
    }

    /// Appends a field at `memory` with the layout `inner`, as the schema does (`schema/src/layout.rs`).
    pub(super) fn append(&mut self, inner: &Element, memory: usize) {
        let start = self.natural.next_multiple_of(inner.align);
        for run in &inner.runs {
            let run = Run {
                memory: memory + run.memory,
                natural: start + run.natural,
                packed: self.packed + run.packed,
                ..*run
            };
            match self.runs.last_mut() {
                Some(last)
                    if last.bools == run.bools
                        && last.memory + last.len == run.memory
                        && last.natural + last.len == run.natural
                        && last.packed + last.len == run.packed =>
                {
                    last.len += run.len;
                }
                _ => self.runs.push(run),
            }
        }
        self.natural = start + inner.natural;
        self.packed += inner.packed;
        self.align = self.align.max(inner.align);
    }

    /// Completes the layout. Call it after the last field.
    pub(super) fn end(&mut self) {
        self.natural = self.natural.next_multiple_of(self.align);
    }

    /// Whether an array has the same bytes in memory and in a data part, apart from the content of padding.
    pub(super) fn natural_in_memory(&self) -> bool {
        self.stride == self.natural && self.runs.iter().all(|r| r.memory == r.natural)
    }

    /// Whether an array has the same bytes in memory and in a control part.
    pub(super) fn packed_in_memory(&self) -> bool {
        self.stride == self.packed && self.runs.iter().all(|r| r.memory == r.packed)
    }

    /// Whether an array has the same bytes in memory and in the block: in a data part (`natural`) or a control part.
    pub(super) fn in_memory(&self, natural: bool) -> bool {
        match natural {
            true => self.natural_in_memory(),
            false => self.packed_in_memory(),
        }
    }

    /// Whether an element in a data part has padding.
    pub(super) fn padded(&self) -> bool {
        self.natural != self.packed
    }

    pub(super) fn has_bools(&self) -> bool {
        self.runs.iter().any(|r| r.bools)
    }
}
