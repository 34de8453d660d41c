//! What each command reads of a large item on the SSD: nothing, the page with its header, or all of it.

mod support;

use larder_device::{Device, IoBuf};
use support::{Client, Server, set};

const PAGE: usize = 4096;
/// Bytes of the item's value.
const LARGE: usize = 1_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reads {
    Nothing,
    /// The page that holds header and key.
    Page,
    /// Every page.
    Whole,
    /// The page, and every page once the header has said that the value is needed.
    PageThenWhole,
}
use Reads::*;

/// What is done to the item before it leaves RAM, the request, how its reply begins, and what it reads. `{cas}`
/// stands for the item's cas unique, a number in braces for so many bytes.
const COMMANDS: &[(&str, &str, &str, Reads)] = &[
    ("", "get k", "VALUE k 5 1000000", Whole),
    ("", "gets k", "VALUE k 5 1000000", Whole),
    ("", "gat 0 k", "VALUE k 5 1000000", Whole),
    ("", "gats 100 k", "VALUE k 5 1000000", Whole),
    ("", "touch k 100", "TOUCHED", Whole),
    ("", "set k 0 0 1\r\nx", "STORED", Nothing),
    ("", "add k 0 0 1\r\nx", "NOT_STORED", Page),
    ("", "add k 0 0 150000\r\n{150000}", "NOT_STORED", Page),
    ("", "replace k 0 0 1\r\nx", "STORED", Page),
    ("", "cas k 0 0 1 7\r\nx", "EXISTS", Page),
    ("", "cas k 0 0 1 {cas}\r\nx", "STORED", Page),
    ("", "append k 0 0 1\r\nx", "STORED", PageThenWhole),
    ("", "prepend k 0 0 1\r\nx", "STORED", PageThenWhole),
    ("", "append k 0 0 60000\r\n{60000}", "SERVER_ERROR object too large", Page),
    ("", "prepend k 0 0 60000\r\n{60000}", "SERVER_ERROR object too large", Page),
    ("", "incr k 1", "CLIENT_ERROR cannot increment", Page),
    ("", "decr k 1", "CLIENT_ERROR cannot increment", Page),
    ("", "delete k", "DELETED", Page),
    ("", "mg k", "HD", Page),
    ("", "mg k t s f c h l k O1", "HD t-1 s1000000 f5", Page),
    ("", "mg k s q", "HD s1000000", Page),
    ("", "mg k N30 s", "HD s1000000", Page),
    ("", "mg k R30 s", "HD s1000000", Page),
    ("", "mg k v", "VA 1000000", Whole),
    ("", "mg k t v N30", "VA 1000000 t-1", Whole),
    ("", "mg k T100 s", "HD s1000000", Whole),
    ("touch k 20", "mg k s R30", "HD s1000000 W", PageThenWhole),
    ("md k I", "mg k s", "HD s1000000 X W", PageThenWhole),
    ("md k I", "mg k s v", "VA 1000000 s1000000 X W", Whole),
    ("", "ms k 1\r\nx", "HD", Nothing),
    ("", "ms k 1 ME\r\nx", "NS", Page),
    ("", "ms k 1 MR\r\nx", "HD", Page),
    ("", "ms k 1 C7\r\nx", "EX", Page),
    ("", "ms k 1 C{cas}\r\nx", "HD", Page),
    ("", "ms k 1 C7 I\r\nx", "HD", Page),
    ("", "ms k 1 MA\r\nx", "HD", PageThenWhole),
    ("", "ms k 1 MA C7\r\nx", "EX", Page),
    ("", "ms k 1 MP\r\nx", "HD", PageThenWhole),
    ("", "ma k", "CLIENT_ERROR cannot increment", Page),
    ("", "ma k N0 C7", "EX", Page),
    ("", "ml k L5 P1000", "CLIENT_ERROR the item holds no rate limit", Page),
    ("", "md k", "HD", Page),
    ("", "md k C7", "EX", Page),
    ("", "md k C{cas}", "HD", Page),
    ("", "md k x", "HD", Page),
    ("", "md k x I T30", "HD", Page),
    ("", "md k I", "HD", Whole),
    ("", "md k I T30", "HD", Whole),
    ("", "md k I C7", "EX", Page),
    ("", "md k I C{cas}", "HD", PageThenWhole),
    ("", "me k", "ME k exp=-1", Page),
];

/// A server, its only item, and a client of it.
struct Rig {
    server: Server,
    cas: String,
}

impl Rig {
    /// Stores an item `k` of `size` bytes, makes a `change` to it and has it leave RAM, if there is an SSD.
    fn new(server: Server, size: usize, change: &str) -> Rig {
        let mut client = Client::new();
        let head = format!("set k 5 0 {size}\r\n");
        let value = vec![b'v'; size];
        assert_eq!(client.say(&server, [head.as_bytes(), &value, b"\r\n"].concat()), "STORED\r\n");
        if !change.is_empty() {
            client.say(&server, format!("{change}\r\n"));
        }
        let shown = client.say(&server, "me k\r\n");
        let cas = shown.split(" cas=").nth(1).and_then(|rest| rest.split(' ').next());
        let cas = cas.expect("me shows it").to_string();
        server.push_out();
        Rig { server, cas }
    }

    fn on_ssd(size: usize, change: &str) -> Rig {
        Rig::new(Server::ssd(), size, change)
    }

    fn ask(&self, request: &str) -> String {
        let mut request = request.replace("{cas}", &self.cas);
        for size in [60_000, 150_000] {
            request = request.replace(&format!("{{{size}}}"), &"y".repeat(size));
        }
        Client::new().say(&self.server, format!("{request}\r\n"))
    }

    /// The sizes of the reads that were performed since the last call.
    fn reads(&self) -> Vec<usize> {
        self.server.plans.take().iter().map(|plan| plan.bytes()).collect()
    }

    /// Flips a bit of one of the item's pages on the SSD.
    fn damage(&self, page: u64) {
        self.ask("me k");
        let offset = self.server.plans.take()[0].offset() + page * PAGE as u64;
        let device = self.server.device.as_ref().expect("it has an SSD");
        let mut bytes = IoBuf::zeroed(PAGE);
        device.read_at(&mut bytes, offset).expect("the device gives it");
        bytes[300] ^= 4;
        device.write_at(&bytes, offset).expect("the device takes it");
    }
}

/// The line of a request.
fn line(request: &str) -> &str {
    request.split("\r\n").next().unwrap_or_default()
}

#[test]
fn a_command_that_the_header_answers_reads_one_page_of_a_large_item() {
    let rig = Rig::on_ssd(LARGE, "");
    rig.ask("get k");
    let whole = rig.reads();
    assert!(matches!(whole[..], [bytes] if (LARGE..LARGE * 5 / 4).contains(&bytes)), "{whole:?}");
    for (change, request, reply, reads) in COMMANDS {
        let rig = Rig::on_ssd(LARGE, change);
        let said = rig.ask(request);
        assert!(said.starts_with(reply), "{}: {}", line(request), line(&said));
        let wanted = match reads {
            Nothing => vec![],
            Page => vec![PAGE],
            Whole => whole.clone(),
            PageThenWhole => vec![PAGE, whole[0]],
        };
        assert_eq!(rig.reads(), wanted, "bytes read by {:?} after {change:?}", line(request));
    }
}

#[test]
fn every_command_does_to_a_large_item_on_the_ssd_what_it_does_in_ram() {
    for (change, request, ..) in COMMANDS {
        let said = [Server::ram(), Server::ssd()].map(|server| {
            let rig = Rig::new(server, LARGE, change);
            // The tiers are two classes.
            let reply = rig.ask(request).replace("cls=2", "cls=1");
            (reply, rig.ask("mg k v s t f"))
        });
        assert!(said[0] == said[1], "{:?} after {change:?}", line(request));
    }
}

#[test]
fn an_item_of_two_pages_is_read_whole_and_promoted_by_reads_of_its_header() {
    let rig = Rig::on_ssd(5_000, "");
    for _ in 0..5 {
        assert_eq!(rig.ask("mg k s"), "HD s5000\r\n");
    }
    assert_eq!(rig.reads(), [2 * PAGE, 2 * PAGE]);
}

#[test]
fn many_headers_are_asked_for_at_once_and_answered_in_order() {
    let server = Server::ssd();
    let mut client = Client::new();
    let size = |i: usize| 20_000 + i * 1_000;
    for i in 0..40 {
        client.ask(&server, set(&format!("key-{i}"), &vec![b'v'; size(i)]));
    }
    // One of them has to change when it is read.
    client.ask(&server, "md key-7 I\r\n");
    server.push_out();
    client.send(&server, (0..40).map(|i| format!("mg key-{i} s k\r\n")).collect::<String>().as_bytes());
    assert_eq!(client.owed.len(), 40, "none waits for another");
    // The last one first, while no other read may be asked for.
    client.read_room = 0;
    while let Some(last) = client.owed.len().checked_sub(1) {
        client.deliver(&server, last, true);
    }
    let won = |i| if i == 7 { " X W" } else { "" };
    let lines = (0..40).map(|i| format!("HD s{} kkey-{i}{}\r\n", size(i), won(i)));
    assert_eq!(String::from_utf8_lossy(&client.got), lines.collect::<String>());
    assert!(client.is_quiet() && server.plans.borrow().len() == 41);
    assert_eq!(Client::new().say(&server, "mg key-7 s\r\n"), "HD s27000 Z X\r\n", "it was won once");
}

#[test]
fn an_item_whose_value_is_damaged_is_there_until_its_value_is_read() {
    let rig = Rig::on_ssd(LARGE, "");
    rig.damage(100);
    assert_eq!(rig.ask("add k 0 0 1\r\nx"), "NOT_STORED\r\n");
    assert_eq!(rig.ask("mg k s"), "HD s1000000\r\n");
    assert_eq!(rig.ask("get k"), "END\r\n");
    assert_eq!(rig.ask("add k 0 0 1\r\nx"), "STORED\r\n");
    assert_eq!(rig.server.shared.store.stats().ssd_errors, 1);
}

#[test]
fn an_item_whose_header_is_damaged_is_not_there() {
    for (request, reply) in [
        ("get k", "END"),
        ("add k 0 0 1\r\nx", "STORED"),
        ("replace k 0 0 1\r\nx", "NOT_STORED"),
        ("cas k 0 0 1 {cas}\r\nx", "NOT_FOUND"),
        ("append k 0 0 1\r\nx", "NOT_STORED"),
        ("incr k 1", "NOT_FOUND"),
        ("delete k", "NOT_FOUND"),
        ("md k C{cas}", "NF"),
        ("mg k s", "EN"),
        ("me k", "EN"),
        ("touch k 1", "NOT_FOUND"),
    ] {
        let rig = Rig::on_ssd(LARGE, "");
        rig.damage(0);
        assert_eq!(rig.ask(request), format!("{reply}\r\n"), "{}", line(request));
        assert_eq!(rig.server.shared.store.stats().ssd_errors, 1, "{}", line(request));
    }
}
