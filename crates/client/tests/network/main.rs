//! The client over sockets: against Larder and memcached, and against servers that lie, hang and die.

mod batches;
mod commands;
mod down;
mod fake;
mod forks;
mod hostile;
mod limits;
mod servers;
mod tiered;
