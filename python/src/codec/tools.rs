//! Functions and classes of Python and numpy, looked up once.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// Functions and classes.
pub(super) struct Tools {
    /// `object.__new__`
    pub(super) new_object: Py<PyAny>,
    /// `tuple.__new__`
    pub(super) new_tuple: Py<PyAny>,
    pub(super) asarray: Py<PyAny>,
    pub(super) frombuffer: Py<PyAny>,
    pub(super) zeros: Py<PyAny>,
    /// `ropewalk._arrays.Sized`
    pub(super) sized: Py<PyAny>,
    /// `ropewalk._arrays.scalar`
    pub(super) scalar: Py<PyAny>,
    /// `ropewalk._arrays.pair`
    pub(super) pair: Py<PyAny>,
    /// `ropewalk._arrays.listed`
    pub(super) listed: Py<PyAny>,
}

static TOOLS: PyOnceLock<Tools> = PyOnceLock::new();

pub(super) fn tools(py: Python<'_>) -> PyResult<&Tools> {
    TOOLS.get_or_try_init(py, || {
        let of = |module: &str, name: &str| py.import(module)?.getattr(name);
        let new = |class: &str| Ok::<_, PyErr>(of("builtins", class)?.getattr("__new__")?.unbind());
        Ok(Tools {
            new_object: new("object")?,
            new_tuple: new("tuple")?,
            asarray: of("numpy", "asarray")?.unbind(),
            frombuffer: of("numpy", "frombuffer")?.unbind(),
            zeros: of("numpy", "zeros")?.unbind(),
            sized: of("ropewalk._arrays", "Sized")?.unbind(),
            scalar: of("ropewalk._arrays", "scalar")?.unbind(),
            pair: of("ropewalk._arrays", "pair")?.unbind(),
            listed: of("ropewalk._arrays", "listed")?.unbind(),
        })
    })
}

/// `numpy.asarray`
pub(crate) fn asarray(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    Ok(tools(py)?.asarray.bind(py))
}
