//! The hosts of a fleet, as they are given: names, and how to run a shell on each.

use super::shell_words;
use std::path::Path;

/// The command that runs a shell on a host by default.
pub const SSH: &str = "ssh -o BatchMode=yes";
/// This stands for a host's name in a command.
const HOST: &str = "{host}";
/// This stands for its port.
const PORT: &str = "{port}";
const HOSTS_MAX: usize = 1000;

/// One host of a fleet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Its name in results, different from all others.
    pub name: String,
    /// Where it is.
    pub place: Place,
}

/// Where a host is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Here: a process of its own, without a way to go.
    Local,
    /// Somewhere else.
    Remote {
        /// `host` or `user@host`.
        target: String,
        /// The port to ask for, when it is not the usual one.
        port: Option<u16>,
    },
}

/// Reads `a,user@b:2222,local*7`. `local` is this machine without ssh, and `*N` takes one N times.
///
/// # Errors
/// It is malformed, in one line.
pub fn parse(list: &str) -> Result<Vec<Host>, String> {
    let mut hosts = Vec::new();
    for item in list.split(',').map(str::trim).filter(|item| !item.is_empty()) {
        let (spec, times) = match item.rsplit_once('*') {
            None => (item, 1),
            Some((spec, times)) => {
                let times = times.parse().ok().filter(|times| (1..=HOSTS_MAX).contains(times));
                (spec, times.ok_or_else(|| format!("--hosts {item}: after * comes how many times"))?)
            }
        };
        let place = parse_place(spec)?;
        hosts.extend((0..times).map(|_| Host { name: spec.to_string(), place: place.clone() }));
    }
    match hosts.len() {
        0 => Err("--hosts: at least one host, as in `a,b` or `local*2`".to_string()),
        1..=HOSTS_MAX => Ok(named(hosts)),
        count => Err(format!("--hosts: {count} hosts are more than {HOSTS_MAX}")),
    }
}

/// Reads a file of hosts: one or several a line, `#` begins a comment.
///
/// # Errors
/// The file cannot be read, or a line of it is malformed.
pub fn parse_file(path: &Path) -> Result<Vec<Host>, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("--hosts-file {}: {e}", path.display()))?;
    let items = text.lines().map(|line| line.split('#').next().unwrap_or_default());
    let items: Vec<&str> = items.flat_map(str::split_whitespace).collect();
    parse(&items.join(","))
}

fn parse_place(spec: &str) -> Result<Place, String> {
    if spec == "local" {
        return Ok(Place::Local);
    }
    // A password has no place here, and is not shown where there is one.
    let shown = match spec.rsplit_once('@') {
        Some((user, host)) if user.contains(':') => format!("...@{host}"),
        _ => spec.to_string(),
    };
    let bad =
        || format!("--hosts: `{shown}` is no host; write [USER@]HOST[:PORT]; ssh asks for no password here");
    let (target, port) = match spec.rsplit_once(':') {
        // Several colons without brackets are an address of IPv6.
        Some((target, port)) if !target.contains(':') || target.ends_with(']') => {
            (target, Some(port.parse().map_err(|_| bad())?))
        }
        _ => (spec, None),
    };
    let target = target.replace(['[', ']'], "");
    // ssh would take a name that begins with a dash for an option.
    let is_odd = |c: char| c.is_whitespace() || c.is_control() || "'\"\\;|&$`<>(){}".contains(c);
    if target.is_empty() || target.starts_with('-') || target.contains("@-") || target.contains(is_odd) {
        return Err(bad());
    }
    Ok(Place::Remote { target, port })
}

/// Gives those that are called the same a number each.
fn named(mut hosts: Vec<Host>) -> Vec<Host> {
    let names: Vec<String> = hosts.iter().map(|host| host.name.clone()).collect();
    for (at, host) in hosts.iter_mut().enumerate() {
        if names.iter().filter(|name| **name == host.name).count() > 1 {
            let number = names[..=at].iter().filter(|name| **name == host.name).count();
            host.name = format!("{}#{number}", host.name);
        }
    }
    hosts
}

/// The command that runs a shell on hosts: `ssh ...`, or any other with `{host}` in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transport(Vec<String>);

impl Transport {
    /// Reads a command line. The host is put in where it says `{host}` (and the port where it says `{port}`);
    /// without that, `-p PORT HOST` is appended, as ssh wants it.
    ///
    /// # Errors
    /// It is empty, or a quote has no end.
    pub fn parse(line: &str) -> Result<Self, String> {
        let words = shell_words::split(line).map_err(|message| format!("--ssh {message}"))?;
        if words.is_empty() {
            return Err("--ssh: is empty; the default is `ssh -o BatchMode=yes`".to_string());
        }
        Ok(Self(words))
    }

    /// The command that runs `sh` at a place, which reads what to do from its standard input.
    pub fn shell(&self, place: &Place) -> Vec<String> {
        let mut command = Vec::new();
        if let Place::Remote { target, port } = place {
            let number = port.map_or_else(|| "22".to_string(), |port| port.to_string());
            let is_template = self.0.iter().any(|word| word.contains(HOST));
            command.extend(self.0.iter().map(|word| word.replace(HOST, target).replace(PORT, &number)));
            if !is_template {
                if port.is_some() {
                    command.extend(["-p".to_string(), number]);
                }
                command.push(target.clone());
            }
        }
        command.push("sh".to_string());
        command
    }
}

impl Default for Transport {
    fn default() -> Self {
        Self::parse(SSH).expect("the default has no quotes")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(list: &str) -> Vec<(String, String)> {
        let transport = Transport::parse("ssh -v").expect("two words");
        let hosts = parse(list).expect(list);
        hosts.into_iter().map(|host| (host.name, transport.shell(&host.place).join(" "))).collect()
    }

    #[test]
    fn hosts_are_read_and_each_gets_a_name() {
        let want = |name: &str, command: &str| (name.to_string(), command.to_string());
        assert_eq!(
            shown("a, u@b:2222,"),
            [want("a", "ssh -v a sh"), want("u@b:2222", "ssh -v -p 2222 u@b sh")]
        );
        assert_eq!(
            shown("local*2,a"),
            [want("local#1", "sh"), want("local#2", "sh"), want("a", "ssh -v a sh")]
        );
        assert_eq!(shown("u@[fe80::1]:7"), [want("u@[fe80::1]:7", "ssh -v -p 7 u@fe80::1 sh")]);
        assert_eq!(shown("::1"), [want("::1", "ssh -v ::1 sh")]);
    }

    #[test]
    fn what_is_no_host_is_refused() {
        for bad in ["", ",", "-oProxyCommand=x", "u@-x", "a b", "a:port", "a*0", "a*x", "a;b", "local*5000"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_password_of_a_host_is_not_shown() {
        let refused = parse("u:geheim@h").expect_err("ssh takes none");
        assert!(refused.contains("...@h") && !refused.contains("geheim"), "{refused}");
    }

    #[test]
    fn a_template_says_where_the_host_goes() {
        let shell = |line: &str, host: &str| {
            let hosts = parse(host).expect(host);
            Transport::parse(line).expect(line).shell(&hosts[0].place).join(" ")
        };
        assert_eq!(shell("ip netns exec bench-{host}", "3"), "ip netns exec bench-3 sh");
        assert_eq!(shell("ssh -p {port} {host} nice", "a:7"), "ssh -p 7 a nice sh");
        assert_eq!(shell("docker exec -i {host}", "c1"), "docker exec -i c1 sh");
        assert!(Transport::parse(" ").is_err() && Transport::parse("'ssh").is_err());
    }
}
