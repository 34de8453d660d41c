//! The breakers of a client in the memory that the processes of a host share.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::address::Server;
use crate::breaker::Word;
use crate::l1::L1;
use crate::options::WordOf;

/// One of the words that all processes share.
#[derive(Debug)]
struct SharedWord {
    l1: L1,
    at: usize,
}

impl SharedWord {
    fn word(&self) -> &AtomicU64 {
        &self.l1.shared_words()[self.at]
    }
}

impl Word for SharedWord {
    fn load(&self) -> u64 {
        Word::load(self.word())
    }

    fn replace(&self, current: u64, new: u64) -> bool {
        Word::replace(self.word(), current, new)
    }
}

/// Returns where the breakers of `servers` are in the [shared words](L1::shared_words) of a cache, for
/// [`Options::breaker_word`](crate::Options::breaker_word): what one process of the host learns of a server holds for
/// all, and one of them probes it. All clients that use the same cache so must have the same servers in the same
/// order. Servers beyond the 512th have breakers of the process's own.
pub fn breakers_in(l1: &L1, servers: &[Server]) -> WordOf {
    let (l1, names) = (l1.clone(), servers.iter().map(Server::label).collect::<Vec<_>>());
    Arc::new(move |name| {
        let at = names.iter().position(|known| known == name);
        match at.filter(|at| *at < l1.shared_words().len()) {
            Some(at) => Arc::new(SharedWord { l1: l1.clone(), at }),
            None => Arc::new(AtomicU64::new(0)),
        }
    })
}
