//! A process as `/proc` tells of it: its CPU time, memory, context switches, and which one listens where.

use crate::net::Address;
use std::fs;
use std::io;
use std::path::Path;

/// CPU time in user space and in the kernel, in clock ticks, from the text of a `stat` file.
pub fn ticks(stat: &str) -> Option<(u64, u64)> {
    let mut fields = fields(stat)?.skip(11);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// Resident memory in pages, from the text of a `stat` file.
pub fn resident_pages(stat: &str) -> Option<u64> {
    fields(stat)?.nth(21)?.parse().ok()
}

/// The fields behind the name, which stands in parentheses and may hold anything.
fn fields(stat: &str) -> Option<impl Iterator<Item = &str>> {
    Some(stat[stat.rfind(')')? + 1..].split_whitespace())
}

/// Context switches, given up and taken away, from the texts of any number of `status` files.
pub fn switches(status: &str) -> u64 {
    let counts = status.lines().filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.ends_with("ctxt_switches").then(|| value.trim().parse::<u64>().ok())?
    });
    counts.sum()
}

/// The `status` of all threads of a process, one after the other.
pub(super) fn task_status(pid: u32) -> io::Result<String> {
    let mut text = String::new();
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        // A thread may end in between.
        text += &fs::read_to_string(task?.path().join("status")).unwrap_or_default();
    }
    Ok(text)
}

/// The process of this host that listens at an address.
pub fn listening(address: &Address) -> Option<u32> {
    let inodes = match address {
        Address::Unix(path) => {
            let table = fs::read_to_string("/proc/net/unix").ok()?;
            unix_inodes(&table, path)
        }
        Address::Tcp { port, .. } => {
            let is_here = address.resolve().ok()?.iter().any(|at| at.ip().is_loopback());
            let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|path| fs::read_to_string(path).ok());
            let tables = if is_here { tables } else { [None, None] };
            tables.iter().flatten().flat_map(|table| tcp_inodes(table, *port)).collect()
        }
    };
    owner(&inodes)
}

/// The sockets that listen on a port, from the text of `/proc/net/tcp` or `tcp6`.
fn tcp_inodes(table: &str, port: u16) -> Vec<u64> {
    const LISTENS: &str = "0A";
    let rows = table.lines().skip(1).filter_map(|row| {
        let fields: Vec<&str> = row.split_whitespace().collect();
        let (_, digits) = fields.get(1)?.rsplit_once(':')?;
        let is_it = u16::from_str_radix(digits, 16) == Ok(port) && fields.get(3) == Some(&LISTENS);
        is_it.then(|| fields.get(9)?.parse().ok())?
    });
    rows.collect()
}

/// The sockets at a path, from the text of `/proc/net/unix`.
fn unix_inodes(table: &str, path: &Path) -> Vec<u64> {
    let rows = table.lines().skip(1).filter_map(|row| {
        let fields: Vec<&str> = row.split_whitespace().collect();
        (fields.get(7).map(Path::new) == Some(path)).then(|| fields.get(6)?.parse().ok())?
    });
    rows.collect()
}

/// The process that has one of the sockets open.
fn owner(inodes: &[u64]) -> Option<u32> {
    if inodes.is_empty() {
        return None;
    }
    let links: Vec<String> = inodes.iter().map(|inode| format!("socket:[{inode}]")).collect();
    let is_one = |link: &Path| links.iter().any(|name| link == Path::new(name));
    fs::read_dir("/proc").ok()?.flatten().find_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        // Another user's process does not show its open files.
        let open = fs::read_dir(entry.path().join("fd")).ok()?;
        let has_one = open.flatten().any(|file| fs::read_link(file.path()).is_ok_and(|link| is_one(&link)));
        has_one.then_some(pid)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    const STAT: &str =
        "4711 (a) b) S 1 4711 4711 0 -1 4194560 100 0 0 0 250 1250 0 0 20 0 4 0 100 104857600 2048 1";

    #[test]
    fn the_name_does_not_disturb() {
        assert_eq!(ticks(STAT), Some((250, 1250)));
        assert_eq!(resident_pages(STAT), Some(2048));
        assert_eq!(ticks("nonsense"), None);
    }

    #[test]
    fn switches_of_all_threads_add_up() {
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t7\n";
        assert_eq!(switches(&status.repeat(2)), 24);
    }

    #[test]
    fn a_listener_is_found_by_its_port() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let address = Address::Tcp { host: "127.0.0.1".to_string(), port };
        assert_eq!(listening(&address), Some(std::process::id()));
        drop(listener);
        assert_eq!(listening(&address), None);
    }

    #[test]
    fn a_unix_socket_is_found_by_its_path() {
        let table = "Num RefCount Protocol Flags Type St Inode Path\n\
                     0000: 00000002 00000000 00010000 0001 01 4242 /run/x.sock\n";
        assert_eq!(unix_inodes(table, Path::new("/run/x.sock")), [4242]);
        assert!(unix_inodes(table, Path::new("/run/y.sock")).is_empty());
    }
}
