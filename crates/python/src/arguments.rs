//! Arguments as Python's callers give them: keys, servers, times.

use std::borrow::Cow;
use std::time::Duration;

use larder_client::{Address, KEY_BYTES_MAX, Login, Server};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple};

use crate::errors::{ILLEGAL_INPUT, exception};

/// What a client does to keys before they are sent.
#[derive(Clone, Debug, Default)]
pub struct Keys {
    /// Bytes before every key.
    pub prefix: Vec<u8>,
    /// Whether a `str` may have characters outside ASCII, which are sent in UTF-8.
    pub are_unicode: bool,
}

impl Keys {
    /// Returns the bytes of a key with the prefix.
    ///
    /// # Errors
    /// When it is neither `bytes` nor `str`, or a `str` with characters that are not allowed.
    #[inline]
    pub fn wire<'k>(&self, key: &'k Bound<'_, PyAny>) -> PyResult<Cow<'k, [u8]>> {
        let bytes = bytes_of(key)?;
        if !self.are_unicode && key.is_instance_of::<PyString>() && !bytes.is_ascii() {
            let message = format!("the key {key} has characters outside ASCII; set allow_unicode_keys");
            return Err(exception(key.py(), ILLEGAL_INPUT, message));
        }
        if self.prefix.is_empty() {
            return Ok(Cow::Borrowed(bytes));
        }
        let mut whole = Vec::with_capacity(self.prefix.len() + bytes.len().min(KEY_BYTES_MAX));
        whole.extend_from_slice(&self.prefix);
        whole.extend_from_slice(bytes);
        Ok(Cow::Owned(whole))
    }
}

/// Returns the bytes of a `bytes`, or of a `str` in UTF-8.
///
/// # Errors
/// When it is neither.
#[inline]
pub fn bytes_of<'k>(key: &'k Bound<'_, PyAny>) -> PyResult<&'k [u8]> {
    if let Ok(bytes) = key.cast::<PyBytes>() {
        return Ok(bytes.as_bytes());
    }
    match key.cast::<PyString>() {
        Ok(text) => Ok(text.to_str()?.as_bytes()),
        Err(_) => Err(PyTypeError::new_err(format!("bytes or str is needed, not {}", key.get_type()))),
    }
}

/// Returns the servers of a client: one, or a list of them.
///
/// # Errors
/// When one cannot be read.
pub fn servers_of(given: &Bound<'_, PyAny>) -> PyResult<Vec<Server>> {
    match given.cast::<PyList>() {
        Ok(list) => list.iter().map(|server| server_of(&server)).collect(),
        Err(_) => Ok(vec![server_of(given)?]),
    }
}

/// Returns a server: `(host, port)`, or what [`Server`] parses.
fn server_of(given: &Bound<'_, PyAny>) -> PyResult<Server> {
    if let Ok(pair) = given.cast::<PyTuple>() {
        let (host, port): (String, u16) = pair.extract()?;
        return Ok(Server::new(Address::Tcp { host, port }));
    }
    let text: &str = given.extract()?;
    text.parse::<Server>().map_err(|error| PyValueError::new_err(error.to_string()))
}

/// Returns the login of a user and a password.
///
/// # Errors
/// When no server could accept it.
pub fn login_of((user, password): (String, Bound<'_, PyAny>)) -> PyResult<Login> {
    Login::new(&user, bytes_of(&password)?).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// Returns a time of so many seconds.
///
/// # Errors
/// When it is negative, not finite, or of centuries.
pub fn duration_of(name: &str, seconds: f64) -> PyResult<Duration> {
    let bad = |_| PyValueError::new_err(format!("{name} is {seconds}; give seconds, 0 or more"));
    Duration::try_from_secs_f64(seconds).map_err(bad)
}

/// Returns a cas unique, which callers may have as `int`, or in digits as `bytes` or `str`.
///
/// # Errors
/// When it is none of these.
pub fn cas_of(given: &Bound<'_, PyAny>) -> PyResult<u64> {
    if let Ok(cas) = given.extract::<u64>() {
        return Ok(cas);
    }
    let digits = bytes_of(given)?;
    let cas = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
    cas.ok_or_else(|| {
        let message = format!("a cas unique has digits only, up to 2^64; it was {given}");
        exception(given.py(), ILLEGAL_INPUT, message)
    })
}
