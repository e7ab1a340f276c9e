//! Messages in blocks that will be published. The message's `_loan` says which block that is and which arrays
//! are in it: `(sender, loan, ((owner, field, array, dtype, count), ...))`, a tuple that Python's garbage
//! collector can follow.

use super::write::{View, Writer, unfilled};
use super::{Codec, THRESHOLD};
use crate::fault::raise;
use crate::message::{Loan, Part};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PySlice, PyTuple};

/// Texts may grow by this many bytes after their block was allocated.
const SLACK: usize = 256;

impl Codec {
    /// Reserves a block with `reserve` for the message; `sender` is the publisher, client or server. Its long
    /// arrays become views of the block.
    pub(crate) fn allocate<'py>(
        &self,
        message: &Bound<'py, PyAny>,
        sender: &Bound<'py, PyAny>,
        reserve: impl FnOnce(usize, &[usize]) -> PyResult<bus::Loan>,
    ) -> PyResult<()> {
        let py = message.py();
        self.expect(message)?;
        drop_block(message)?;
        let writer = self.written(message, Writer::with_sizes(THRESHOLD))?;
        let lens: Vec<usize> = writer.lifts.iter().map(|lift| lift.len).collect();
        let loan = Loan::new(reserve(writer.control.len() + SLACK, &lens)?);
        let mut views = Vec::new();
        for (i, lift) in writer.lifts.iter().enumerate() {
            let array = Part::of_loan(&loan, i)?.array(py, None, &lift.dtype)?;
            if let Some(source) = &lift.source {
                array.set_item(PySlice::full(py), source)?;
            }
            lift.owner.setattr(lift.field.bind(py), &array)?;
            views.push((&lift.owner, &lift.field, array, &lift.dtype, lift.count));
        }
        let block = (sender, Bound::new(py, loan)?, PyTuple::new(py, views)?);
        message.setattr(intern!(py, "_loan"), block)
    }

    /// Returns the message as a block to send: its own if it was allocated, otherwise one from `reserve`,
    /// into which everything is copied.
    pub(crate) fn finish<'py>(
        &self,
        message: &Bound<'py, PyAny>,
        sender: &Bound<'py, PyAny>,
        reserve: impl FnOnce(usize, &[usize]) -> PyResult<bus::Loan>,
    ) -> PyResult<bus::Loan> {
        self.expect(message)?;
        let block = message.getattr(intern!(message.py(), "_loan"))?;
        if block.is_none() {
            return self.copied(message, reserve);
        }
        if !block.get_item(0)?.is(sender) {
            let text = "the message was allocated by another publisher";
            return Err(raise("ContentError", text));
        }
        let views = views(&block)?;
        let writer = self.written(message, Writer::new(THRESHOLD, &views))?;
        let mut there = writer.lifts.len() == views.len();
        for (lift, view) in writer.lifts.iter().zip(&views) {
            there &= lift.in_place || same_place(lift.source.as_ref(), &view.array)?;
        }
        if !there {
            let text =
                "an array was replaced since its block was allocated: fill it in place, or allocate again";
            return Err(raise("ContentError", text));
        }
        block.get_item(1)?.cast::<Loan>()?.get().finish(&writer.control)
    }

    fn copied<'py>(
        &self,
        message: &Bound<'py, PyAny>,
        reserve: impl FnOnce(usize, &[usize]) -> PyResult<bus::Loan>,
    ) -> PyResult<bus::Loan> {
        let py = message.py();
        let writer = self.written(message, Writer::new(THRESHOLD, &[]))?;
        let mut sources = Vec::new();
        for lift in &writer.lifts {
            let source = lift.source.as_ref().ok_or_else(unfilled)?;
            sources.push((source, &lift.dtype));
        }
        let lens: Vec<usize> = writer.lifts.iter().map(|lift| lift.len).collect();
        let loan = Loan::new(reserve(writer.control.len(), &lens)?);
        for (i, (source, dtype)) in sources.into_iter().enumerate() {
            let array = Part::of_loan(&loan, i)?.array(py, None, dtype)?;
            array.set_item(PySlice::full(py), source)?;
        }
        loan.finish(&writer.control)
    }
}

/// Gives up a message's block. Arrays in it become sizes again, and references to them become read-only.
pub(crate) fn drop_block(message: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = message.py();
    let block = message.getattr(intern!(py, "_loan"))?;
    if block.is_none() {
        return Ok(());
    }
    let sized = super::tools::tools(py)?.sized.bind(py);
    for view in views(&block)? {
        view.array.call_method1(intern!(py, "setflags"), (false,))?;
        let field = view.field.cast::<pyo3::types::PyString>()?;
        if view.owner.getattr(field)?.is(&view.array) {
            view.owner.setattr(field, sized.call1((view.count,))?)?;
        }
    }
    message.setattr(intern!(py, "_loan"), py.None())
}

fn views<'py>(block: &Bound<'py, PyAny>) -> PyResult<Vec<View<'py>>> {
    let all = block.get_item(2)?;
    let views = all.cast::<PyTuple>()?.iter().map(|view| {
        Ok(View {
            owner: view.get_item(0)?,
            field: view.get_item(1)?,
            array: view.get_item(2)?,
            dtype: view.get_item(3)?,
            count: view.get_item(4)?.extract()?,
        })
    });
    views.collect()
}

fn same_place(a: Option<&Bound<'_, PyAny>>, b: &Bound<'_, PyAny>) -> PyResult<bool> {
    let place = |array: &Bound<'_, PyAny>| {
        let data = array.getattr("__array_interface__")?.get_item("data")?;
        let start: usize = data.get_item(0)?.extract()?;
        let len: usize = array.getattr("nbytes")?.extract()?;
        // A strided array may start there and have the same length.
        let whole: bool = array.getattr("flags")?.get_item("C_CONTIGUOUS")?.extract()?;
        Ok::<_, PyErr>((start, len, whole))
    };
    a.map_or(Ok(false), |a| Ok(place(a)? == place(b)?))
}
