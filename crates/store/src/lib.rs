//! Keys to values over a RAM tier and an SSD tier. Sans-IO: it says what to read and write, others do it.
pub mod device;
