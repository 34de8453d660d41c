//! Command lines, environments and files of all kinds.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use larder_server::config::{Command, Surroundings, load};
use larder_server::plan;

use super::harness::Choices;

/// What stands behind options: numbers at the edges of all types, sizes, addresses, paths, words, and what is none of
/// these.
const VALUES: &[&str] = &[
    "",
    " ",
    "0",
    "1",
    "-1",
    "2",
    "64",
    "1024",
    "65535",
    "65536",
    "2147483647",
    "2147483648",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "18446744073709551615",
    "18446744073709551616",
    "1e9",
    "0x10",
    "+5",
    "1.5",
    "-0.0",
    "nan",
    "inf",
    "1k",
    "1m",
    "64m",
    "1g",
    "2t",
    "99999999999t",
    "16777216t",
    "m",
    "1kk",
    " 8",
    "8 ",
    "8192",
    "yes",
    "no",
    "true",
    "/a:1g",
    "/a:1g,/b:2g",
    "/a",
    ":1g",
    "/a:",
    "none",
    "127.0.0.1",
    "127.0.0.1:0",
    "[::1]:5",
    "[::1",
    "*",
    "localhost:x",
    "notls:127.0.0.1",
    "mtls:*",
    "proto[ascii]:*:1",
    "proto[:*",
    "tag[x]:*",
    ",",
    ",,",
    ":",
    "=",
    "==",
    "\"",
    "'",
    "#",
    "[",
    "]",
    "{",
    "\\",
    "\n",
    "\t",
    "\u{0}",
    "\u{e9}",
    "\u{1F980}",
    "1/2",
    "0/0",
    "2/1",
    "3/2",
    "auto",
    "uring",
    "ascii",
    "binary",
    "all",
    "returning",
    "example",
    "ext",
    "me",
    "700",
    "888",
    "0777777",
    "idle_timeout=3",
    "no_lru_crawler",
    "track_sizes",
    "watcher_logbuf_size=99999999999",
    "resp_obj_mem_limit=1",
    "read_buf_mem_limit=4294967295",
    "ext_path=/x:1g",
    "ext_path=:",
    "hashpower=",
    "ssl_chain_cert=/c",
    "modern=",
    "proxy_config=/p",
    "slab_automove=9,maxconns_fast",
    "=,=",
    "no_=",
];

/// The options' letters and long names, from the help page, with some that there are not.
fn names() -> Vec<String> {
    let surroundings = surroundings(vec!["larder".into(), "-h".into()], BTreeMap::new());
    let Ok(Command::Print(page)) = load(&surroundings) else { panic!("-h prints a page") };
    let words = page.split([' ', '\n', ',', '=', ';', '.']).filter(|word| word.starts_with('-'));
    let mut names: Vec<String> = words.map(str::to_string).collect();
    names.sort();
    names.dedup();
    assert!(names.len() > 80, "{names:?}");
    names.extend(["--", "-", "---", "--no", "-zz", "-vvvv", "--memory", "stray"].map(String::from));
    names
}

fn surroundings(args: Vec<OsString>, variables: BTreeMap<String, String>) -> Surroundings {
    Surroundings { args, variables, cores: 4 }
}

struct Inputs<'a> {
    random: Choices<'a>,
    names: &'static [String],
    file: PathBuf,
}

impl Drop for Inputs<'_> {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.file);
    }
}

impl<'a> Inputs<'a> {
    fn new(data: &'a [u8]) -> Inputs<'a> {
        static NAMES: OnceLock<Vec<String>> = OnceLock::new();
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("larder-configuration-{}-{}.toml", std::process::id(), NEXT.fetch_add(1, Relaxed));
        let file = std::env::temp_dir().join(name);
        Inputs { random: Choices::new(data), names: NAMES.get_or_init(names), file }
    }

    fn value(&mut self) -> String {
        let mut value = VALUES[self.random.below(VALUES.len())].to_string();
        if self.random.one_in(8) {
            value = value.repeat(1 + self.random.below(500));
        }
        value
    }

    fn name(&mut self) -> String {
        let at = self.random.below(self.names.len());
        self.names[at].clone()
    }

    /// A command line of a few options, some with their values behind `=`, some with bytes that are no text.
    fn args(&mut self) -> Vec<OsString> {
        let program = if self.random.one_in(2) { "larder" } else { "memcached" };
        let mut args = vec![OsString::from(program)];
        for _ in 0..self.random.below(6) {
            let (name, value) = (self.name(), self.value());
            match self.random.below(4) {
                0 => args.push(format!("{name}={value}").into()),
                1 => args.push(format!("{name}{value}").into()),
                2 => args.push(name.into()),
                _ => args.extend([name.into(), value.into()]),
            }
        }
        if self.random.one_in(20) {
            args.push(OsString::from_vec(vec![b'-', b'm', 0xFF, self.random.next() as u8]));
        }
        args
    }

    fn variables(&mut self) -> BTreeMap<String, String> {
        let mut variables = BTreeMap::from([("HOME".to_string(), "/home/cook".to_string())]);
        for _ in 0..self.random.below(3) {
            let name = self.name().trim_start_matches('-').to_uppercase().replace('-', "_");
            variables.insert(format!("LARDER_{name}"), self.value());
        }
        variables
    }

    /// A file of some keys and values, some of them not TOML at all.
    fn text(&mut self) -> Vec<u8> {
        let mut text = String::new();
        for _ in 0..self.random.below(6) {
            let (name, value) = (self.name(), self.value());
            let key = name.trim_start_matches('-');
            text.push_str(&match self.random.below(4) {
                0 => format!("{key} = {value}\n"),
                1 => format!("{key} = {value:?}\n"),
                2 => format!("{key} = [{value:?}, 3]\n"),
                _ => format!("[{key}]\n{key}.x = {value}\n"),
            });
        }
        let mut bytes = text.into_bytes();
        if self.random.one_in(4) && !bytes.is_empty() {
            let at = self.random.below(bytes.len());
            bytes[at] = self.random.next() as u8;
        }
        bytes
    }

    fn next(&mut self) -> Surroundings {
        let (mut args, variables) = (self.args(), self.variables());
        if self.random.one_in(2) {
            // Of what is left behind the options, a fuzzer makes whole files.
            let text = if self.random.one_in(4) { self.random.rest().to_vec() } else { self.text() };
            fs::write(&self.file, text).expect("the temporary directory can be written");
            args.splice(1..1, ["--config".into(), self.file.clone().into_os_string()]);
        }
        surroundings(args, variables)
    }
}

/// One input: a command line, the environment and a file. Returns whether it can be served with.
pub fn check(data: &[u8]) -> bool {
    let mut inputs = Inputs::new(data);
    let input = inputs.next();
    match load(&input) {
        Ok(Command::Print(text)) => assert!(!text.is_empty()),
        Ok(Command::Plan(request)) => match plan::answer(&request, 40) {
            Ok(text) | Err(text) => assert!(!text.is_empty()),
        },
        Ok(Command::Run(config)) => {
            assert!(config.threads >= 1 && config.reqs_per_event >= 1 && config.conn_limit >= 1);
            assert!(config.conn_memory_bytes >= 1 << 20);
            assert!(config.item_size_max_bytes <= config.memory_limit_bytes / 2);
            assert!(!config.listen.is_empty() || config.unix_socket.is_some());
            for (name, value) in config.settings() {
                assert!(!name.is_empty() && !value.is_empty(), "{name} has no value");
            }
            return true;
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            assert!([64, 78].contains(&error.exit_code()), "{input:?}: {error}");
        }
    }
    false
}
