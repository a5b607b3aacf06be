//! Ed25519 signatures that are checked together (ZIP-215): one equation for all of them, in which each has a coefficient that
//! nobody could foretell,
//!
//! ```text
//! 8 * (sum(z * k * A) + sum(z * R) - sum(z * s) * B) = 0
//! ```
//!
//! with a signature (R, s) under the key A, and k the hash of R, A and the message. The library that signs has such a check,
//! but takes keys as bytes, and so the square root of each anew: a quarter of all that a check in company costs. A check of
//! one is the same equation without a coefficient, over the same points.

use crate::known_keys;
use curve25519_dalek::constants::ED25519_BASEPOINT_POINT;
use curve25519_dalek::edwards::{CompressedEdwardsY, EdwardsPoint};
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::{IsIdentity, VartimeMultiscalarMul};
use sha2::{Digest as _, Sha512};
use std::collections::BTreeMap;
use troth_types::{Digest, Hasher};

/// Signatures in one equation, at most: what it computes with stays in the processor's nearest memory (11 µs each; 64
/// together take 13), and one bad signature costs no more than so many others their company.
const TOGETHER: usize = 16;

/// A signature to check.
#[derive(Clone, Copy)]
pub(crate) struct Item<'a> {
    pub(crate) key: &'a [u8; 32],
    pub(crate) signature: &'a [u8; 64],
    pub(crate) message: &'a [u8],
}

impl Item<'_> {
    /// Whether the signature is good: 8 * (R - (s * B - k * A)) = 0.
    pub(crate) fn is_good(&self) -> bool {
        let (Some(commitment), Some(response)) = (self.commitment(), self.response()) else { return false };
        let Some(key) = known_keys::point(self.key) else { return false };
        let expected = EdwardsPoint::vartime_double_scalar_mul_basepoint(&self.challenge(), &-key, &response);
        (commitment - expected).mul_by_cofactor().is_identity()
    }

    /// The point R, if the first half of the signature is one.
    fn commitment(&self) -> Option<EdwardsPoint> {
        CompressedEdwardsY(self.halves().0).decompress()
    }

    /// The scalar s, if the other half is below the group's order: there is one for each signature.
    fn response(&self) -> Option<Scalar> {
        Scalar::from_canonical_bytes(self.halves().1).into()
    }

    /// The hash k of all that the signature is about.
    fn challenge(&self) -> Scalar {
        Scalar::from_hash(
            Sha512::new().chain_update(self.halves().0).chain_update(self.key).chain_update(self.message),
        )
    }

    fn halves(&self) -> ([u8; 32], [u8; 32]) {
        let mut halves = ([0; 32], [0; 32]);
        halves.0.copy_from_slice(&self.signature[..32]);
        halves.1.copy_from_slice(&self.signature[32..]);
        halves
    }
}

/// Whether each of the signatures is good, in order: together as far as that is quicker. One bad signature spoils its company;
/// it is found by looking at each.
pub(crate) fn check_all(items: &[Item<'_>]) -> Vec<bool> {
    let companies = items.len().div_ceil(TOGETHER).max(1);
    let mut answers = Vec::with_capacity(items.len());
    for company in items.chunks(items.len().div_ceil(companies).max(1)) {
        // Two take 31 µs together and 36 one after the other.
        if company.len() > 1 && all_hold(company) {
            answers.extend(company.iter().map(|_| true));
        } else {
            answers.extend(company.iter().map(Item::is_good));
        }
    }
    answers
}

/// Whether all of the signatures are good, by one equation.
fn all_hold(items: &[Item<'_>]) -> bool {
    let mut coefficients = Coefficients::of(items);
    let mut keys: BTreeMap<&[u8; 32], Scalar> = BTreeMap::new();
    let mut of_base = Scalar::ZERO;
    let (mut scalars, mut points) =
        (Vec::with_capacity(2 * TOGETHER + 1), Vec::with_capacity(2 * TOGETHER + 1));
    for item in items {
        let (Some(commitment), Some(response)) = (item.commitment(), item.response()) else { return false };
        let coefficient = coefficients.next();
        of_base -= coefficient * response;
        *keys.entry(item.key).or_insert(Scalar::ZERO) += coefficient * item.challenge();
        scalars.push(coefficient);
        points.push(commitment);
    }
    for (key, scalar) in keys {
        let Some(point) = known_keys::point(key) else { return false };
        scalars.push(scalar);
        points.push(point);
    }
    scalars.push(of_base);
    points.push(ED25519_BASEPOINT_POINT);
    EdwardsPoint::vartime_multiscalar_mul(&scalars, &points).mul_by_cofactor().is_identity()
}

/// The coefficients of an equation, of 128 bits each, derived from everything that is checked: whoever chose the signatures
/// could not choose the coefficients, and the check needs no source of randomness.
struct Coefficients {
    seed: Digest,
    count: u64,
}

impl Coefficients {
    fn of(items: &[Item<'_>]) -> Self {
        let mut hasher = Hasher::new("troth/batch-coefficients/v2");
        for item in items {
            hasher.fixed(item.key).bytes(item.message).fixed(item.signature);
        }
        // An item says itself where it ends, so their number needs no place.
        Self { seed: hasher.finish(), count: 0 }
    }

    fn next(&mut self) -> Scalar {
        let mut hasher = Hasher::new("troth/batch-coefficient/v2");
        hasher.digest(&self.seed).number(self.count);
        self.count += 1;
        let mut bytes = [0; 32];
        bytes[..16].copy_from_slice(&hasher.finish().0[..16]);
        Scalar::from_bytes_mod_order(bytes)
    }
}

#[cfg(test)]
mod tests;
