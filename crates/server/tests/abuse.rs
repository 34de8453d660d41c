//! Clients that send garbage, stop in the middle, do not read, leave; and an SSD that is slow and fails.
//! Nothing may panic, get stuck, grow without bound, or end up with the wrong client.

mod support;

use larder_server::session::Wait;
use support::{Client, Random, Server};

/// One client's name, in all its keys and values. No single change makes one name of another.
const OWNERS: [&str; 6] = ["{AAAA}", "{BBBB}", "{CCCC}", "{DDDD}", "{EEEE}", "{FFFF}"];

const TEMPLATES: &[&str] = &[
    "get K K K",
    "gets K",
    "get K",
    "get K",
    "get K K K K K K K K",
    "gat 100 K K",
    "gats 0 K",
    "mg K v k t f c s h l Oabc",
    "mg K v q",
    "mg K N30 R60 v t",
    "mg K T60 v",
    "mg K t s q",
    "mg K k R60",
    "mg K N60 c",
    "me K",
    "set K 1 0 V",
    "set K 1 0 V",
    "set K 1 0 V noreply",
    "add K 2 0 V",
    "replace K 3 100 V",
    "append K 0 0 V",
    "prepend K 0 0 V noreply",
    "cas K 0 0 V 5",
    "cas K 0 0 V 5 noreply",
    "ms K V q",
    "ms K V MA N60 s",
    "ms K V I C1 c",
    "delete K",
    "delete K noreply",
    "md K I T30",
    "md K I",
    "md K I C5",
    "md K x q",
    "incr K 1",
    "decr K 5 noreply",
    "ma K N0 J7 v",
    "touch K 10",
    "touch K 0 noreply",
    "mn",
    "version",
    "verbosity 0",
    "stats",
    "stats items",
    "stats settings",
    "flush_all 5000 noreply",
    "bogus",
    "",
    "lru_crawler metadump all",
    "set K x y V",
    "cache_memlimit 64",
];

fn key(random: &mut Random, owner: &str) -> String {
    format!("{owner}{}", random.below(40))
}

/// A value of its owner's marks alone.
fn value_of(random: &mut Random, owner: &str) -> String {
    let len = match random.below(40) {
        0 => 200_000 + random.below(500_000),
        1 => 20_000 + random.below(60_000),
        2..8 => 1000 + random.below(5000),
        8 => return random.below(1000).to_string(),
        _ => random.below(100),
    };
    owner.repeat(len / owner.len())
}

fn request(random: &mut Random, owner: &str) -> Vec<u8> {
    let template = TEMPLATES[random.below(TEMPLATES.len())];
    let value = value_of(random, owner);
    let mut words: Vec<String> = template.split(' ').map(str::to_string).collect();
    for word in &mut words {
        match word.as_str() {
            "K" => *word = key(random, owner),
            "V" => *word = value.len().to_string(),
            _ => {}
        }
    }
    let mut request = words.join(" ").into_bytes();
    request.extend_from_slice(b"\r\n");
    if template.contains('V') {
        request.extend_from_slice(value.as_bytes());
        request.extend_from_slice(b"\r\n");
    }
    request
}

/// Damages a request. One that stores keeps its key, or its value would be anybody's.
fn mutate(random: &mut Random, bytes: &mut Vec<u8>) {
    let has_value = bytes.iter().filter(|byte| **byte == b'\n').count() > 1;
    let behind_key = bytes.iter().position(|byte| *byte == b'}').filter(|_| has_value).map_or(0, |at| at + 1);
    let at = behind_key + random.below(bytes.len() - behind_key);
    match random.below(5) {
        0 => bytes[at] = random.next() as u8,
        1 => bytes.truncate(at),
        2 => drop(bytes.drain(at..(at + 1 + random.below(8)).min(bytes.len()))),
        3 => bytes.insert(at, b" \r\n\x000"[random.below(5)]),
        _ => {
            let piece = bytes[at..(at + 20).min(bytes.len())].to_vec();
            bytes.splice(at..at, piece);
        }
    }
}

/// What a client sends in one go.
fn pipeline(random: &mut Random, owner: &str, wild: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..=random.below(30) {
        let mut one = request(random, owner);
        if wild && random.one_in(12) {
            mutate(random, &mut one);
        }
        if wild && random.one_in(200) {
            one = (0..random.below(300)).map(|_| random.next() as u8).filter(|byte| *byte != b'{').collect();
        }
        bytes.extend(one);
    }
    bytes
}

struct Abuse {
    server: Server,
    random: Random,
    clients: Vec<(Client, usize)>,
    wild: bool,
    /// One read or write in so many fails; 0 for none.
    fail_one_in: usize,
    answered: usize,
}

impl Abuse {
    fn run(seed: u64, server: Server, wild: bool, fail_one_in: usize, steps: usize) -> Abuse {
        let clients = (0..OWNERS.len()).map(|owner| (Client::new(), owner)).collect();
        let mut abuse = Abuse { server, random: Random(seed), clients, wild, fail_one_in, answered: 0 };
        for _ in 0..steps {
            abuse.step();
        }
        for at in 0..abuse.clients.len() {
            let (client, _) = &mut abuse.clients[at];
            client.settle(&abuse.server);
            abuse.check(at);
        }
        abuse.server.shared.store.check().expect("the store is in order");
        abuse
    }

    fn fails(&mut self) -> bool {
        self.fail_one_in > 0 && self.random.one_in(self.fail_one_in)
    }

    fn step(&mut self) {
        let at = self.random.below(self.clients.len());
        let owner = self.clients[at].1;
        let what = self.random.below(100);
        match what {
            0..25 => {
                let bytes = pipeline(&mut self.random, OWNERS[owner], self.wild);
                let (client, _) = &mut self.clients[at];
                // A peer whose window is full cannot send.
                if client.inbox.len() < 1 << 20 {
                    let cut = self.random.below(bytes.len() + 1);
                    client.send(&self.server, &bytes[..cut]);
                    client.send(&self.server, &bytes[cut..]);
                }
            }
            25..70 => {
                let ok = !self.fails();
                let (client, _) = &mut self.clients[at];
                if !client.owed.is_empty() {
                    let read = self.random.below(client.owed.len());
                    client.deliver(&self.server, read, ok);
                }
            }
            70..85 => {
                let ok = !self.fails();
                self.server.write_one(ok);
                let (client, _) = &mut self.clients[at];
                client.retry(&self.server);
            }
            85..91 => {
                let limit = self.random.below(300_000);
                let (client, _) = &mut self.clients[at];
                client.takes = !self.random.one_in(3);
                client.take(&self.server, limit);
                client.drive(&self.server);
            }
            91..95 => {
                self.server.shared.store.evict_all(self.server.now());
            }
            95 => self.server.pass(1),
            96 => {
                self.clients[at].0.read_room = [0, 1, 3, 200][self.random.below(4)];
            }
            97 if self.random.one_in(4) => self.clients[at].0.replace(&self.server),
            _ => {
                let (client, _) = &mut self.clients[at];
                if self.random.one_in(6) {
                    client.settle(&self.server);
                }
            }
        }
        self.check(at);
    }

    /// What a client got is its own, what it holds is bounded, and it waits for something that can come.
    fn check(&mut self, at: usize) {
        let (client, owner) = &mut self.clients[at];
        let seed = self.random.0;
        for (mark, _) in client.got.iter().enumerate().filter(|(_, byte)| **byte == b'{') {
            let marked = |name: &str| client.got[mark..].starts_with(name.as_bytes());
            let whose = OWNERS.iter().position(|name| marked(name));
            let around = &client.got[mark.saturating_sub(80)..(mark + 80).min(client.got.len())];
            let around = around.escape_ascii();
            assert!(
                whose.is_none_or(|whose| whose == *owner),
                "{seed}: {owner} got what is {whose:?}'s: {around}"
            );
        }
        self.answered += client.got.len();
        client.got.clear();
        let held = client.session.memory_bytes();
        assert!(held < 12 << 20, "{seed}: {held} bytes are held");
        let gets = client.owed.len();
        let waits = match client.session.wait() {
            Wait::None => true,
            Wait::Read => gets > 0,
            Wait::Room | Wait::Reads | Wait::Line => true,
            Wait::OwnReads => gets > 0,
            Wait::Drain => !client.session.out.is_empty(),
            Wait::Login => false,
        };
        assert!(waits, "{seed}: waits for {:?}, which nobody owes", client.session.wait());
        if client.session.is_over()
            || !client.inbox.is_empty() && client.session.wants_input() && client.takes
        {
            assert!(client.session.is_over(), "{seed}: it wants what is there and does not take it");
            self.clients[at].0.replace(&self.server);
        }
    }
}

#[test]
fn sane_clients_over_a_slow_ssd_get_their_own_data() {
    for seed in 0..5 {
        let abuse = Abuse::run(seed, Server::start(&["-m", "8"], 4), false, 0, 6000);
        assert!(abuse.answered > 1 << 20, "{} bytes", abuse.answered);
        assert!(abuse.server.reads.get() > 500, "{} reads", abuse.server.reads.get());
        assert_eq!(abuse.server.shared.store.stats().ssd_errors, 0);
    }
}

#[test]
fn wild_clients_over_a_failing_ssd_harm_nobody() {
    for seed in 10..17 {
        let abuse = Abuse::run(seed, Server::start(&["-m", "8"], 4), true, 30, 5000);
        assert!(abuse.server.reads.get() > 100, "{} reads", abuse.server.reads.get());
    }
}

#[test]
fn an_ssd_that_fails_for_good_is_turned_off_and_ram_goes_on() {
    for seed in 20..22 {
        let mut abuse = Abuse::run(seed, Server::start(&["-m", "8"], 4), false, 1, 3000);
        assert!(abuse.server.shared.store.ssd_is_off());
        let (client, _) = &mut abuse.clients[0];
        assert!(
            client
                .say(&abuse.server, "\r\nset k 0 0 1\r\nx\r\nget k\r\n")
                .ends_with("VALUE k 0 1\r\nx\r\nEND\r\n")
        );
    }
}

#[test]
fn wild_clients_without_an_ssd_harm_nobody() {
    for seed in 30..38 {
        Abuse::run(seed, Server::start(&["-m", "4"], 0), true, 0, 5000);
    }
}

/// Takes one reply of a text command off the front of what came; panics when there is none.
fn take_reply(got: &mut &[u8], command: &str) -> usize {
    let reads = ["get ", "gets ", "gat ", "gats "].iter().any(|verb| command.starts_with(verb));
    let mut lines = 0;
    loop {
        let end = got.windows(2).position(|pair| pair == b"\r\n").expect("a line ends");
        let line = String::from_utf8_lossy(&got[..end]).into_owned();
        *got = &got[end + 2..];
        lines += 1;
        let words: Vec<&str> = line.split(' ').collect();
        match words[0] {
            "VALUE" | "VA" => {
                let len: usize = words[if words[0] == "VALUE" { 3 } else { 1 }].parse().expect("a length");
                assert_eq!(&got[len..len + 2], b"\r\n", "{command}: {line}");
                *got = &got[len + 2..];
                if words[0] == "VA" {
                    return lines;
                }
            }
            "END" => {
                assert!(reads, "{command}: {line}");
                return lines;
            }
            _ => {
                assert!(!reads || lines == 1 && !line.starts_with("SERVER_ERROR"), "{command}: {line}");
                return lines;
            }
        }
    }
}

#[test]
fn every_request_has_one_reply_when_memory_is_short() {
    const COMMANDS: [&str; 18] = [
        "get K K2",
        "gets K",
        "gat 100 K",
        "gats 100 K K2",
        "mg K v T90",
        "mg K v N30 R60",
        "me K",
        "set K 1 0 V",
        "add K 2 0 V",
        "replace K 3 100 V",
        "append K 0 0 V",
        "prepend K 0 0 V",
        "cas K 0 0 V 5",
        "ms K V",
        "md K I T30",
        "incr K 1",
        "ma K N0 J7 v",
        "touch K 10",
    ];
    for (seed, options, segments) in [
        (1, &["-m", "4", "-o", "no_lru_crawler"][..], 3),
        (2, &["-m", "4", "-M"], 0),
        (3, &["-m", "8", "--ssd-write-wait", "0"], 2),
        (4, &["-m", "4", "-I", "2m"], 2),
    ] {
        let server = Server::start(options, segments);
        let mut random = Random(seed);
        let mut client = Client::new();
        let sizes = [10, 500, 3000, 30_000, 200_000, 900_000];
        let mut failures = 0;
        for _ in 0..6000 {
            let key = format!("k{}", random.below(300));
            let len = sizes[random.below(sizes.len())];
            let command = COMMANDS[random.below(COMMANDS.len())];
            let line = command.replace("K2", "other").replace('K', &key).replace('V', &len.to_string());
            let mut request = format!("{line}\r\n");
            if command.contains('V') {
                request += &"7".repeat(len);
                request += "\r\n";
            }
            // Writes are mostly not performed, so that what leaves RAM finds no room on the SSD either.
            client.send(&server, format!("{request}mn\r\n").as_bytes());
            let writes = random.one_in(8);
            client.settle_beside(&server, |server| {
                if writes {
                    server.write_all();
                }
            });
            let got = std::mem::take(&mut client.got);
            let mut rest = &got[..];
            take_reply(&mut rest, command);
            assert_eq!(rest, b"MN\r\n", "{seed}: {line}: {}", got[..got.len().min(300)].escape_ascii());
            failures += usize::from(got.starts_with(b"SERVER_ERROR"));
        }
        assert!(failures > 0, "{seed}: memory was never short");
    }
}

#[test]
fn a_gat_of_an_item_that_cannot_change_just_now_is_a_miss_and_one_reply() {
    let server = Server::start(&["-m", "8", "-I", "3m"], 4);
    let mut client = Client::new();
    let mut misses = 0;
    for number in 0..20 {
        // On their way to a device that takes none.
        client.send(&server, &support::set(&format!("k{number}"), &[b'v'; 900_000]));
        client.settle_beside(&server, |_| {});
        client.got.clear();
        for number in 0..=number {
            client.send(&server, format!("gat 100 k{number}\r\nmn\r\n").as_bytes());
            client.settle_beside(&server, |_| {});
            let got = std::mem::take(&mut client.got);
            let hit =
                [&support::value(&format!("k{number}"), &[b'v'; 900_000])[..], b"END\r\nMN\r\n"].concat();
            let is_miss = got == b"END\r\nMN\r\n";
            assert!(is_miss || got == hit, "{}", got[..got.len().min(200)].escape_ascii());
            misses += usize::from(is_miss && server.shared.totals().get_misses > 0);
        }
    }
    assert!(misses > 0, "no item was on its way");
}
