//! A block that is being written.

/// The most data parts of a message.
pub const MAX_PARTS: usize = 32;

/// A block that is being written: the control part and the data parts of a message to come.
///
/// Dropping it unpublished gives the memory back.
#[derive(Debug)]
pub struct Loan {}

impl Loan {
    /// The control part.
    pub fn control_mut(&mut self) -> &mut [u8] {
        todo!()
    }

    /// Data part `i`.
    ///
    /// # Panics
    /// If there are not that many parts.
    pub fn part_mut(&mut self, i: usize) -> &mut [u8] {
        let _ = i;
        todo!()
    }

    /// How many data parts there are.
    pub fn part_count(&self) -> usize {
        todo!()
    }

    /// The control part and every data part at once.
    pub fn split_mut(&mut self) -> (&mut [u8], PartsMut<'_>) {
        todo!()
    }

    /// Every data part, in order.
    pub fn parts_mut(&mut self) -> PartsMut<'_> {
        self.split_mut().1
    }
}

/// The data parts of a [`Loan`], in order.
#[derive(Debug)]
pub struct PartsMut<'a> {
    _loan: std::marker::PhantomData<&'a mut [u8]>,
}

impl<'a> Iterator for PartsMut<'a> {
    type Item = &'a mut [u8];

    fn next(&mut self) -> Option<&'a mut [u8]> {
        todo!()
    }
}

/// Why no block could be reserved.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoanError {
    /// More than [`MAX_PARTS`] parts.
    #[error("{count} data parts: at most {MAX_PARTS}")]
    TooManyParts {
        /// How many were asked for.
        count: usize,
    },
    /// The message is larger than the publisher's memory.
    #[error("the message needs {wanted} bytes, the memory limit is {limit}: raise memory_limit")]
    TooLarge {
        /// Bytes of the block.
        wanted: u64,
        /// The publisher's limit.
        limit: u64,
    },
    /// The memory limit is reached, and what is held cannot be reused.
    #[error(
        "no memory for {wanted} bytes: {held} bytes are held by subscribers, {loaned} loaned, of {limit}: \
         raise memory_limit, or hold fewer messages"
    )]
    MemoryShort {
        /// Bytes of the block.
        wanted: u64,
        /// Bytes that subscribers hold.
        held: u64,
        /// Bytes in other loans.
        loaned: u64,
        /// The publisher's limit.
        limit: u64,
    },
    /// The system has no memory to give (cgroup limit, free memory, with a margin).
    #[error("the system has {available} bytes of memory left for {wanted} ({which})")]
    SystemMemory {
        /// Bytes wanted.
        wanted: u64,
        /// Bytes left above the margin.
        available: u64,
        /// The limit that binds.
        which: &'static str,
    },
    /// `RLIMIT_FSIZE` forbids a segment of this size.
    #[error("a segment of {wanted} bytes exceeds the file size limit {limit}: raise ulimit -f")]
    FileSizeLimit {
        /// Bytes of the segment.
        wanted: u64,
        /// The limit.
        limit: u64,
    },
    /// A system call failed.
    #[error("cannot reserve memory ({what}): {source}")]
    System {
        /// What failed.
        what: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
    /// The process was forked after the publisher was made.
    #[error("this publisher belongs to the parent process: make a new one after fork")]
    Forked,
}
