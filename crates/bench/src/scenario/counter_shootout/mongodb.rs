//! A server from Maven's repository that speaks MongoDB's wire, in memory: it takes the place of a MongoDB where
//! none is given.

use super::place::{Place, Running, answers, port};
use crate::scenario::host;
use std::fs;

/// The name of its row: it is no MongoDB.
pub const LABEL: &str = "mongo-java-server";

/// The server, the libraries that it needs, and what these have to be.
const FILES: [(&str, &str); 3] = [
    ("MongoServer.java", include_str!("mongodb/MongoServer.java")),
    ("pom.xml", include_str!("mongodb/pom.xml")),
    ("sha256sums", include_str!("mongodb/sha256sums")),
];

/// Each file that is named has to be there, and no other.
const COMPARE: &str = "cd jars && sha256sum --check --quiet --strict ../sha256sums && \
                       [ $(ls | wc -l) = $(wc -l <../sha256sums) ]";

/// Has Maven fetch the libraries, compares them with their sums, and starts the server.
///
/// # Errors
/// Java or Maven is missing, or something could not be fetched or started; in words.
pub fn mongodb(place: &Place<'_>) -> Result<Running, String> {
    let find = |name: &str| {
        let missing = || format!("there is no {name} (Debian: maven), and no URL was given (--mongodb)");
        host::program(name, &[]).map(|path| path.display().to_string()).ok_or_else(missing)
    };
    let (java, maven) = (find("java")?, find("mvn")?);
    let (folder, owner) = place.home(None)?;
    for (name, text) in FILES {
        fs::write(folder.path().join(name), text)
            .map_err(|error| format!("{name} cannot be written: {error}"))?;
    }
    let fetch = [&maven, "--batch-mode", "--quiet", "dependency:copy-dependencies", "-DoutputDirectory=jars"];
    place.prepare(&fetch.map(str::to_string), &folder, owner)?;
    place
        .prepare(&["sh", "-c", COMPARE].map(str::to_string), &folder, owner)
        .map_err(|why| format!("what Maven fetched is not what was to be fetched: {why}"))?;
    let port = port()?;
    let jars = format!("{}/jars/*", folder.path().display());
    let serve =
        [&java, "-XX:TieredStopAtLevel=1", "-Xmx256m", "-cp", &jars, "MongoServer.java", &port.to_string()];
    place.serve(&serve.map(str::to_string), folder, owner, port, || answers(port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sums_name_jars_alone() {
        let sums = FILES.iter().find(|(name, _)| *name == "sha256sums").map_or("", |(_, text)| text);
        assert!(sums.lines().count() > 5);
        for line in sums.lines() {
            let (sum, name) = line.split_once("  ").expect("a sum and a name");
            assert!(sum.len() == 64 && name.ends_with(".jar") && !name.contains('/'), "{line}");
        }
    }
}
