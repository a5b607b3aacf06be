//! Keys whose points are known. What a key's 32 bytes stand for is a square root away, a fifth of what it takes to check a
//! signature; the same few keys check nearly everything that a process sees.

use ed25519_zebra::VerificationKey;
use std::cell::RefCell;

/// Keys that a thread keeps, of 192 bytes each: half the clients of a large group, a quarter of a megabyte.
const KEPT: usize = 1024;

/// Keys, each in the one place that its bytes name: whoever comes later takes the place over. So what is kept is bounded
/// whatever keys come, and costs a key whose place another one took no more than it would without.
struct Known(Box<[Option<Place>]>);

/// A key's bytes, and the key.
type Place = ([u8; 32], VerificationKey);

thread_local! {
    static KNOWN: RefCell<Known> = RefCell::new(Known(vec![None; KEPT].into()));
}

impl Known {
    fn key(&mut self, bytes: &[u8; 32]) -> Option<VerificationKey> {
        let place = &mut self.0[usize::from(u16::from_le_bytes([bytes[0], bytes[1]])) % KEPT];
        match place {
            Some((known, key)) if known == bytes => Some(*key),
            _ => {
                let key = VerificationKey::try_from(*bytes).ok()?;
                *place = Some((*bytes, key));
                Some(key)
            }
        }
    }
}

/// The key of these bytes, or `None` where they are no point of the curve.
pub(crate) fn key(bytes: &[u8; 32]) -> Option<VerificationKey> {
    KNOWN.with_borrow_mut(|known| known.key(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Check, Ed25519, Ed25519Signer, SignatureScheme, Signer};
    use troth_types::Digest;

    fn signer(number: u16) -> Ed25519Signer {
        let mut seed = [7; 32];
        seed[..2].copy_from_slice(&number.to_le_bytes());
        Ed25519Signer::from_seed(seed)
    }

    fn place(signer: &Ed25519Signer) -> usize {
        let bytes = signer.public_key().0;
        usize::from(u16::from_le_bytes([bytes[0], bytes[1]])) % KEPT
    }

    #[test]
    fn keys_that_share_a_place_check_what_is_theirs_and_nothing_else() {
        let first = signer(0);
        let second = (1..).map(signer).find(|signer| place(signer) == place(&first)).unwrap();
        let digest = Digest([3; 32]);
        let check = |key: &Ed25519Signer, by: &Ed25519Signer| Check {
            key: key.public_key(),
            digest,
            signature: by.sign(&digest),
        };
        for _ in 0..2 {
            assert!(Ed25519.verify(&check(&first, &first)));
            assert!(!Ed25519.verify(&check(&second, &first)));
            assert!(Ed25519.verify(&check(&second, &second)));
            assert!(!Ed25519.verify(&check(&first, &second)));
        }
    }

    #[test]
    fn what_is_no_point_is_no_key_whatever_stands_in_its_place() {
        let no_point = (0..=u8::MAX)
            .map(|last| {
                let mut bytes = [0; 32];
                bytes[31] = last & 0x7f;
                bytes[2] = last;
                bytes
            })
            .find(|bytes| VerificationKey::try_from(*bytes).is_err())
            .unwrap();
        let mut known = Known(vec![None; KEPT].into());
        let good = (0..).map(signer).find(|signer| place(signer) == 0).unwrap().public_key().0;
        assert!(known.key(&good).is_some());
        assert!(known.key(&no_point).is_none());
        assert_eq!(known.key(&good).map(<[u8; 32]>::from), Some(good));
    }
}
