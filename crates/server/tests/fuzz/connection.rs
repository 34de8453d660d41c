//! Several clients at once, over a simulated store: pipelines that are sane or damaged, cut anywhere, peers that do not
//! read, stop in the middle or leave, and an SSD that is slow and fails.

use larder_server::session::Wait;

use super::harness::Choices;
use super::support::{Client, Server};

/// One input: the server's options, and what its clients do.
pub fn check(data: &[u8]) {
    let mut choices = Choices::new(data);
    let segments = [0, 4][choices.below(2)];
    let server = Server::start(&["-m", choices.pick(&["4", "8"])], segments);
    let (wild, fail_one_in) = (choices.one_in(2), [0, 30, 1][choices.below(3)]);
    Abuse::run(choices.rest(), server, wild, fail_one_in);
}

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
    "ml K L5 P1000 r w a",
    "ml K L5 P1000 MF D2 q",
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

fn key(random: &mut Choices<'_>, owner: &str) -> String {
    format!("{owner}{}", random.below(40))
}

/// A value of its owner's marks alone.
fn value_of(random: &mut Choices<'_>, owner: &str) -> String {
    let len = match random.below(40) {
        0 => 200_000 + random.below(500_000),
        1 => 20_000 + random.below(60_000),
        2..8 => 1000 + random.below(5000),
        8 => return random.below(1000).to_string(),
        _ => random.below(100),
    };
    owner.repeat(len / owner.len())
}

fn request(random: &mut Choices<'_>, owner: &str) -> Vec<u8> {
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
fn mutate(random: &mut Choices<'_>, bytes: &mut Vec<u8>) {
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
fn pipeline(random: &mut Choices<'_>, owner: &str, wild: bool) -> Vec<u8> {
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

pub struct Abuse<'a> {
    pub server: Server,
    random: Choices<'a>,
    pub clients: Vec<(Client, usize)>,
    /// Requests are damaged.
    wild: bool,
    /// One read or write in so many fails; 0 for none.
    fail_one_in: usize,
    pub answered: usize,
}

impl<'a> Abuse<'a> {
    pub fn run(data: &'a [u8], server: Server, wild: bool, fail_one_in: usize) -> Abuse<'a> {
        let clients = (0..OWNERS.len()).map(|owner| (Client::new(), owner)).collect();
        let mut abuse = Abuse { server, random: Choices::new(data), clients, wild, fail_one_in, answered: 0 };
        while !abuse.random.is_over() {
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
        for (mark, _) in client.got.iter().enumerate().filter(|(_, byte)| **byte == b'{') {
            let marked = |name: &str| client.got[mark..].starts_with(name.as_bytes());
            let whose = OWNERS.iter().position(|name| marked(name));
            let around = &client.got[mark.saturating_sub(80)..(mark + 80).min(client.got.len())];
            let around = around.escape_ascii();
            assert!(whose.is_none_or(|whose| whose == *owner), "{owner} got what is {whose:?}'s: {around}");
        }
        self.answered += client.got.len();
        client.got.clear();
        let held = client.session.memory_bytes();
        assert!(held < 12 << 20, "{held} bytes are held");
        let gets = client.owed.len();
        let waits = match client.session.wait() {
            Wait::None => true,
            Wait::Read => gets > 0,
            Wait::Room | Wait::Reads | Wait::Line => true,
            Wait::OwnReads => gets > 0,
            Wait::Drain => !client.session.out.is_empty(),
            Wait::Watch => client.session.wants_input(),
            Wait::Login => false,
        };
        assert!(waits, "waits for {:?}, which nobody owes", client.session.wait());
        if client.session.is_over()
            || !client.inbox.is_empty() && client.session.wants_input() && client.takes
        {
            assert!(client.session.is_over(), "it wants what is there and does not take it");
            self.clients[at].0.replace(&self.server);
        }
    }
}
