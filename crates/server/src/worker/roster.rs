//! Lists a worker's connections for `stats conns`, and the first worker's list has the sockets that listen too.

use std::os::fd::AsRawFd;
use std::sync::Arc;

use super::Worker;
use crate::listener::Listener;
use crate::roster::{LISTENING, SocketFacts, shown_address};

fn listen_address(listener: &Listener) -> Arc<str> {
    let shown = match listener.name.parse() {
        Ok(address) => shown_address(address),
        Err(_) => format!("unix:{}", listener.name),
    };
    shown.into()
}

impl Worker {
    /// Lists its sockets if that was asked for since the last time.
    #[inline]
    pub(super) fn list_sockets(&mut self) {
        let asked = self.shared.roster.asked();
        if asked != self.listed {
            self.listed = asked;
            let sockets = self.sockets();
            self.shared.roster.put(self.number, asked, sockets);
        }
    }

    fn sockets(&mut self) -> Vec<SocketFacts> {
        let addresses: Vec<_> = self.listeners.iter().map(listen_address).collect();
        let now = self.instant;
        let mut sockets = Vec::new();
        if self.number == 0 {
            for (listener, address) in self.listeners.iter().zip(&addresses) {
                sockets.push(SocketFacts {
                    descriptor: listener.socket.as_raw_fd(),
                    peer: None,
                    listen_address: address.clone(),
                    state: LISTENING,
                    idle_s: now.saturating_duration_since(self.shared.started).as_secs(),
                });
            }
        }
        for (_, connection) in self.connections.all() {
            sockets.push(SocketFacts {
                descriptor: connection.socket.as_raw_fd(),
                peer: connection.peer,
                listen_address: addresses[connection.listener].clone(),
                state: connection.session.state(),
                idle_s: now.saturating_duration_since(connection.last_active).as_secs(),
            });
        }
        sockets
    }
}
