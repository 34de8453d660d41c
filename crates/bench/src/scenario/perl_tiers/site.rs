//! Where the servers are: local ones on Unix sockets, remote ones behind loopback or a distance that is made and
//! measured here.

use crate::checks::{check, figure};
use crate::net::{Address, Stream};
use crate::result::Verdict;
use crate::scenario::netns::Netns;
use crate::scenario::relay::Relay;
use crate::scenario::server::{Listen, Make, Server, Setup};
use crate::scenario::{Halt, Stage};
use crate::stats::median;
use crate::watch::counters;
use crate::wire::Protocol;
use std::io::{Read, Write};
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

/// Round trips to measure a distance.
const TRIPS: usize = 200;
const PATIENCE: Duration = Duration::from_secs(5);
/// A busy host may disturb a measurement of a distance.
const ATTEMPTS: u32 = 3;
/// A distance is what was asked for if it differs by no more than this share and this time.
const SHARE: f64 = 0.1;
const SLACK_US: f64 = 100.0;

/// A server, and who owns it.
#[derive(Debug)]
struct End {
    make: Make,
    /// None when the user has it.
    server: Option<Server>,
    address: Address,
    relay: Option<Relay>,
}

impl End {
    /// How many gets it had so far.
    fn gets(&self) -> Option<u64> {
        let found = counters::ask(&self.address, Protocol::Text, None, None).ok()?;
        found.values.get("cmd_get")?.parse().ok()
    }

    /// What a worker connects to.
    fn place(&self) -> String {
        match &self.relay {
            Some(relay) => relay.address.to_string(),
            None => self.address.to_string(),
        }
    }
}

/// Servers at one distance.
#[derive(Debug)]
pub struct Site {
    /// Its name in tables.
    pub name: String,
    added: Duration,
    ends: Vec<End>,
}

impl Site {
    /// Local servers.
    ///
    /// # Errors
    /// One does not start, or a stop was asked for.
    pub fn near(stage: &mut Stage<'_>, makes: &[Make]) -> Result<Self, Halt> {
        let given = stage.options.wanted.near.clone();
        let ends = ends(stage, makes, given, &Listen::Unix)?;
        Ok(Self { name: "near".to_string(), added: Duration::ZERO, ends })
    }

    /// Remote servers, so much farther away than loopback or than the user's server is.
    ///
    /// # Errors
    /// One does not start, there can be no relay in front of it, or a stop was asked for.
    pub fn far(
        stage: &mut Stage<'_>,
        makes: &[Make],
        netns: Option<&Netns>,
        added: Duration,
    ) -> Result<Self, Halt> {
        let given = stage.options.wanted.server.clone();
        let plain = if given.is_some() { "the server as it is" } else { "loopback" };
        let name = match added.is_zero() {
            true => plain.to_string(),
            false => format!("{} ms added", figure(added.as_secs_f64() * 1e3)),
        };
        let at = netns.filter(|_| !added.is_zero()).map_or(Ipv4Addr::LOCALHOST, |netns| netns.middle);
        let ends = ends(stage, makes, given, &Listen::Tcp(at))?;
        let mut site = Self { name, added, ends };
        if !added.is_zero() {
            site.add_distance(stage, netns, at)?;
        }
        Ok(site)
    }

    /// Puts a relay in front of each server. Its own time is a part of the distance.
    fn add_distance(
        &mut self,
        stage: &mut Stage<'_>,
        netns: Option<&Netns>,
        at: Ipv4Addr,
    ) -> Result<(), Halt> {
        for end in &mut self.ends {
            let failed = |why: String| Halt::Failed(format!("a relay to {}: {why}", end.address));
            let cpus = &stage.host.server_cpus;
            let relay = stage.host.pinned(cpus, || Relay::start(at, &end.address));
            let relay = relay.map_err(|e| failed(e.to_string()))?;
            let place = Address::Tcp { host: relay.address.ip().to_string(), port: relay.address.port() };
            let wanted_us = self.added.as_secs_f64() * 1e6;
            let is_right = |added_us: f64| (added_us - wanted_us).abs() <= wanted_us * SHARE + SLACK_US;
            let (mut direct_us, mut own_us, mut added_us) = (0.0, 0.0, 0.0);
            for _ in 0..ATTEMPTS {
                relay.hold(Duration::ZERO);
                direct_us = round_trip_us(&end.address).map_err(failed)?;
                own_us = trip(netns, &place).map_err(failed)? - direct_us;
                relay.hold(Duration::from_secs_f64((wanted_us - own_us).max(0.0) / 2e6));
                added_us = trip(netns, &place).map_err(failed)? - direct_us;
                if is_right(added_us) {
                    break;
                }
            }
            let message = format!(
                "{} to {}: a round trip takes {} us without the relay and {} us more with it, of which {} \
                 are its own",
                self.name,
                end.address,
                figure(direct_us),
                figure(added_us),
                figure(own_us)
            );
            let verdict = if is_right(added_us) { Verdict::Pass } else { Verdict::Fail };
            stage.part.check(check("distance", verdict, message));
            end.relay = Some(relay);
        }
        Ok(())
    }

    fn end(&self, make: Make) -> Option<&End> {
        self.ends.iter().find(|end| end.make == make)
    }

    /// Whether it has such a server.
    pub fn has(&self, make: Make) -> bool {
        self.end(make).is_some()
    }

    /// What a worker connects to; empty if there is no such server.
    pub fn place(&self, make: Make) -> String {
        self.end(make).map(End::place).unwrap_or_default()
    }

    /// How many gets a server had so far, as it counts them.
    pub fn gets(&self, make: Make) -> Option<u64> {
        self.end(make).and_then(End::gets)
    }

    /// Whether nobody else uses its servers.
    pub fn is_ours(&self) -> bool {
        self.ends.iter().all(|end| end.server.is_some())
    }

    /// Whether its servers are behind a relay.
    pub fn is_farther(&self) -> bool {
        !self.added.is_zero()
    }
}

/// The user's server, in the place of Larder's, or one of each make.
fn ends(
    stage: &mut Stage<'_>,
    makes: &[Make],
    given: Option<Address>,
    listen: &Listen,
) -> Result<Vec<End>, Halt> {
    if let Some(address) = given {
        return Ok(vec![End { make: Make::Larder, server: None, address, relay: None }]);
    }
    let mut ends = Vec::new();
    for make in makes {
        let setup = Setup { listen: listen.clone(), ..Setup::new(*make) };
        if let Some(server) = stage.server(setup)? {
            stage.part.note(format!("the servers of the rows with {} are {}", make.name(), server.version));
            let address = server.address.clone();
            ends.push(End { make: *make, server: Some(server), address, relay: None });
        }
    }
    Ok(ends)
}

/// The median of round trips to a server, in microseconds, from where the workers run.
fn trip(netns: Option<&Netns>, address: &Address) -> Result<f64, String> {
    match netns {
        Some(netns) => netns.inside(0, || round_trip_us(address))?,
        None => round_trip_us(address),
    }
}

fn round_trip_us(address: &Address) -> Result<f64, String> {
    let mut stream = Stream::connect_waiting(address, None, PATIENCE).map_err(|e| e.to_string())?;
    let mut reply = [0; 256];
    let mut times = Vec::with_capacity(TRIPS);
    for _ in 0..TRIPS {
        let start = Instant::now();
        stream.write_all(b"version\r\n").map_err(|e| e.to_string())?;
        let mut length = 0;
        while !reply[..length].ends_with(b"\r\n") {
            match stream.read(&mut reply[length..]) {
                Ok(0) => {
                    return Err("the server closed the connection, or its version has no end".to_string());
                }
                Ok(read) => length += read,
                Err(error) => return Err(error.to_string()),
            }
        }
        times.push(start.elapsed().as_secs_f64() * 1e6);
    }
    Ok(median(&times))
}
