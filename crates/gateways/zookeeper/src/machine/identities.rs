//! Who clients are, as lines of the audit log tell it: bounded, and without what proves it.

use super::connection::Connection;
use troth_types::Hasher;
use troth_zookeeper::acl::Id;
use troth_zookeeper::without_secret;

/// The most identities that are remembered of a connection; the newest.
const MOST_WHO: usize = 64;
/// The most bytes of them in a line, and of one of them, as they stand there.
const WHO_BYTES: usize = 1024;
const NAME_BYTES: usize = 256;

fn shown(id: &Id) -> String {
    without_secret(&id.scheme, &id.id)
}

/// The bytes that a sign has in a line.
fn width(sign: char) -> usize {
    match sign {
        '"' | '\\' => 2,
        ' '..='~' => 1,
        _ => 6 * sign.len_utf16(),
    }
}

/// As much of a name as has its place in a line, and its bytes there.
fn bounded(name: &str) -> (String, usize) {
    let (mut text, mut bytes) = (String::new(), 0);
    for sign in name.chars() {
        if bytes + width(sign) > NAME_BYTES {
            break;
        }
        bytes += width(sign);
        text.push(sign);
    }
    (text, bytes)
}

/// What tells two identities apart that have one name. Who does not know the key learns nothing about a password by it.
pub(super) fn fingerprint(key: &[u8; 32], identity: &str) -> String {
    let mut hasher = Hasher::new("troth-zookeeper-audit-identity");
    hasher.fixed(key).bytes(identity.as_bytes());
    let digest = hasher.finish().0;
    format!("#{:08x}", u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]]))
}

/// Notes whom a connection's client has proved to be.
pub(super) fn remember(connection: &mut Connection, who: &str) {
    connection.proven.retain(|known| known != who);
    connection.proven.push(who.to_owned());
    if connection.proven.len() > MOST_WHO {
        connection.proven.remove(0);
        connection.proven_before += 1;
    }
}

/// Who a connection's client is, and how many more: what the gateway saw, and then the newest of what it proved.
pub(super) fn who(connection: &Connection) -> (Vec<String>, usize) {
    let (mut seen, mut proven, mut left) = (Vec::new(), Vec::new(), WHO_BYTES);
    for id in &connection.who {
        let (name, bytes) = bounded(&shown(id));
        left = left.saturating_sub(bytes);
        seen.push(name);
    }
    for name in connection.proven.iter().rev() {
        let (name, bytes) = bounded(name);
        let Some(rest) = left.checked_sub(bytes) else { break };
        left = rest;
        proven.push(name);
    }
    let more = connection.proven.len() - proven.len() + connection.proven_before;
    seen.extend(proven.into_iter().rev());
    (seen, more)
}
