//! Makes a daemon of this host read again what it reads while it runs.

use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;

use crate::connect::{One, is_local};
use crate::exit::{Failure, Outcome, print, print_json};
use crate::figures::Figures;
use crate::http::HttpSource;

/// The process that was told, as `--json` prints it.
#[derive(Serialize)]
struct Told {
    process: i32,
}

/// Sends SIGHUP to the process that `--http` or the server's port tells.
///
/// # Errors
/// The daemon cannot be asked, is no Larder of this host, or may not be told by this user.
pub(super) fn run(http: Option<&HttpSource>, one: &One, json: bool) -> Outcome<()> {
    let address = http.and_then(HttpSource::address).unwrap_or_else(|| one.address());
    if !is_local(address) {
        let advice = format!("{address} may be another host; run this on the daemon's own");
        return Err(Failure::Usage(advice));
    }
    let figures = match http {
        Some(http) => Figures::over_http(http)?,
        None => Figures::ask(&one.client()?)?,
    };
    let process = process_of(&figures, Path::new("/proc")).map_err(Failure::Failed)?;
    kill_process(process, Signal::HUP).map_err(|error| {
        Failure::Failed(format!("process {process} cannot be told: {error}; run this as its user or as root"))
    })?;
    let process = process.as_raw_nonzero().get();
    if json {
        return print_json(&Told { process });
    }
    print(&format!("process {process} reads its files again; its log has the result\n"))
}

/// Returns the daemon's process, which has to have its name below `proc`: in a container, a daemon has another number
/// there than here. memcached is left alone, because SIGHUP ends some of its versions.
fn process_of(figures: &Figures, proc: &Path) -> Result<Pid, String> {
    if !figures.is_larder {
        return Err("the server is no Larder, which SIGHUP could end; restart it instead".to_string());
    }
    let number = figures.get("pid").and_then(|number| i32::try_from(number).ok());
    let process = number.and_then(Pid::from_raw).ok_or("the server does not tell its process")?;
    let number = process.as_raw_nonzero().get();
    let name = std::fs::read_to_string(proc.join(number.to_string()).join("comm")).unwrap_or_default();
    match name.trim_end() {
        name if name.starts_with("larder") || name.starts_with("memcached") => Ok(process),
        "" => Err(format!("there is no process {number} here: send SIGHUP where the daemon runs")),
        name => Err(format!("process {number} is {name} here: send SIGHUP where the daemon runs")),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn only_a_larder_of_this_host_is_told() {
        let proc = tempfile::tempdir().expect("a folder");
        for (number, name) in [(71, "larder\n"), (72, "memcached\n"), (1, "systemd\n")] {
            let folder = proc.path().join(number.to_string());
            std::fs::create_dir(&folder).expect("it is made");
            std::fs::write(folder.join("comm"), name).expect("it is written");
        }
        let process = |is_larder, number| {
            let figures = Figures::of(Instant::now(), is_larder, &[("pid", number)]);
            process_of(&figures, proc.path()).map(|process| process.as_raw_nonzero().get())
        };
        assert_eq!(process(true, 71), Ok(71));
        assert_eq!(process(true, 72), Ok(72), "under memcached's name");
        assert!(process(false, 72).is_err_and(|why| why.contains("no Larder")));
        assert!(process(true, 1).is_err_and(|why| why.contains("systemd")));
        assert!(process(true, 73).is_err_and(|why| why.contains("no process 73")));
        assert!(process(true, 0).is_err_and(|why| why.contains("does not tell")));
    }
}
