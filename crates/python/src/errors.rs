//! Errors as the exceptions of `larder.exceptions`.

use larder_client::{Error, L1Error};
use pyo3::exceptions::{PyFileNotFoundError, PyOSError, PyPermissionError, PyValueError};
use pyo3::prelude::*;

/// The class for a key or value that no server can take.
pub const ILLEGAL_INPUT: &str = "MemcacheIllegalInputError";

/// Returns an exception of the class with this name in `larder.exceptions`.
pub fn exception(py: Python<'_>, class: &str, message: String) -> PyErr {
    let made = py
        .import("larder.exceptions")
        .and_then(|module| module.getattr(class))
        .and_then(|class| class.call1((message,)));
    made.map_or_else(|error| error, PyErr::from_value)
}

/// Returns the exception for an error of the client.
pub fn of_client(py: Python<'_>, error: &Error) -> PyErr {
    exception(py, class_of(error), error.to_string())
}

fn class_of(error: &Error) -> &'static str {
    match error {
        Error::Key(_) | Error::ValueTooLarge { .. } | Error::Argument(_) => ILLEGAL_INPUT,
        Error::Connect { .. } => "MemcacheConnectError",
        Error::Tls { .. } => "MemcacheTlsError",
        Error::Login { .. } => "MemcacheLoginError",
        Error::Down { .. } => "MemcacheDownError",
        Error::Timeout { .. } => "MemcacheTimeoutError",
        Error::Busy { .. } => "MemcacheBusyError",
        Error::Lost { .. } => "MemcacheUnexpectedCloseError",
        Error::Protocol { .. } => "MemcacheUnknownError",
        Error::Refused { line, .. } if line.starts_with("CLIENT_ERROR") => "MemcacheClientError",
        Error::Refused { line, .. } if line.starts_with("SERVER_ERROR") => "MemcacheServerError",
        Error::Refused { .. } => "MemcacheUnknownCommandError",
        _ => "MemcacheError",
    }
}

/// Returns whether an error is the server's or the network's, which `ignore_exc` ignores, and not the caller's.
pub fn is_failure(error: &Error) -> bool {
    let is_callers = matches!(error, Error::Refused { line, .. } if line.starts_with("CLIENT_ERROR"));
    error.server().is_some() && !is_callers
}

/// Returns the exception for a cache in shared memory that could not be opened.
pub fn of_l1(error: &L1Error) -> PyErr {
    let message = error.to_string();
    match error {
        L1Error::Name(_) | L1Error::Size { .. } => PyValueError::new_err(message),
        L1Error::Directory { .. } | L1Error::File { .. } => PyPermissionError::new_err(message),
        L1Error::Io { error, .. } => match error.kind() {
            std::io::ErrorKind::PermissionDenied => PyPermissionError::new_err(message),
            std::io::ErrorKind::NotFound => PyFileNotFoundError::new_err(message),
            _ => PyOSError::new_err(message),
        },
        _ => PyOSError::new_err(message),
    }
}
