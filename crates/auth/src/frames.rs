//! Checks client frames: the request authentication of MinBFT §4 ("Requests with an invalid
//! signature are simply discarded"), in batches.

use crate::{Check, Directory, PairKeys, SignatureScheme, Verified};
use core::fmt;
use std::sync::Arc;
use troth_trusted_host::Statement;
use troth_types::{Frame, FrameProof, Limits, ReplicaId};

/// Why a frame was not accepted. The same at every replica, but for an authenticator: each other rule is a function of
/// the frame and the group's configuration alone.
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
    /// It has no signature, and this group's frames are signed.
    NotSigned,
    /// Its tag for this replica is wrong. Others may find theirs right.
    BadTag,
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OtherGroup => "the frame is meant for another group",
            Self::UnknownClient => "the client is not in the group's configuration",
            Self::TooLarge => "the frame is over the group's limits",
            Self::BadSignature => "the signature is not the client's",
            Self::NotSigned => "the frame is not signed",
            Self::BadTag => "the frame's tag for this replica is wrong",
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
    pairs: Option<(ReplicaId, Arc<dyn PairKeys>)>,
}

/// What is left to be looked at of a frame.
enum Prepared {
    /// Its signature.
    Signature(Check),
    /// Nothing: its tag is right.
    Authentic,
}

impl FrameVerifier {
    /// A verifier with the group's keys and limits.
    #[must_use]
    pub fn new(directory: Arc<Directory>, scheme: Arc<dyn SignatureScheme>, limits: Limits) -> Self {
        Self { directory, scheme, limits, pairs: None }
    }

    /// The same for a replica that takes authenticators beside signatures (`auth = "mac"`).
    #[must_use]
    pub fn with_pairs(&self, me: ReplicaId, pairs: Arc<dyn PairKeys>) -> Self {
        Self { pairs: Some((me, pairs)), ..self.clone() }
    }

    /// The same with the keys of another configuration.
    #[must_use]
    pub fn with_directory(&self, directory: Arc<Directory>) -> Self {
        Self { directory, ..self.clone() }
    }

    fn prepare(&self, frame: &Frame) -> Result<Prepared, FrameError> {
        if frame.group() != self.directory.group {
            return Err(FrameError::OtherGroup);
        }
        if frame.operations().len() > self.limits.frame_operations || frame.size() > self.limits.frame_bytes {
            return Err(FrameError::TooLarge);
        }
        let client = frame.client();
        let key = self.directory.client(client).ok_or(FrameError::UnknownClient)?;
        let digest = *frame.signing_digest();
        match frame.proof() {
            FrameProof::Signature(signature) => {
                Ok(Prepared::Signature(Check { key, digest, signature: *signature }))
            }
            FrameProof::Authenticator(_) => {
                let (me, pairs) = self.pairs.as_ref().ok_or(FrameError::NotSigned)?;
                let link = self.directory.client_link(client).ok_or(FrameError::UnknownClient)?;
                let tag = frame.tag_for(*me).ok_or(FrameError::BadTag)?;
                let key = pairs.with(client, &link).ok_or(FrameError::BadTag)?;
                if key.verify(&digest, tag) { Ok(Prepared::Authentic) } else { Err(FrameError::BadTag) }
            }
        }
    }

    /// Checks one frame.
    pub fn verify(&self, frame: Arc<Frame>) -> Result<Verified<Arc<Frame>>, FrameError> {
        match self.prepare(&frame)? {
            Prepared::Signature(check) if !self.scheme.verify(&check) => Err(FrameError::BadSignature),
            _ => Ok(Verified::new(frame)),
        }
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
        let signed = |prepared: &Result<Prepared, FrameError>| match prepared {
            Ok(Prepared::Signature(check)) => Some(*check),
            _ => None,
        };
        let checks: Vec<Check> = prepared.iter().filter_map(signed).collect();
        let (good, statements) = self.scheme.verify_beside(&checks, statements);
        let mut good = good.into_iter();
        let frames = frames
            .into_iter()
            .zip(prepared)
            .map(|(frame, check)| match check? {
                Prepared::Signature(_) if good.next() != Some(true) => Err(FrameError::BadSignature),
                _ => Ok(Verified::new(frame)),
            })
            .collect();
        (frames, statements)
    }
}
