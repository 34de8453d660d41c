//! The client over sockets: against Larder and memcached, and against servers that lie, hang and die.

mod batches;
mod commands;
mod down;
mod fake;
mod forks;
mod hostile;
mod limits;
mod login;
mod near;
mod push;
mod servers;
mod tiered;
mod times;
mod tls;
