//! Decisions about items, as functions of plain values: nothing is moved here.

pub(crate) mod admission;
pub(crate) mod write_budget;
