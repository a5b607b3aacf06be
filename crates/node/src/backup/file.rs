//! A state as one file: a head that names its root, then the parts of its tree, each behind the digest that
//! names it. Whoever knows the root's digest from elsewhere needs to trust nothing else in it.
//!
//! ```text
//! head   magic 8 | version u16 | number u64 | agreed time u64 | root 32      (numbers little-endian)
//! part   digest 32 | length u32 | bytes
//! end    32 zeros | parts u64
//! ```

use super::{BackupError, failed};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{BufReader, BufWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use troth_exec::Snapshot as State;
use troth_types::{Digest, Seq, Time};

const MAGIC: &[u8; 8] = b"TROTHSTA";
const VERSION: u16 = 1;
/// The most bytes of one part: a page of entries or one large value.
const MAX_PART: usize = 1 << 26;
/// Reserved for a part before it has been read.
const PIECE: usize = 1 << 16;

/// Writes a state to a file that is not there yet, and makes it durable. Gives its length.
///
/// # Errors
/// [`BackupError::File`].
pub(crate) fn write(path: &Path, state: &State) -> Result<u64, BackupError> {
    let to = || {
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        let mut out = BufWriter::with_capacity(1 << 20, file);
        out.write_all(MAGIC)?;
        out.write_all(&VERSION.to_le_bytes())?;
        out.write_all(&state.seq().0.to_le_bytes())?;
        out.write_all(&state.time().0.to_le_bytes())?;
        out.write_all(&state.root().0)?;
        let mut parts = 0_u64;
        for (digest, bytes) in state.parts() {
            let length = u32::try_from(bytes.len()).map_err(|_| std::io::Error::other("a part too long"))?;
            out.write_all(&digest.0)?;
            out.write_all(&length.to_le_bytes())?;
            out.write_all(&bytes)?;
            parts += 1;
        }
        out.write_all(&Digest::ZERO.0)?;
        out.write_all(&parts.to_le_bytes())?;
        let file = out.into_inner().map_err(std::io::IntoInnerError::into_error)?;
        file.sync_all()?;
        Ok(file.metadata()?.len())
    };
    to().map_err(failed("write", path))
}

/// Reads a state; every part is checked against the digest that names it, the root against what the head
/// says. Whether that is the root that was meant is for the caller to check.
///
/// # Errors
/// [`BackupError::File`], [`BackupError::Damaged`], [`BackupError::Version`].
pub(crate) fn read(path: &Path) -> Result<State, BackupError> {
    let file = File::open(path).map_err(failed("open", path))?;
    let length = file.metadata().map_err(failed("look at", path))?.len();
    let mut fields = Fields { path, input: BufReader::with_capacity(1 << 20, file), left: length };
    if fields.array::<8>()? != *MAGIC {
        return Err(fields.damaged("it does not begin as a state does"));
    }
    let version = u16::from_le_bytes(fields.array()?);
    if version != VERSION {
        return Err(BackupError::Version { found: u64::from(version), known: u64::from(VERSION) });
    }
    let seq = Seq(u64::from_le_bytes(fields.array()?));
    let time = Time(u64::from_le_bytes(fields.array()?));
    let root = Digest(fields.array()?);
    let mut parts: BTreeMap<Digest, Bytes> = BTreeMap::new();
    let mut count = 0_u64;
    loop {
        let digest = Digest(fields.array()?);
        if digest == Digest::ZERO {
            break;
        }
        let length = u32::from_le_bytes(fields.array()?) as usize;
        if length > MAX_PART {
            return Err(fields.damaged("a part is longer than a part can be"));
        }
        parts.insert(digest, fields.bytes(length)?);
        count += 1;
    }
    if u64::from_le_bytes(fields.array()?) != count {
        return Err(fields.damaged("it does not hold as many parts as it says"));
    }
    if fields.left != 0 {
        return Err(fields.damaged("something stands behind its end"));
    }
    State::from_parts(seq, time, root, &|digest| parts.get(digest).cloned())
        .map_err(|why| fields.damaged(&why.to_string()))
}

/// Reads fields of a file that may be cut anywhere.
struct Fields<'a, R> {
    path: &'a Path,
    input: R,
    left: u64,
}

impl<R: Read> Fields<'_, R> {
    fn damaged(&self, what: &str) -> BackupError {
        BackupError::Damaged { file: self.path.to_path_buf(), what: what.to_owned() }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], BackupError> {
        let mut array = [0; N];
        array.copy_from_slice(&self.bytes(N)?);
        Ok(array)
    }

    fn bytes(&mut self, length: usize) -> Result<Bytes, BackupError> {
        if length as u64 > self.left {
            return Err(self.damaged("it is cut short"));
        }
        self.left -= length as u64;
        let mut bytes = Vec::with_capacity(length.min(PIECE));
        (&mut self.input).take(length as u64).read_to_end(&mut bytes).map_err(failed("read", self.path))?;
        if bytes.len() < length {
            return Err(self.damaged("it is cut short"));
        }
        Ok(Bytes::from(bytes))
    }
}
