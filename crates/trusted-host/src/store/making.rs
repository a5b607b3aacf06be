//! Making what a store goes on in: a file of the next generation, and its entry in the marker.
//!
//! First everything that needs space is written under passing names and synced; a start removes what it
//! finds there. Then come the renamings, the file's durable before the marker's. So whatever fails for
//! want of space fails before anything has changed.

use super::directory::{Directory, StoreFile};
use super::error::StoreError;
use super::format::{BLOCK, Block, Header, Marker};
use super::record::{Kind, Record};
use super::subject::Subject;
use super::{MARKER, NEW_MARKER, file_name};
use std::io;

/// Makes the file of a generation with its base and its first record, gives it its name and enters it in the
/// marker, all of it durable. The header is that of this base.
///
/// # Errors
/// [`StoreError::NoSpace`] where nothing has changed; [`StoreError::Io`] where it is unknown what has.
pub(super) fn make_file<D: Directory, S: Subject>(
    directory: &D,
    header: &Header,
    base: &[u8],
    state: &S,
    kind: Kind,
) -> Result<D::File, StoreError> {
    let name = file_name::<S>(header);
    let file = match prepare(directory, header, base, state, kind) {
        Ok(file) => file,
        Err(source) if is_full(&source) => {
            clear::<D, S>(directory).map_err(StoreError::io("clear the way for", &name))?;
            return Err(StoreError::NoSpace { file: name, source });
        }
        Err(source) => return Err(StoreError::io("make", &name)(source)),
    };
    let enter = || {
        directory.rename(S::NEW_FILE, &name)?;
        directory.sync()?;
        directory.rename(NEW_MARKER, MARKER)?;
        directory.sync()
    };
    enter().map_err(StoreError::io("enter", &name))?;
    Ok(file)
}

/// Writes file and marker under their passing names, durably.
fn prepare<D: Directory, S: Subject>(
    directory: &D,
    header: &Header,
    base: &[u8],
    state: &S,
    kind: Kind,
) -> io::Result<D::File> {
    let first = Record {
        generation: header.generation,
        index: header.first_index,
        boot: header.boot,
        state: state.clone(),
        kind,
    };
    let mut block: Box<Block> = Box::new([0; BLOCK]);
    first.fill(header.layout, &mut block);
    let file = directory.create(S::NEW_FILE)?;
    file.allocate(header.file_length())?;
    file.write_at(&header.to_block()[..], 0)?;
    if !base.is_empty() {
        file.write_at(base, BLOCK as u64)?;
    }
    file.write_at(&block[..], header.slot_offset(0))?;
    file.sync_data()?;
    write_marker(directory, header)?;
    Ok(file)
}

/// Enters the generation of this header in the marker, durably.
pub(super) fn mark<D: Directory>(directory: &D, header: &Header) -> Result<(), StoreError> {
    let enter = || {
        write_marker(directory, header)?;
        directory.rename(NEW_MARKER, MARKER)?;
        directory.sync()
    };
    enter().map_err(StoreError::io("write", MARKER))
}

/// Writes a marker under its passing name, durably.
fn write_marker<D: Directory>(directory: &D, header: &Header) -> io::Result<()> {
    let marker = Marker { identity: header.identity, generation: header.generation };
    let file = directory.create(NEW_MARKER)?;
    file.write_at(&marker.to_bytes(), 0)?;
    file.sync_data()
}

/// Removes what is under the passing names, so that the space is free and a later try finds the way clear.
fn clear<D: Directory, S: Subject>(directory: &D) -> io::Result<()> {
    for passing in [S::NEW_FILE, NEW_MARKER] {
        match directory.remove(passing) {
            Err(why) if why.kind() != io::ErrorKind::NotFound => return Err(why),
            _ => {}
        }
    }
    Ok(())
}

/// Whether space is all that is missing.
fn is_full(why: &io::Error) -> bool {
    matches!(why.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
