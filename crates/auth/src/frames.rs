//! Checks client frames: the request authentication of MinBFT §4 ("Requests with an invalid
//! signature are simply discarded"), in batches.

use crate::{Check, Directory, SignatureScheme, Verified};
use core::fmt;
use std::sync::Arc;
use troth_trusted_host::Statement;
use troth_types::{Frame, Limits};

/// Why a frame was not accepted. The same at every replica: each rule is a function of the frame
/// and the group's configuration alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameError {
    /// Meant for another group.
    OtherGroup,
    /// The client is not in the configuration.
    UnknownClient,
    /// Over the group's limits.
    TooLarge,
    /// The signature is not the client's.
    BadSignature,
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OtherGroup => "the frame is meant for another group",
            Self::UnknownClient => "the client is not in the group's configuration",
            Self::TooLarge => "the frame is over the group's limits",
            Self::BadSignature => "the signature is not the client's",
        })
    }
}

impl std::error::Error for FrameError {}

/// Checks frames for one group.
#[derive(Clone, Debug)]
pub struct FrameVerifier {
    directory: Arc<Directory>,
    scheme: Arc<dyn SignatureScheme>,
    limits: Limits,
}

impl FrameVerifier {
    /// A verifier with the group's keys and limits.
    #[must_use]
    pub fn new(directory: Arc<Directory>, scheme: Arc<dyn SignatureScheme>, limits: Limits) -> Self {
        Self { directory, scheme, limits }
    }

    /// The same with the keys of another configuration.
    #[must_use]
    pub fn with_directory(&self, directory: Arc<Directory>) -> Self {
        Self { directory, ..self.clone() }
    }

    fn prepare(&self, frame: &Frame) -> Result<Check, FrameError> {
        if frame.group() != self.directory.group {
            return Err(FrameError::OtherGroup);
        }
        if frame.operations().len() > self.limits.frame_operations || frame.size() > self.limits.frame_bytes {
            return Err(FrameError::TooLarge);
        }
        let key = self.directory.client(frame.client()).ok_or(FrameError::UnknownClient)?;
        Ok(Check { key, digest: *frame.signing_digest(), signature: *frame.signature() })
    }

    /// Checks one frame.
    pub fn verify(&self, frame: Arc<Frame>) -> Result<Verified<Arc<Frame>>, FrameError> {
        let check = self.prepare(&frame)?;
        if self.scheme.verify(&check) { Ok(Verified::new(frame)) } else { Err(FrameError::BadSignature) }
    }

    /// Checks many frames with one batch of signatures; answers stand in the frames' order.
    pub fn verify_all(&self, frames: Vec<Arc<Frame>>) -> Vec<Result<Verified<Arc<Frame>>, FrameError>> {
        self.verify_beside(frames, &[]).0
    }

    /// The same with signatures of trusted components in the batch; tells of each of these whether it is good, too.
    #[allow(clippy::type_complexity)]
    pub fn verify_beside(
        &self,
        frames: Vec<Arc<Frame>>,
        statements: &[Statement],
    ) -> (Vec<Result<Verified<Arc<Frame>>, FrameError>>, Vec<bool>) {
        let prepared: Vec<_> = frames.iter().map(|frame| self.prepare(frame)).collect();
        let checks: Vec<Check> = prepared.iter().filter_map(|check| check.as_ref().ok()).copied().collect();
        let (good, statements) = self.scheme.verify_beside(&checks, statements);
        let mut good = good.into_iter();
        let frames = frames
            .into_iter()
            .zip(prepared)
            .map(|(frame, check)| {
                check?;
                match good.next() {
                    Some(true) => Ok(Verified::new(frame)),
                    _ => Err(FrameError::BadSignature),
                }
            })
            .collect();
        (frames, statements)
    }
}
