//! Names of nodes, and who may do what with them, as the model has it.

use core::net::IpAddr;
use troth_zookeeper::acl::{Acl, Id, MAX_ENTRIES, MAX_ID, MAX_LIST_BYTES};
use troth_zookeeper::{Code, MAX_PATH, MAX_STEPS, MAX_WHO, MAX_WHO_BYTES};

/// Checks that this names a node.
pub fn check_path(path: &str) -> Result<(), Code> {
    let control = |c: char| matches!(u32::from(c), 0..=0x1f | 0x7f..=0x9f | 0xe000..=0xf8ff | 0xfff0..);
    let good = path.starts_with('/')
        && path.len() <= MAX_PATH
        && !path.contains(control)
        && (path == "/" || path[1..].split('/').all(|step| !matches!(step, "" | "." | "..")));
    if good { Ok(()) } else { Err(Code::BadArguments) }
}

/// Checks that a node of this name may be made: there are only so many above one.
pub fn check_new_path(path: &str) -> Result<(), Code> {
    check_path(path)?;
    if path[1..].split('/').count() > MAX_STEPS { Err(Code::BadArguments) } else { Ok(()) }
}

/// The node above. The root's is the root.
pub fn parent(path: &str) -> &str {
    match path.rfind('/') {
        None | Some(0) => "/",
        Some(at) => &path[..at],
    }
}

/// Whether one path lies below another.
pub fn is_below(path: &str, above: &str) -> bool {
    match above {
        "/" => path != "/",
        _ => path.strip_prefix(above).is_some_and(|rest| rest.starts_with('/')),
    }
}

/// Whether somebody may do one of these.
pub fn may(list: &[Acl], wanted: i32, who: &[Id]) -> Result<(), Code> {
    let fits = |acl: &Acl, id: &Id| {
        acl.id.scheme == id.scheme
            && match id.scheme.as_str() {
                "ip" => is_in(&id.id, &acl.id.id),
                _ => acl.id.id == id.id,
            }
    };
    let anyone = |acl: &Acl| acl.id == Id::new("world", "anyone");
    let allowed = who.iter().any(|id| id.scheme == "super")
        || list
            .iter()
            .any(|acl| acl.perms & wanted != 0 && (anyone(acl) || who.iter().any(|id| fits(acl, id))));
    if allowed { Ok(()) } else { Err(Code::NoAuth) }
}

/// An address and a mask, as numbers of so many bits.
fn network(text: &str) -> Option<(IpAddr, u32)> {
    let (address, length) =
        text.split_once('/').map_or((text, None), |(address, length)| (address, Some(length)));
    let address: IpAddr = address.parse().ok()?;
    let whole = if address.is_ipv6() { 128 } else { 32 };
    let length = length.map_or(Some(whole), |length| length.parse().ok())?;
    (length <= whole).then_some((address, length))
}

fn bits(address: IpAddr) -> Vec<bool> {
    let octets = match address {
        IpAddr::V4(four) => four.octets().to_vec(),
        IpAddr::V6(six) => six.octets().to_vec(),
    };
    octets.iter().flat_map(|octet| (0..8).rev().map(move |bit| octet >> bit & 1 == 1)).collect()
}

fn is_in(address: &str, net: &str) -> bool {
    let (Ok(address), Some((net, length))) = (address.parse::<IpAddr>(), network(net)) else { return false };
    let (one, other) = (bits(address), bits(net));
    one.len() == other.len() && one.iter().zip(&other).take(length as usize).all(|(a, b)| a == b)
}

/// A list as it is kept.
pub fn settle(list: &[Acl], who: &[Id]) -> Result<Vec<Acl>, Code> {
    let mut kept: Vec<Acl> = Vec::new();
    for acl in list {
        let own: Vec<Acl> = match acl.id.scheme.as_str() {
            "world" if acl.id.id == "anyone" => vec![acl.clone()],
            "digest" if acl.id.id.matches(':').count() == 1 => vec![acl.clone()],
            "ip" if network(&acl.id.id).is_some() => vec![acl.clone()],
            "x509" | "sasl" if !acl.id.id.is_empty() => vec![acl.clone()],
            "auth" => who
                .iter()
                .filter(|id| ["digest", "x509", "sasl"].contains(&id.scheme.as_str()))
                .map(|id| Acl { perms: acl.perms, id: id.clone() })
                .collect(),
            _ => Vec::new(),
        };
        if own.is_empty() {
            return Err(Code::InvalidAcl);
        }
        own.into_iter().for_each(|acl| {
            if !kept.contains(&acl) {
                kept.push(acl);
            }
        });
    }
    let bytes: usize = kept.iter().map(|acl| 12 + acl.id.scheme.len() + acl.id.id.len()).sum();
    let good = (1..=MAX_ENTRIES).contains(&kept.len()) && bytes <= MAX_LIST_BYTES;
    if good { Ok(kept) } else { Err(Code::InvalidAcl) }
}

/// The user of a digest identity, without what proves it.
pub fn user(id: &str) -> &str {
    id.split(':').next().unwrap_or_default()
}

/// What a gateway may say that a client is.
pub fn attestable(id: &Id) -> bool {
    ["ip", "x509", "sasl"].contains(&id.scheme.as_str())
}

/// Whether a session may be all of these at once.
pub fn may_be(who: &[Id]) -> Result<(), Code> {
    let mut bytes = 0;
    for Id { scheme, id } in who {
        bytes += scheme.len() + id.len();
        if scheme.len() > MAX_ID || id.len() > MAX_ID {
            return Err(Code::AuthFailed);
        }
    }
    if who.len() > MAX_WHO || bytes > MAX_WHO_BYTES { Err(Code::AuthFailed) } else { Ok(()) }
}
