//! Who may do what with a node, and who somebody is.

use crate::Code;
use crate::jute::{BadRecord, Input, Output};
use core::net::IpAddr;
use sha1::{Digest as _, Sha1};
use std::collections::BTreeSet;
use troth_types::{Malformed, Reader, Wire, put_bytes};

/// The most entries of one list: it is read with every operation on its node, and by every change of it for everybody who
/// watches.
pub const MAX_ENTRIES: usize = 128;
/// The most bytes of one list, as records have them.
pub const MAX_LIST_BYTES: usize = 8 << 10;
/// The most entries of a list that is kept: releases before took longer ones.
pub(crate) const MAX_KEPT: usize = 1024;
/// The longest scheme or identity, in bytes.
pub const MAX_ID: usize = 4096;

/// What may be done (`ZooDefs.Perms`).
pub mod perms {
    /// Reading a node's data and the names of its children.
    pub const READ: i32 = 1;
    /// Writing its data.
    pub const WRITE: i32 = 2;
    /// Creating children.
    pub const CREATE: i32 = 4;
    /// Deleting children.
    pub const DELETE: i32 = 8;
    /// Changing who may do what.
    pub const ADMIN: i32 = 16;
    /// All of them.
    pub const ALL: i32 = 31;
}

/// Somebody: what a scheme has found out.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id {
    /// How it was found out: `world`, `auth`, `digest`, `ip`, `x509`, `sasl`, `super`.
    pub scheme: String,
    /// Who it is, in the words of that scheme.
    pub id: String,
}

impl Id {
    /// Somebody.
    #[must_use]
    pub fn new(scheme: &str, id: &str) -> Self {
        Self { scheme: scheme.to_owned(), id: id.to_owned() }
    }

    /// Whether it can be kept: what is longer than [`MAX_ID`] is not read again.
    pub(crate) fn fits(&self) -> bool {
        self.scheme.len() <= MAX_ID && self.id.len() <= MAX_ID
    }

    /// Bytes of both texts.
    pub(crate) fn length(&self) -> usize {
        self.scheme.len() + self.id.len()
    }

    /// The one who may do everything.
    pub(crate) fn is_super(&self) -> bool {
        self.scheme == "super"
    }

    pub(crate) fn read(input: &mut Input<'_>) -> Result<Self, BadRecord> {
        // None is nobody in particular: some clients write so of an empty identity.
        let bounded = |text: Option<String>| {
            Some(text.unwrap_or_default()).filter(|text| text.len() <= MAX_ID).ok_or(BadRecord)
        };
        Ok(Self { scheme: bounded(input.text()?)?, id: bounded(input.text()?)? })
    }

    pub(crate) fn write(&self, out: &mut Output) {
        out.text(&self.scheme).text(&self.id);
    }
}

impl Wire for Id {
    fn encode(&self, out: &mut Vec<u8>) {
        put_bytes(out, self.scheme.as_bytes());
        put_bytes(out, self.id.as_bytes());
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self { scheme: text(reader, "a scheme")?, id: text(reader, "an identity")? })
    }
}

fn text(reader: &mut Reader<'_>, field: &'static str) -> Result<String, Malformed> {
    let bytes = reader.bytes(field, MAX_ID)?;
    String::from_utf8(bytes.to_vec()).map_err(|_| Malformed::Invalid("a name is UTF-8"))
}

/// One entry of a list: these may do that.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Acl {
    /// What, as bits of [`perms`].
    pub perms: i32,
    /// Who.
    pub id: Id,
}

impl Acl {
    /// Everybody may do that.
    #[must_use]
    pub fn world(perms: i32) -> Self {
        Self { perms, id: Id::new("world", "anyone") }
    }

    /// Reads the record `ACL`.
    ///
    /// # Errors
    /// [`BadRecord`]
    pub fn read(input: &mut Input<'_>) -> Result<Self, BadRecord> {
        Ok(Self { perms: input.int()?, id: Id::read(input)? })
    }

    /// Writes it.
    pub fn write(&self, out: &mut Output) {
        out.int(self.perms);
        self.id.write(out);
    }
}

impl Wire for Acl {
    fn encode(&self, out: &mut Vec<u8>) {
        self.perms.cast_unsigned().encode(out);
        self.id.encode(out);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self { perms: u32::decode(reader)?.cast_signed(), id: Wire::decode(reader)? })
    }
}

/// Whether somebody with these identities may do this with what has this list.
pub(crate) fn permits(list: &[Acl], wanted: i32, who: &[Id]) -> bool {
    if who.iter().any(Id::is_super) {
        return true;
    }
    let entries = list.iter().filter(|acl| acl.perms & wanted != 0);
    if entries.clone().any(|acl| acl.id.scheme == "world" && acl.id.id == "anyone") {
        return true;
    }
    // Not each with each: lists and identities may be long. All the world may not, whoever asks.
    let mut entries = entries.filter(|acl| acl.id.scheme != "world").peekable();
    if entries.peek().is_none() {
        return false;
    }
    let of = |address: &&Id| address.scheme == "ip";
    let addresses: Vec<IpAddr> = who.iter().filter(of).filter_map(|id| id.id.parse().ok()).collect();
    let others: BTreeSet<&Id> = who.iter().filter(|id| !of(id)).collect();
    entries.any(|acl| match acl.id.scheme.as_str() {
        "ip" => network(&acl.id.id)
            .is_some_and(|network| addresses.iter().any(|address| is_in_network(*address, network))),
        _ => others.contains(&acl.id),
    })
}

/// What looking whether somebody may do something looks at: the list's entries, and where they name anybody but all the
/// world the identities.
pub(crate) fn looks_at(list: &[Acl], who: &[Id]) -> usize {
    let names = list.iter().any(|acl| acl.id.scheme != "world");
    list.len() + if names { who.len() } else { 0 }
}

/// A list as it is kept: each entry once, `auth` replaced by everybody whom the session proved to be. One that becomes too
/// long is refused as soon as it is: what a few bytes of a request stand for may be a thousand times as much.
pub(crate) fn settle(list: Option<Vec<Acl>>, who: &[Id]) -> Result<Vec<Acl>, Code> {
    let (mut settled, mut seen, mut bytes): (Vec<Acl>, _, _) = (Vec::new(), BTreeSet::new(), 0);
    let mut put = |acl: Acl| {
        if seen.insert(acl.clone()) {
            bytes += 12 + acl.id.length();
            settled.push(acl);
        }
        if settled.len() > MAX_ENTRIES || bytes > MAX_LIST_BYTES { Err(Code::InvalidAcl) } else { Ok(()) }
    };
    let mut expanded = BTreeSet::new();
    for acl in list.unwrap_or_default() {
        match acl.id.scheme.as_str() {
            "world" if acl.id.id == "anyone" => put(acl)?,
            "auth" => {
                let proven = |id: &&Id| matches!(id.scheme.as_str(), "digest" | "x509" | "sasl");
                if !who.iter().any(|id| proven(&id)) {
                    return Err(Code::InvalidAcl);
                }
                // The same once more would be looked through for nothing.
                if expanded.insert(acl.perms) {
                    for id in who.iter().filter(proven) {
                        put(Acl { perms: acl.perms, id: id.clone() })?;
                    }
                }
            }
            "digest" if acl.id.id.split(':').count() == 2 => put(acl)?,
            "ip" if network(&acl.id.id).is_some() => put(acl)?,
            "x509" | "sasl" if !acl.id.id.is_empty() => put(acl)?,
            _ => return Err(Code::InvalidAcl),
        }
    }
    if settled.is_empty() { Err(Code::InvalidAcl) } else { Ok(settled) }
}

/// A list as somebody sees it who may not change it: without what would let a password be guessed.
pub(crate) fn masked(list: &[Acl]) -> Vec<Acl> {
    let hide = |acl: &Acl| match acl.id.id.split_once(':') {
        Some((user, _)) if acl.id.scheme == "digest" => {
            Acl { perms: acl.perms, id: Id::new("digest", &format!("{user}:x")) }
        }
        _ => acl.clone(),
    };
    list.iter().map(hide).collect()
}

/// Who knows `user:password`, in the words of the scheme `digest`: the user, and SHA-1 of both in base 64.
#[must_use]
pub fn digest_id(credentials: &str) -> String {
    let user = credentials.split_once(':').map_or(credentials, |(user, _)| user);
    format!("{user}:{}", base64(&Sha1::digest(credentials.as_bytes())))
}

fn base64(bytes: &[u8]) -> String {
    const SIGNS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let bits =
            chunk.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let sign = SIGNS[(bits >> (18 - 6 * place) & 63) as usize];
            text.push(if place > chunk.len() { '=' } else { char::from(sign) });
        }
    }
    text
}

/// An address, and how many of its leading bits count.
fn network(text: &str) -> Option<(IpAddr, u32)> {
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, Some(bits)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().ok()?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let bits = match bits {
        Some(bits) => bits.parse().ok().filter(|bits| *bits <= most)?,
        None => most,
    };
    Some((address, bits))
}

fn is_in_network(address: IpAddr, (network, bits): (IpAddr, u32)) -> bool {
    let (one, other): (u128, u128) = match (address, network) {
        (IpAddr::V4(one), IpAddr::V4(other)) => {
            (u128::from(one.to_bits()) << 96, u128::from(other.to_bits()) << 96)
        }
        (IpAddr::V6(one), IpAddr::V6(other)) => (one.to_bits(), other.to_bits()),
        _ => return false,
    };
    bits == 0 || (one ^ other) >> (128 - bits) == 0
}
