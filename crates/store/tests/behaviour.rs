//! What the store promises, one small test a promise, named after it.

#[path = "behaviour/bounds.rs"]
mod bounds;
#[path = "behaviour/capacity.rs"]
mod capacity;
#[path = "behaviour/commands.rs"]
mod commands;
#[path = "behaviour/expiry.rs"]
mod expiry;
#[path = "behaviour/growth.rs"]
mod growth;
#[path = "behaviour/large.rs"]
mod large;
#[path = "behaviour/limit.rs"]
mod limit;
#[path = "behaviour/listing.rs"]
mod listing;
mod rig;
#[path = "behaviour/rivals.rs"]
mod rivals;
#[path = "behaviour/tiers.rs"]
mod tiers;
