//! A server that a scenario measures: started by it, or one that runs already.

use super::server::Make;
use super::stage::GivenPeer;

/// The server of a measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Started anew for the measurement.
    Ours(Make),
    /// One that runs already.
    Given(GivenPeer),
}

impl Target {
    /// Its name in tables.
    pub fn name(&self) -> &str {
        match self {
            Self::Ours(make) => make.name(),
            Self::Given(peer) => &peer.name,
        }
    }

    /// Whether it is Larder, started here: nothing can be measured without it.
    pub fn is_our_larder(&self) -> bool {
        *self == Self::Ours(Make::Larder)
    }
}
