//! Reads the servers of a cluster at the start, and again when the daemon is told to or DNS says so.

use std::sync::Arc;
use std::thread;

use crate::cluster::Cluster;
use crate::config::{ClusterOptions, Config};
use crate::shared::Shared;

/// Returns the servers that the configuration names. Those from DNS are not known yet.
///
/// # Errors
/// A text for the operator, with a remedy.
pub fn open(config: &Config) -> Result<Option<Cluster>, String> {
    Ok(match &config.cluster {
        Some(ClusterOptions::File(path)) => {
            let cluster = Cluster::new(path);
            cluster.load().map_err(|problem| format!("--cluster-nodes {problem}"))?;
            Some(cluster)
        }
        Some(ClusterOptions::Srv { name, server }) => Some(Cluster::of_srv(name, *server)),
        None => None,
    })
}

/// Reads the file again, or has the records looked up now. The servers stay as they are if that fails.
pub fn reload(cluster: Option<&Cluster>) {
    let Some(cluster) = cluster else { return };
    match cluster.load() {
        Ok(Some(servers)) => tracing::info!(servers, "--cluster-nodes: the servers are read again"),
        Ok(None) => {}
        Err(problem) => tracing::error!("--cluster-nodes {problem}; the servers stay as they were"),
    }
}

/// Follows the records in DNS, on a thread of its own that lives as long as the process. Without such records it
/// starts none.
///
/// # Errors
/// The thread cannot be started.
pub fn follow(shared: &Arc<Shared>) -> Result<(), String> {
    if !matches!(shared.config.cluster, Some(ClusterOptions::Srv { .. })) {
        return Ok(());
    }
    let shared = shared.clone();
    let run = move || {
        let Some(cluster) = &shared.cluster else { return };
        let mut failing = false;
        while let Some(renewal) = cluster.renew() {
            match &renewal.result {
                Ok(Some(servers)) => tracing::info!(servers, "--cluster-srv: the servers have changed"),
                Ok(None) if failing => tracing::info!("--cluster-srv: DNS answers again"),
                // Once, not with every try.
                Err(problem) if !failing => {
                    tracing::error!(
                        "--cluster-srv: {problem}; the servers stay as they were until DNS answers"
                    );
                }
                Ok(None) | Err(_) => {}
            }
            failing = renewal.result.is_err();
            cluster.wait(renewal.next);
        }
    };
    let spawned = thread::Builder::new().name("larder-cluster".into()).spawn(run);
    spawned.map(drop).map_err(|error| format!("cannot start the thread that asks DNS: {error}"))
}
