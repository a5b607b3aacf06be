//! What somebody who starts ZooKeeper's server gives to `java`: flags, and a file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The class that is started.
const SERVER: &str = "org.apache.zookeeper.server.quorum.QuorumPeerMain";
/// The property with the superuser.
const SUPERUSER: &str = "zookeeper.DigestAuthenticationProvider.superDigest";
/// The property with the file of users.
const USERS: &str = "java.security.auth.login.config";

/// A server of the ensemble, as its line in the file says.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Peer {
    /// Its number.
    pub id: u64,
    /// Where replicas reach each other.
    pub leader: u16,
    /// A second port that is its own.
    pub election: u16,
}

/// The server to be.
#[derive(Clone, Debug)]
pub struct Given {
    /// Where it keeps what it has.
    pub data: PathBuf,
    /// Everything in the file, but the servers.
    pub properties: BTreeMap<String, String>,
    /// The servers, by number.
    pub peers: Vec<Peer>,
    /// Who may do everything.
    pub superuser: Option<String>,
    /// Users and passwords for SASL.
    pub users: Vec<(String, String)>,
}

impl Given {
    /// Reads the arguments of `java` and the file that the last of them names.
    ///
    /// # Errors
    /// Where they are not those of such a server.
    pub fn read(arguments: &[String]) -> Result<Self, String> {
        let flags: BTreeMap<&str, &str> = arguments
            .iter()
            .filter_map(|argument| argument.strip_prefix("-D"))
            .filter_map(|flag| flag.split_once('='))
            .collect();
        let file = match arguments {
            [.., class, file] if class == SERVER => Path::new(file),
            _ => return Err(format!("this java runs {SERVER} with a file, and nothing else")),
        };
        let text = std::fs::read_to_string(file).map_err(|why| format!("{}: {why}", file.display()))?;
        let (properties, peers) = configuration(&text)?;
        let data = properties.get("dataDir").ok_or("the file has no dataDir")?.into();
        let users = match flags.get(USERS) {
            Some(file) => users(&std::fs::read_to_string(file).map_err(|why| format!("{file}: {why}"))?),
            None => Vec::new(),
        };
        let superuser = flags.get(SUPERUSER).map(ToString::to_string);
        Ok(Self { data, properties, peers, superuser, users })
    }

    /// A number in the file.
    ///
    /// # Errors
    /// Where there is something else.
    pub fn number<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>, String> {
        let given = self.properties.get(name);
        given.map(|text| text.parse().map_err(|_| format!("{name}={text}: no such number"))).transpose()
    }

    /// The server's own number.
    ///
    /// # Errors
    /// Where it is not in the data directory, or not among the servers.
    pub fn id(&self) -> Result<usize, String> {
        let file = self.data.join("myid");
        let text = std::fs::read_to_string(&file).map_err(|why| format!("{}: {why}", file.display()))?;
        let place =
            text.trim().parse().ok().and_then(|id: u64| self.peers.iter().position(|peer| peer.id == id));
        place.ok_or_else(|| format!("{}: {} is none of the servers", file.display(), text.trim()))
    }
}

/// Reads `name=value` lines, the servers among them.
pub fn configuration(text: &str) -> Result<(BTreeMap<String, String>, Vec<Peer>), String> {
    let (mut properties, mut peers) = (BTreeMap::new(), Vec::new());
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    for line in lines {
        let (name, value) = line.split_once('=').ok_or_else(|| format!("'{line}' is no property"))?;
        match name.strip_prefix("server.") {
            Some(id) => peers.push(peer(id, value).ok_or_else(|| format!("'{line}' is no server"))?),
            None => drop(properties.insert(name.trim().to_string(), value.trim().to_string())),
        }
    }
    peers.sort();
    Ok((properties, peers))
}

fn peer(id: &str, value: &str) -> Option<Peer> {
    let mut parts = value.split(':').skip(1);
    let mut port = || parts.next()?.parse().ok();
    Some(Peer { id: id.parse().ok()?, leader: port()?, election: port()? })
}

/// The users of a JAAS file: `user_NAME="PASSWORD"`.
pub fn users(text: &str) -> Vec<(String, String)> {
    let pair = |word: &str| {
        let (name, password) = word.trim().trim_end_matches(';').strip_prefix("user_")?.split_once('=')?;
        Some((name.to_string(), password.trim_matches('"').to_string()))
    };
    text.lines().filter_map(pair).collect()
}
