//! What a client is made with, and what it asks of whole servers.

use larder_client::routing::{KeyHash, Placement};
use larder_client::{Client, OnDown, Result};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use crate::errors::of_client;

/// The names of placements, with what each agrees with.
const PLACEMENTS: &[(&str, Placement)] = &[
    ("rendezvous", Placement::Rendezvous),
    ("ketama", Placement::Ketama(KeyHash::OneAtATime)),
    ("ketama_md5", Placement::Ketama(KeyHash::Md5)),
    ("ketama_weighted", Placement::KetamaWeighted),
    ("twemproxy_fnv1a_64", Placement::Twemproxy(KeyHash::Fnv1a64)),
    ("twemproxy_md5", Placement::Twemproxy(KeyHash::Md5)),
];

/// Returns the placement with this name.
///
/// # Errors
/// When there is none.
pub fn placement_of(name: &str) -> PyResult<Placement> {
    let found = PLACEMENTS.iter().find(|(known, _)| *known == name).map(|(_, placement)| *placement);
    found.ok_or_else(|| {
        let names: Vec<&str> = PLACEMENTS.iter().map(|(name, _)| *name).collect();
        PyValueError::new_err(format!("placement is {name:?}; give one of {}", names.join(", ")))
    })
}

/// Returns what becomes of the keys of a server that is down.
///
/// # Errors
/// When the word is unknown.
pub fn on_down_of(word: &str) -> PyResult<OnDown> {
    match word {
        "fail" => Ok(OnDown::Fail),
        "eject" => Ok(OnDown::Eject),
        _ => Err(PyValueError::new_err(format!("on_down is {word:?}; give \"fail\" or \"eject\""))),
    }
}

/// Returns the version of the server with this number.
///
/// # Errors
/// When the server does not answer, or there is none with this number.
pub fn version<'py>(py: Python<'py>, client: &Client, server: usize) -> PyResult<Bound<'py, PyBytes>> {
    let version = nth(py, py.detach(|| client.version()), server)?;
    Ok(PyBytes::new(py, version.as_bytes()))
}

/// Returns the statistics of the server with this number: names as `bytes`, values as `int` where they are whole
/// numbers, else as `bytes`.
///
/// # Errors
/// When the server does not answer, or there is none with this number.
pub fn stats<'py>(
    py: Python<'py>,
    client: &Client,
    args: &Bound<'py, PyTuple>,
    server: usize,
) -> PyResult<Bound<'py, PyDict>> {
    let words: Vec<String> = args.extract::<Vec<String>>()?;
    let lines = nth(py, py.detach(|| client.stats(&words.join(" "))), server)?;
    let found = PyDict::new(py);
    for (name, value) in lines {
        let name = PyBytes::new(py, name.as_bytes());
        match value.parse::<i64>() {
            Ok(number) => found.set_item(name, number)?,
            Err(_) => found.set_item(name, PyBytes::new(py, value.as_bytes()))?,
        }
    }
    Ok(found)
}

fn nth<T>(py: Python<'_>, results: Vec<Result<T>>, server: usize) -> PyResult<T> {
    match results.into_iter().nth(server) {
        Some(result) => result.map_err(|error| of_client(py, &error)),
        None => Err(PyIndexError::new_err(format!("there is no server with the number {server}"))),
    }
}
