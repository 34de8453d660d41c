//! Decisions about items, as functions of plain values: nothing is moved here. A simulation can call them without
//! any bytes.

pub(crate) mod admission;
pub(crate) mod cleaning;
pub(crate) mod ghost;
pub(crate) mod readmission;
pub(crate) mod s3fifo;
pub(crate) mod write_budget;
