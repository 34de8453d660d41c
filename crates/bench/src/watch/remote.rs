//! Reads another host's `/proc`, through one long-lived shell there that is asked once for every sample.
//!
//! ```text
//!   us: a number  -->  sh: a mark and a text each, then the number again
//! ```
//!
//! The host needs a POSIX shell, `cat`, `ls` and `awk`, and nothing of ours. The shell ends when its input
//! does.

use super::Process;
use super::proc_reader::{ProcReader, Texts, Units};
use crate::net::Address;
use crate::transport::frame::Frames;
use crate::transport::host::{Host, Transport};
use crate::transport::remote::{self, Line};
use crate::transport::shell_words::quote;
use std::io::{self, Write};
use std::process::{ChildStdin, ChildStdout};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// How long the shell may take to come up and find the process.
const HELLO: Duration = Duration::from_secs(30);
/// How long an answer may take; a later one is useless.
const PATIENCE: Duration = Duration::from_millis(1500);
/// An answer is shorter: a status of every thread, and every device.
const ANSWER_BYTES_MAX: usize = 16 << 20;
/// Comes once, before the answers; a greeting of the login shell may stand before it.
const MAGIC: &[u8] = b"\nlarder-bench-watch\n";
const MARK: &str = "@@larder-bench ";
const END: &[u8] = b"@@larder-bench end\n";

/// The shell's script. `pid`, `port` and `given` are set before.
const SCRIPT: &str = r#"
if [ "$pid" = auto ]; then
inodes=$(awk -v port="$port" '$4 == "0A" { n = split($2, a, ":"); if (a[n] == port) printf "%s ", $10 }' \
/proc/net/tcp /proc/net/tcp6 2>/dev/null)
pid=$(ls -l /proc/[0-9]*/fd 2>/dev/null | awk -v inodes="$inodes" '
BEGIN { n = split(inodes, a, " "); for (i = 1; i <= n; i++) listens["socket:[" a[i] "]"] = 1 }
/^\/proc\// { split($0, part, "/") }
$NF in listens { print part[3]; exit }')
[ -n "$pid" ] || { echo "no process of ours listens there; give its number with --server-pid" >&2; exit 1; }
fi
[ -z "$pid" ] || [ -r "/proc/$pid/stat" ] || { echo "there is no process $pid" >&2; exit 1; }
device=
if [ -n "$given" ]; then
is_path=; case $given in */*) is_path=1 ;; esac
if [ -z "$is_path" ] && [ -e "/sys/class/block/$given" ]; then device=$given
elif [ -b "$given" ]; then device=$(readlink -f "$given"); device=${device##*/}
else device=$(df -P "$given" 2>/dev/null | awk 'NR == 2 { print $1 }')
device=$(readlink -f "$device"); device=${device##*/}
fi
[ -n "$device" ] && [ -e "/sys/class/block/$device" ] ||
{ echo "there is no device behind $given" >&2; exit 1; }
fi
printf '\nlarder-bench-watch\n%s %s\n%s\n%s\n@@larder-bench end\n' \
"$(getconf CLK_TCK 2>/dev/null || echo 100)" "$(getconf PAGESIZE 2>/dev/null || echo 4096)" "$pid" "$device"
while read -r number; do
if [ -n "$pid" ]; then
echo '@@larder-bench stat'; cat "/proc/$pid/stat" 2>/dev/null
echo '@@larder-bench status'; cat /proc/"$pid"/task/*/status 2>/dev/null
fi
if [ -n "$device" ]; then echo '@@larder-bench diskstats'; cat /proc/diskstats; fi
echo "@@larder-bench number"; echo "$number"; echo '@@larder-bench end'
done
"#;

/// Reads another host's `/proc`.
#[derive(Debug)]
pub struct Remote {
    host: String,
    pid: String,
    device: Option<String>,
    units: Units,
    number: u64,
    to: Option<ChildStdin>,
    answers: Receiver<io::Result<String>>,
    shell: remote::Remote,
}

impl Remote {
    /// Reaches a host, and finds there the process and the device that are to be seen.
    ///
    /// # Errors
    /// In one line: the host cannot be reached, or there is no such process or device.
    pub fn open(
        transport: &Transport,
        host: &Host,
        process: Process,
        device: Option<&str>,
        address: &Address,
    ) -> Result<Self, String> {
        let pid = match (process, address) {
            (Process::Pid(pid), _) => pid.to_string(),
            (Process::None, _) => String::new(),
            (Process::Auto, Address::Tcp { .. }) => "auto".to_string(),
            (Process::Auto, Address::Unix(_)) => return Err("a Unix socket needs --server-pid".to_string()),
        };
        let port = if let Address::Tcp { port, .. } = address { *port } else { 0 };
        let given = device.unwrap_or_default();
        let script =
            format!("{{\npid={}; port={port:04X}; given={}\n{SCRIPT}}}\n", quote(&pid), quote(given));
        let (shell, line) = remote::Remote::start(transport, host)?;
        let Line { mut to, from } = line;
        // A shell that ended has reported why on its standard error.
        let _ = to.write_all(script.as_bytes()).and_then(|()| to.flush());
        let (tell, answers) = channel();
        thread::spawn(move || {
            let mut listener = from;
            let mut text = hear_hello(&mut listener);
            while tell.send(text).is_ok() {
                text = answer(&mut listener);
                if text.is_err() {
                    let _ = tell.send(text);
                    return;
                }
            }
        });
        let hello = match answers.recv_timeout(HELLO) {
            Ok(Ok(hello)) => hello,
            Ok(Err(_)) => {
                let said = shell.said().last_line();
                return Err(said.unwrap_or_else(|| "the shell there ended without a word".to_string()));
            }
            Err(_) => return Err(format!("no shell has answered there for {} s", HELLO.as_secs())),
        };
        let mut lines = hello.lines();
        let mut counts =
            lines.next().unwrap_or_default().split(' ').map(|word| word.parse::<u64>().unwrap_or(0));
        let (ticks, page_bytes) = (counts.next().unwrap_or(0).max(1), counts.next().unwrap_or(0).max(1));
        let mut word = || lines.next().unwrap_or_default().trim().to_string();
        let (pid, device) = (word(), word());
        Ok(Self {
            host: host.name.clone(),
            pid,
            device: (!device.is_empty()).then_some(device),
            units: Units { tick_us: 1_000_000 / ticks, page_bytes },
            number: 0,
            to: Some(to),
            answers,
            shell,
        })
    }
}

fn hear_hello(from: &mut Frames<ChildStdout>) -> io::Result<String> {
    from.skip_to(&[MAGIC], ANSWER_BYTES_MAX)?;
    answer(from)
}

fn answer(from: &mut Frames<ChildStdout>) -> io::Result<String> {
    let text = from.take_to(END, ANSWER_BYTES_MAX)?.ok_or(io::ErrorKind::UnexpectedEof)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// The texts of an answer, and its number.
fn parse(answer: &str) -> (Texts, u64) {
    let (mut texts, mut number) = (Texts::default(), 0);
    for section in answer.split(MARK) {
        match section.split_once('\n') {
            Some(("stat", text)) => texts.stat = text.to_string(),
            Some(("status", text)) => texts.task_status = text.to_string(),
            Some(("diskstats", text)) => texts.diskstats = text.to_string(),
            Some(("number", text)) => number = text.trim().parse().unwrap_or(0),
            _ => {}
        }
    }
    (texts, number)
}

impl ProcReader for Remote {
    fn look(&mut self) -> io::Result<Texts> {
        self.number += 1;
        let gone = || io::Error::from(io::ErrorKind::NotConnected);
        let to = self.to.as_mut().ok_or_else(gone)?;
        writeln!(to, "{}", self.number)?;
        to.flush()?;
        let until = Instant::now() + PATIENCE;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let answer =
                self.answers.recv_timeout(left).map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
            let (texts, number) = parse(&answer);
            if number == self.number {
                let is_gone = !self.pid.is_empty() && texts.stat.is_empty();
                return if is_gone { Err(io::ErrorKind::NotFound.into()) } else { Ok(texts) };
            }
        }
    }

    fn source(&self) -> String {
        let pid = if self.pid.is_empty() { String::new() } else { format!(" pid {}", self.pid) };
        format!("ssh {}{pid}", self.host)
    }

    fn device(&self) -> Option<String> {
        self.device.clone()
    }

    fn units(&self) -> Units {
        self.units
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        self.to = None;
        self.shell.end(Duration::from_secs(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::host;
    use crate::watch::Local;
    use crate::watch::process::{resident_pages, switches, ticks};
    use std::net::TcpListener;

    fn open(process: Process, device: Option<&str>, port: u16) -> Result<Remote, String> {
        let transport = Transport::parse("env WHERE={host}").expect("a command");
        let hosts = host::parse("elsewhere").expect("a host");
        let address = Address::Tcp { host: "127.0.0.1".to_string(), port };
        Remote::open(&transport, &hosts[0], process, device, &address)
    }

    #[test]
    fn a_process_is_seen_as_it_is_from_its_own_host() {
        let mut near = Local::new(Some(std::process::id()), false);
        let mut far = open(Process::Pid(std::process::id()), None, 0).expect("there is a sh");
        for _ in 0..3 {
            let (near, far) = (near.look().expect("it is us"), far.look().expect("it is us"));
            assert!(ticks(&far.stat) >= ticks(&near.stat));
            assert!(resident_pages(&far.stat) > Some(0));
            // The other tests are threads of this process too: those that end between the looks take theirs
            // along.
            assert!(switches(&near.task_status) > 0 && switches(&far.task_status) > 0);
            assert_eq!(far.diskstats, "");
        }
        assert_eq!(far.units(), Units::default());
        assert_eq!(far.source(), format!("ssh elsewhere pid {}", std::process::id()));
    }

    #[test]
    fn the_process_that_listens_is_found() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let proc_reader = open(Process::Auto, None, port).expect("a process listens");
        assert_eq!(proc_reader.source(), format!("ssh elsewhere pid {}", std::process::id()));
        drop(listener);
        let message = open(Process::Auto, None, port).expect_err("no process listens");
        assert!(message.contains("--server-pid"), "{message}");
    }

    #[test]
    fn what_is_not_there_is_said() {
        let message = open(Process::Pid(u32::MAX), None, 0).expect_err("there is none");
        assert!(message.contains("no process"), "{message}");
        let message = open(Process::None, Some("/nowhere/at/all"), 0).expect_err("there is none");
        assert!(message.contains("no device"), "{message}");
    }
}
