//! Values: to the bytes and flags that servers keep, and back.

use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyMemoryView};

use crate::errors::{ILLEGAL_INPUT, exception};

/// How a client makes bytes of values.
#[derive(Debug)]
pub struct Codec {
    /// An object with pymemcache's `serialize(key, value)` and `deserialize(key, value, flags)`. Without one, values
    /// come back as `bytes`.
    pub serde: Option<Py<PyAny>>,
    /// The encoding of a `str` that is stored without a serde, and of what `str()` makes of other objects.
    pub encoding: String,
}

impl Codec {
    /// Returns another reference to the same.
    pub fn clone_ref(&self, py: Python<'_>) -> Codec {
        let serde = self.serde.as_ref().map(|serde| serde.clone_ref(py));
        Codec { serde, encoding: self.encoding.clone() }
    }

    /// Returns the bytes and flags to store; `flags` replaces what the serde says.
    ///
    /// # Errors
    /// Those of the serde; when a `str` cannot be encoded.
    pub fn dump<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        value: &Bound<'py, PyAny>,
        flags: Option<u32>,
    ) -> PyResult<(Bound<'py, PyBytes>, u32)> {
        let Some(serde) = &self.serde else {
            return Ok((self.bytes(value)?, flags.unwrap_or(0)));
        };
        let made = serde.bind(key.py()).call_method1("serialize", (key, value))?;
        let (value, own): (Bound<'py, PyAny>, u32) = made.extract()?;
        Ok((self.bytes(&value)?, flags.unwrap_or(own)))
    }

    /// Returns the object that a value stands for.
    ///
    /// # Errors
    /// Those of the serde.
    #[inline]
    pub fn load<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        value: &[u8],
        flags: u32,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = key.py();
        let bytes = PyBytes::new(py, value);
        match &self.serde {
            None => Ok(bytes.into_any()),
            Some(serde) => serde.bind(py).call_method1("deserialize", (key, bytes, flags)),
        }
    }

    fn bytes<'py>(&self, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        if let Ok(bytes) = value.cast::<PyBytes>() {
            return Ok(bytes.clone());
        }
        let py = value.py();
        if value.is_instance_of::<PyByteArray>() || value.is_instance_of::<PyMemoryView>() {
            return Ok(py.get_type::<PyBytes>().call1((value,))?.cast_into()?);
        }
        let encoded = value.str()?.call_method1("encode", (self.encoding.as_str(),));
        let bytes = encoded.map_err(|error| {
            exception(
                py,
                ILLEGAL_INPUT,
                format!("the value cannot be encoded: {error}; give bytes or a serde"),
            )
        })?;
        Ok(bytes.cast_into()?)
    }
}
