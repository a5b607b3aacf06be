//! Reading a snapshot's nodes, one after the other.

use super::format::{
    MAX_NODE, NODE_HEADER, NodeHeader, PACK_HEADER, Pack, check_pack_header, node_checksum, pack_name,
};
use crate::window::Window;
use crate::{Disk, Identity, SnapshotError};
use bytes::Bytes;

/// The pack being read.
struct Open<F> {
    pack: Pack,
    name: String,
    file: F,
    window: Window,
    at: u64,
    index: u64,
}

/// The nodes of packs, in each in the order in which they were written. After an error there is nothing more.
pub(super) struct Load<D: Disk> {
    pub(super) disk: D,
    pub(super) identity: Identity,
    /// The next one is the last.
    packs: Vec<Pack>,
    open: Option<Open<D::File>>,
}

impl<D: Disk> Load<D> {
    /// Reads these packs, the last one first.
    pub(super) fn new(disk: D, identity: Identity, packs: Vec<Pack>) -> Self {
        Self { disk, identity, packs, open: None }
    }

    fn step(&mut self) -> Result<Option<([u8; 32], Bytes)>, SnapshotError> {
        loop {
            if let Some(open) = &mut self.open {
                if open.at < open.pack.length {
                    return open.node().map(Some);
                }
                self.open = None;
            }
            let Some(pack) = self.packs.pop() else { return Ok(None) };
            let name = pack_name(pack.number);
            let file = self.disk.open(&name)?;
            let mut window = Window::new(pack.length);
            check_pack_header(&name, window.get(&file, 0, PACK_HEADER)?, self.identity, pack.number)?;
            self.open = Some(Open { pack, name, file, window, at: PACK_HEADER as u64, index: 0 });
        }
    }
}

impl<F: crate::DiskFile> Open<F> {
    fn node(&mut self) -> Result<([u8; 32], Bytes), SnapshotError> {
        let offset = self.at;
        let damaged = || SnapshotError::Damaged {
            file: self.name.clone(),
            offset,
            what: "a node is not what was written",
        };
        let front = self.window.get(&self.file, offset, NODE_HEADER)?;
        let header = NodeHeader::decode(front.first_chunk().ok_or_else(damaged)?);
        let start = offset + NODE_HEADER as u64;
        if header.length > MAX_NODE || start + header.length as u64 > self.pack.length {
            return Err(damaged());
        }
        let bytes = self.window.get(&self.file, start, header.length)?;
        let whole = bytes.len() == header.length
            && node_checksum(self.pack.number, self.index, &header.digest, bytes) == header.checksum;
        if !whole {
            return Err(damaged());
        }
        self.at = start + header.length as u64;
        self.index += 1;
        Ok((header.digest, Bytes::copy_from_slice(bytes)))
    }
}

impl<D: Disk> Iterator for Load<D> {
    type Item = Result<([u8; 32], Bytes), SnapshotError>;

    fn next(&mut self) -> Option<Self::Item> {
        let step = self.step();
        if step.is_err() {
            self.open = None;
            self.packs.clear();
        }
        step.transpose()
    }
}
