//! Keys whose points are known. What a key's 32 bytes stand for is a square root away, a fifth of what it takes to check a
//! signature; the same few keys check nearly everything that a process sees.

use curve25519_dalek::edwards::{CompressedEdwardsY, EdwardsPoint};
use std::cell::RefCell;

/// Places for keys that a thread keeps, of 192 bytes each: of a thousand clients one in seventeen shares its place, and where
/// as many come as there are places these are three megabytes.
const KEPT: usize = 1 << 14;

/// Keys, each in the one place that its bytes name: whoever comes later takes the place over. So what is kept is bounded
/// whatever keys come, and a key whose place another one took costs no more than it would without, but for the place.
struct Known(Box<[Option<Box<Place>>]>);

/// A key: its bytes, and the point that they stand for.
struct Place {
    bytes: [u8; 32],
    point: EdwardsPoint,
}

thread_local! {
    static KNOWN: RefCell<Known> = RefCell::new(Known::none());
}

impl Known {
    fn none() -> Self {
        Self((0..KEPT).map(|_| None).collect())
    }

    fn point(&mut self, bytes: &[u8; 32]) -> Option<EdwardsPoint> {
        let place = &mut self.0[usize::from(u16::from_le_bytes([bytes[0], bytes[1]])) % KEPT];
        match place {
            Some(known) if known.bytes == *bytes => Some(known.point),
            _ => {
                let point = CompressedEdwardsY(*bytes).decompress()?;
                *place = Some(Box::new(Place { bytes: *bytes, point }));
                Some(point)
            }
        }
    }
}

/// The point that the bytes of a key stand for, or `None` where they stand for none.
pub(crate) fn point(bytes: &[u8; 32]) -> Option<EdwardsPoint> {
    KNOWN.with_borrow_mut(|known| known.point(bytes))
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
            let all = [check(&first, &first), check(&second, &second)];
            assert_eq!(Ed25519.verify_all(&all), [true, true]);
            let all = [check(&first, &second), check(&second, &second)];
            assert_eq!(Ed25519.verify_all(&all), [false, true]);
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
            .find(|bytes| CompressedEdwardsY(*bytes).decompress().is_none())
            .unwrap();
        let mut known = Known::none();
        let good = (0..).map(signer).find(|signer| place(signer) == 0).unwrap().public_key().0;
        assert!(known.point(&good).is_some());
        assert!(known.point(&no_point).is_none());
        assert_eq!(known.point(&good).map(|point| point.compress().0), Some(good));
    }
}
