//! Decides which requests a user may send: the one place that does, for every command of the three protocols. Only an
//! admin may send a request that is not named here.

use larder_protocol::{Admin, Get, Request, Store};

/// The part of the commands that a user may send; each role includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Reads that change nothing, and statistics.
    Read,
    /// Everything that changes items one by one.
    Write,
    /// Everything.
    Admin,
}

/// The rights of one user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rights {
    role: Role,
    /// The keys of this user begin with it.
    prefix: Box<[u8]>,
}

/// The statistics that show no keys and change nothing.
const OPEN_STATS: [&[u8]; 7] = [b"", b"larder", b"settings", b"items", b"slabs", b"sizes", b"extstore"];

impl Rights {
    /// Returns the rights of a role to the keys that begin with `prefix`. An admin is not confined by it.
    pub fn new(role: Role, prefix: &[u8]) -> Rights {
        Rights { role, prefix: prefix.into() }
    }

    /// Returns the right to everything.
    pub fn admin() -> Rights {
        Rights::new(Role::Admin, b"")
    }

    /// Returns whether there is no request to refuse.
    pub fn is_unlimited(&self) -> bool {
        self.role == Role::Admin
    }

    /// Returns whether the user may send this request.
    pub fn permits(&self, request: &Request<'_>) -> bool {
        if self.is_unlimited() {
            return true;
        }
        match request {
            Request::Get(get) => self.permits_get(get),
            Request::Debug(debug) => self.owns(debug.key.bytes()),
            Request::Store(store) => self.permits_store(store),
            Request::Delete(delete) => self.may_write(delete.key.bytes()),
            Request::Arith(arith) => self.may_write(arith.key.bytes()),
            Request::Check(check) => self.may_write(check.key.bytes()),
            Request::Touch(touch) => self.may_write(touch.key.bytes()),
            // A subscription is told of keys that were leased to it: whoever leases a key may read it.
            Request::Noop(_) | Request::Subscribe(_) | Request::Version(_) | Request::Quit(_) => true,
            // Statistics cover the items of all users.
            Request::Stats(what, _) => self.prefix.is_empty() && OPEN_STATS.contains(what),
            Request::Admin(Admin::Cluster(_)) => true,
            Request::Flush(_) | Request::Verbosity(..) | Request::Admin(_) => false,
        }
    }

    /// Returns whether the user may store this item, whose value need not be there.
    pub fn permits_store(&self, store: &Store<'_>) -> bool {
        self.is_unlimited() || self.may_write(store.key.bytes())
    }

    /// Takes from a permitted request what its user has no use for: a reader does not win the right to recache a stale
    /// item. It may not store, and no writer would renew the item.
    pub fn confine(&self, request: &mut Request<'_>) {
        if let (Role::Read, Request::Get(get)) = (self.role, request) {
            get.may_win = false;
        }
    }

    fn permits_get(&self, get: &Get<'_>) -> bool {
        let changes = get.touch.is_some() || get.vivify.is_some() || get.recache.is_some();
        (self.role >= Role::Write || !changes) && get.keys.clone().all(|key| self.owns(key.bytes()))
    }

    fn may_write(&self, key: &[u8]) -> bool {
        self.role >= Role::Write && self.owns(key)
    }

    fn owns(&self, key: &[u8]) -> bool {
        key.starts_with(&self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use larder_protocol::{Step, detect, parse};

    fn permits(rights: &Rights, input: &[u8]) -> bool {
        match parse(detect(input[0]), input) {
            Step::Request { request, .. } => rights.permits(&request),
            Step::Body { request, .. } => rights.permits_store(&request),
            other => panic!("{} is no request but {other:?}", input.escape_ascii()),
        }
    }

    fn packet(opcode: u8, key: &[u8], extras: &[u8], value: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0x80, opcode, 0, key.len() as u8, extras.len() as u8, 0, 0, 0, 0, 0, 0];
        bytes.push((key.len() + extras.len() + value.len()) as u8);
        bytes.extend([0; 12]);
        bytes.extend([extras, key, value].concat());
        bytes
    }

    /// Requests on the key `k` with the least role that may send them.
    fn requests() -> Vec<(Role, Vec<u8>)> {
        use Role::{Admin, Read, Write};
        let text: [(Role, &[&str]); 3] = [
            (
                Read,
                &[
                    "get k",
                    "gets k k",
                    "mg k v",
                    "mg k",
                    "me k",
                    "mg aw== b v",
                    "mg k k c t u q",
                    "mg k A1:2",
                ],
            ),
            (
                Write,
                &[
                    "set k 0 0 1\r\nx",
                    "add k 0 0 1\r\nx",
                    "replace k 0 0 1\r\nx",
                    "append k 0 0 1\r\nx",
                    "prepend k 0 0 1\r\nx",
                    "cas k 0 0 1 5\r\nx",
                    "set k 0 0 9000",
                    "ms k 1\r\nx",
                    "ms k 1 MA\r\nx",
                    "delete k",
                    "delete k noreply",
                    "md k",
                    "md k x",
                    "md k I T9",
                    "incr k 1",
                    "decr k 1",
                    "ma k",
                    "ma k N0",
                    "ml k L1 P1",
                    "ml k L1 P1 D0",
                    "touch k 5",
                    "gat 5 k",
                    "gats 5 k k",
                    "mg k T5",
                    "mg k N5 v",
                    "mg k R5 v",
                ],
            ),
            (
                Admin,
                &[
                    "flush_all",
                    "flush_all 5 noreply",
                    "verbosity 1",
                    "stats reset",
                    "stats detail on",
                    "stats detail dump",
                    "stats cachedump 1 1",
                    "stats conns",
                    "stats prefixes",
                    "stats  reset",
                    "shutdown",
                    "shutdown graceful",
                    "cache_memlimit 64",
                    "lru mode flat",
                    "slabs automove 1",
                    "lru_crawler metadump all",
                    "lru_crawler enable",
                    "watch",
                    "extstore item_size 1",
                    "refresh_certs",
                    "debugtime p",
                ],
            ),
        ];
        let lines = text.into_iter().flat_map(|(role, lines)| {
            lines.iter().map(move |line| (role, format!("{line}\r\n").into_bytes()))
        });
        let counter = [0; 20];
        let binary: [(Role, &[u8], &[u8]); 6] = [
            (Read, &[0x00, 0x09, 0x0c, 0x0d], &[]),
            (Write, &[0x01, 0x02, 0x03, 0x11, 0x12, 0x13], &[0; 8]),
            (Write, &[0x04, 0x14, 0x0e, 0x0f, 0x19, 0x1a], &[]),
            (Write, &[0x05, 0x06, 0x15, 0x16], &counter),
            (Write, &[0x1c, 0x1d, 0x1e, 0x23, 0x24], &[0; 4]),
            (Admin, &[], &[]),
        ];
        let keyed = binary.into_iter().flat_map(|(role, opcodes, extras)| {
            opcodes.iter().map(move |opcode| (role, packet(*opcode, b"k", extras, b"")))
        });
        let bare = [0x08, 0x18].map(|opcode| (Admin, packet(opcode, b"", &[], b"")));
        let stats =
            [&b"reset"[..], b"detail on", b"nonsense"].map(|what| (Admin, packet(0x10, what, &[], b"")));
        lines.chain(keyed).chain(bare).chain(stats).collect()
    }

    #[test]
    fn each_command_of_each_wire_needs_its_role() {
        for (least, input) in requests() {
            for role in [Role::Read, Role::Write, Role::Admin] {
                let said = permits(&Rights::new(role, b""), &input);
                assert_eq!(said, role >= least, "{role:?}: {}", input.escape_ascii());
            }
        }
    }

    #[test]
    fn a_prefix_confines_every_command_with_a_key() {
        for (least, input) in requests().into_iter().filter(|(least, _)| *least != Role::Admin) {
            let shown = input.escape_ascii();
            assert!(permits(&Rights::new(least, b"k"), &input), "{shown}");
            assert!(!permits(&Rights::new(Role::Write, b"kk"), &input), "{shown}");
            assert!(!permits(&Rights::new(Role::Write, b"K"), &input), "{shown}");
        }
        let rights = Rights::new(Role::Write, b"a:");
        assert!(permits(&rights, b"get a:1 a:2 a:\r\n"));
        assert!(!permits(&rights, b"get a:1 a:2 b:\r\n"), "one foreign key is too many");
        assert!(permits(&rights, b"mg YTox b v\r\n"), "a key in base64 is decoded first");
        assert!(!permits(&rights, b"mg YTox v\r\n"));
    }

    #[test]
    fn every_role_may_send_requests_that_concern_no_item() {
        let inputs: [&[u8]; 5] =
            [b"version\r\n", b"mn\r\n", b"mi\r\n", b"quit\r\n", b"config get cluster\r\n"];
        let binary = [0x07, 0x0a, 0x0b, 0x17].map(|opcode| packet(opcode, b"", &[], b""));
        for input in inputs.into_iter().chain(binary.iter().map(|packet| &packet[..])) {
            assert!(permits(&Rights::new(Role::Read, b"a:"), input), "{}", input.escape_ascii());
        }
        for input in
            [&b"stats\r\n"[..], b"stats settings\r\n", b"stats larder\r\n", &packet(0x10, b"", &[], b"")]
        {
            assert!(permits(&Rights::new(Role::Read, b""), input), "{}", input.escape_ascii());
            assert!(!permits(&Rights::new(Role::Write, b"a:"), input), "they tell of others' items");
        }
    }
}
