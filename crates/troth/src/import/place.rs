//! Where an ensemble is, as ZooKeeper's clients write it.

use std::net::IpAddr;

/// Servers, and the node that is the root of what is seen of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// `host:port` of each.
    pub(crate) servers: Vec<String>,
    /// Empty, or the path of that node.
    pub(crate) chroot: String,
}

/// The port of a server that is named without one.
const USUAL_PORT: u16 = 2181;
/// The owner of a node with a time to live begins so, and its milliseconds are at most these.
const TTL_MARK: i64 = 0xff << 56;
const MOST_TTL: i64 = (1 << 40) - 1;

/// Whether this names a node: steps that are not empty, each behind a slash.
fn is_path(path: &str) -> bool {
    path.strip_prefix('/').is_some_and(|steps| !steps.split('/').any(|step| matches!(step, "" | "." | "..")))
}

/// A node's path, for the command line; `/` is the root.
pub(crate) fn path(text: &str) -> Result<String, String> {
    if text != "/" && !is_path(text) {
        return Err(
            "a path begins with / and has no empty steps, none that are . or .., and no / at its end"
                .to_owned(),
        );
    }
    if text == "/zookeeper" || text.starts_with("/zookeeper/") {
        return Err("/zookeeper is the servers' own; quotas of what is imported come along".to_owned());
    }
    Ok(text.to_owned())
}

/// A server with its port: `host`, `host:port`, `[address]:port`, or an address of version 6 alone.
fn server(text: &str) -> Result<String, String> {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => (host, Some(port)),
        _ => (text, None),
    };
    let port = port.map_or(Ok(USUAL_PORT), |port| port.parse().map_err(|_| format!("{text}: no port")))?;
    let host =
        if host.contains(':') && !host.starts_with('[') { format!("[{host}]") } else { host.to_owned() };
    if host.is_empty() { Err(format!("{text}: no host")) } else { Ok(format!("{host}:{port}")) }
}

/// Whether a server, `host:port`, is surely on this machine: by an address, since a name is whatever its resolver says.
pub(crate) fn is_here(server: &str) -> bool {
    let host = server.rsplit_once(':').map_or(server, |(host, _)| host);
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    address.is_ok_and(|address| address.to_canonical().is_loopback())
}

/// A connection string: servers with commas between, and a path behind the last where not all of the tree is meant.
pub(crate) fn parse(text: &str) -> Result<Place, String> {
    let (servers, chroot) = match text.find('/') {
        None => (text, ""),
        Some(at) if &text[at..] == "/" => (&text[..at], ""),
        Some(at) => text.split_at(at),
    };
    if !chroot.is_empty() && !is_path(chroot) {
        return Err(format!("{chroot}: no path of a node"));
    }
    let servers = servers.split(',').map(|text| server(text.trim())).collect::<Result<_, _>>()?;
    Ok(Place { servers, chroot: chroot.to_owned() })
}

/// What nodes are that the servers of an ensemble do not tell from others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    path: String,
    /// Whether the children of that node are meant.
    children: bool,
    /// The owner by which such nodes are told.
    owner: i64,
}

impl Told {
    /// The owner of a node, if this is about it.
    pub(crate) fn owner(&self, path: &str) -> Option<i64> {
        let meant = if self.children {
            let (parent, name) = path.rsplit_once('/')?;
            !name.is_empty() && parent == self.path
        } else {
            path == self.path
        };
        meant.then_some(self.owner)
    }
}

/// `PATH=container` or `PATH=ttl:MILLISECONDS`; a path that ends with `/*` is about all children of the node before that.
pub(crate) fn told(text: &str) -> Result<Told, String> {
    let (place, kind) = text.rsplit_once('=').ok_or("write PATH=container or PATH=ttl:MILLISECONDS")?;
    let (node, children) = match place.strip_suffix("/*") {
        Some(parent) => (parent, true),
        None => (place, false),
    };
    // The children of the root stand behind an empty path.
    if !(is_path(node) || children && node.is_empty()) {
        return Err(format!("{place}: no path of a node"));
    }
    let owner = match kind.strip_prefix("ttl:").map(str::parse::<i64>) {
        None if kind == "container" => i64::MIN,
        Some(Ok(millis)) if (1..=MOST_TTL).contains(&millis) => TTL_MARK | millis,
        _ => return Err(format!("{kind}: neither container nor ttl:MILLISECONDS (1 to {MOST_TTL})")),
    };
    Ok(Told { path: node.to_owned(), children, owner })
}
