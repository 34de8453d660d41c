//! The daemon `larder`.
fn main() {}
