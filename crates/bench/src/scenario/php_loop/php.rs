//! The loop as PHP itself runs it, with its memcached extension.

use crate::net::Address;
use crate::scenario::child::Child;
use crate::scenario::{Stage, host};
use std::path::PathBuf;
use std::time::Duration;

const SCRIPT: &str = include_str!("loop.php");
/// It needs a moment to begin and to end.
const MORE: Duration = Duration::from_secs(20);

/// PHP with the script's extension.
#[derive(Clone, Debug)]
pub struct Php {
    program: PathBuf,
    script: PathBuf,
}

/// The script's output.
#[derive(Clone, Debug, PartialEq)]
pub struct Ran {
    /// When it began, on the Unix clock.
    pub start_s: f64,
    /// How long it took.
    pub seconds: f64,
    /// Items set.
    pub items: u64,
    /// Sets that were refused.
    pub sets_failed: u64,
    /// Gets that returned another value than the one set.
    pub gets_wrong: u64,
}

/// PHP, if it is here with its memcached extension; if not, that is noted.
pub fn find(stage: &mut Stage<'_>) -> Option<Php> {
    let Some(program) = host::program("php", &[]) else {
        stage.part.note("the PHP script skipped: there is no php");
        return None;
    };
    if !host::succeeds(&program, &["-r", "exit(class_exists('Memcached') ? 0 : 1);"]) {
        stage.part.note("the PHP script skipped: this php has no memcached extension (php-memcached)");
        return None;
    }
    if stage.options.peers.contains(&crate::scenario::stage::Peer::Redis) {
        stage.part.note("the PHP script to redis skipped: php-memcached does not speak its protocol");
    }
    let script = stage.folder().join("loop.php");
    std::fs::write(&script, SCRIPT).ok()?;
    Some(Php { program, script })
}

impl Php {
    /// Runs the script against a server for this many items, or so long.
    ///
    /// # Errors
    /// It failed, in words.
    pub fn run(
        &self,
        stage: &Stage<'_>,
        server: &Address,
        items: u64,
        with_get: bool,
        time: Duration,
    ) -> Result<Ran, String> {
        // memcached's library takes the path of a Unix socket as a host with port 0.
        let (host, port) = match server {
            Address::Tcp { host, port } => (host.clone(), *port),
            Address::Unix(path) => (path.display().to_string(), 0),
        };
        let words = [
            self.program.display().to_string(),
            self.script.display().to_string(),
            host,
            port.to_string(),
            items.to_string(),
            u8::from(with_get).to_string(),
            time.as_secs_f64().to_string(),
        ];
        let log = stage.folder().join(format!("{}-php.log", stage.next_number()));
        let child = Child::start(stage.host, &stage.host.load_cpus, &words, &log, None)?;
        let said = child.finish(time + MORE, stage.stop)?;
        parse(&said).ok_or_else(|| format!("it printed {said:?}"))
    }
}

fn parse(line: &str) -> Option<Ran> {
    let mut words = line.split_whitespace();
    Some(Ran {
        start_s: words.next()?.parse().ok()?,
        seconds: words.next()?.parse().ok()?,
        items: words.next()?.parse().ok()?,
        sets_failed: words.next()?.parse().ok()?,
        gets_wrong: words.next()?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_line_is_read() {
        let ran = Ran { start_s: 1.5, seconds: 2.25, items: 100, sets_failed: 0, gets_wrong: 1 };
        assert_eq!(parse("1.5 2.25 100 0 1\n"), Some(ran));
        assert_eq!(parse("PHP Warning: x"), None);
    }
}
