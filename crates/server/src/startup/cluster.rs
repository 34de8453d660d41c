//! Reads the file of servers at the start, and again when the daemon is told to.

use crate::cluster::Cluster;
use crate::config::Config;

/// Returns the servers that the configuration names.
///
/// # Errors
/// A text for the operator, with a remedy.
pub fn open(config: &Config) -> Result<Option<Cluster>, String> {
    let Some(path) = &config.cluster_nodes else { return Ok(None) };
    let cluster = Cluster::new(path);
    cluster.load().map_err(|problem| format!("--cluster-nodes {problem}"))?;
    Ok(Some(cluster))
}

/// Reads the file again. The servers stay as they are if that fails.
pub fn reload(cluster: Option<&Cluster>) {
    let Some(cluster) = cluster else { return };
    match cluster.load() {
        Ok(servers) => tracing::info!(servers, "--cluster-nodes: the servers are read again"),
        Err(problem) => tracing::error!("--cluster-nodes {problem}; the servers stay as they were"),
    }
}
