//! That a check in company says what the library's check of one says, of whatever signature.

use super::*;
use curve25519_dalek::constants::EIGHT_TORSION;
use ed25519_zebra::{SigningKey, VerificationKey, VerificationKeyBytes};

/// A signature that owns what it is about.
#[derive(Clone, Debug)]
struct Signed {
    key: [u8; 32],
    signature: [u8; 64],
    message: Vec<u8>,
}

impl Signed {
    fn item(&self) -> Item<'_> {
        Item { key: &self.key, signature: &self.signature, message: &self.message }
    }

    /// What the library says, by itself and with a key that it makes anew.
    fn is_good(&self) -> bool {
        VerificationKey::try_from(self.key).is_ok_and(|key| {
            key.verify(&ed25519_zebra::Signature::from(self.signature), &self.message).is_ok()
        })
    }
}

fn signed(seed: u8, message: &[u8]) -> Signed {
    let key = SigningKey::from([seed; 32]);
    let signature = key.sign(message).into();
    Signed { key: VerificationKeyBytes::from(&key).into(), signature, message: message.to_vec() }
}

/// The answers to all of them together.
fn answers(all: &[Signed]) -> Vec<bool> {
    check_all(&all.iter().map(Signed::item).collect::<Vec<_>>())
}

/// Asserts that one among good ones is judged as by itself.
fn agrees_with_one_alone(odd: &Signed) {
    for place in 0..3 {
        let mut all = vec![signed(1, b"one"), signed(2, b"another")];
        all.insert(place, odd.clone());
        let items: Vec<Item<'_>> = all.iter().map(Signed::item).collect();
        assert_eq!(odd.item().is_good(), odd.is_good(), "{odd:?} by itself");
        assert_eq!(all_hold(&items), odd.is_good(), "{odd:?} at {place}");
        let expected: Vec<bool> = (0..3).map(|at| at != place || odd.is_good()).collect();
        assert_eq!(check_all(&items), expected, "{odd:?} at {place}");
    }
}

/// All encodings that stand for a point of small order, those among them that no encoder makes: with a y of the field's
/// prime or more, or with the sign of an x that is zero.
fn encodings_of_small_order() -> Vec<[u8; 32]> {
    let mut encodings: Vec<[u8; 32]> = EIGHT_TORSION.iter().map(|point| point.compress().0).collect();
    for encoding in encodings.clone() {
        let mut other_sign = encoding;
        other_sign[31] ^= 0x80;
        encodings.push(other_sign);
        // The prime is 2^255 - 19: y + p has room below 2^255 for y < 19.
        if encoding[1..31].iter().all(|byte| *byte == 0) && encoding[31] & 0x7f == 0 && encoding[0] < 19 {
            let mut larger = [0xff; 32];
            larger[0] = 0xed + encoding[0];
            larger[31] = 0x7f;
            encodings.push(larger);
            larger[31] = 0xff;
            encodings.push(larger);
        }
    }
    encodings.sort_unstable();
    encodings.dedup();
    encodings.retain(|encoding| CompressedEdwardsY(*encoding).decompress().is_some());
    encodings
}

#[test]
fn keys_and_commitments_of_small_order_are_judged_as_alone() {
    let encodings = encodings_of_small_order();
    assert_eq!(encodings.len(), 14, "ZIP-215 knows of so many");
    for key in &encodings {
        for commitment in &encodings {
            let mut signature = [0; 64];
            signature[..32].copy_from_slice(commitment);
            let odd = Signed { key: *key, signature, message: b"Zcash".to_vec() };
            assert!(odd.is_good(), "with s = 0 the cofactor makes it hold");
            agrees_with_one_alone(&odd);
            // And with another s it does not.
            signature[32] = 1;
            let odd = Signed { signature, ..odd };
            assert!(!odd.is_good());
            agrees_with_one_alone(&odd);
        }
    }
}

#[test]
fn a_commitment_with_a_part_of_small_order_is_judged_as_alone() {
    let good = signed(3, b"message");
    let commitment = good.item().commitment().unwrap();
    for torsion in &EIGHT_TORSION[1..] {
        let mut odd = good.clone();
        odd.signature[..32].copy_from_slice(&(commitment + torsion).compress().0);
        agrees_with_one_alone(&odd);
    }
}

#[test]
fn whatever_bit_is_wrong_the_signature_is_judged_as_alone() {
    let good = signed(3, b"message");
    assert!(good.is_good());
    agrees_with_one_alone(&good);
    for bit in 0..64 * 8 {
        let mut odd = good.clone();
        odd.signature[bit / 8] ^= 1 << (bit % 8);
        assert!(!odd.is_good());
        agrees_with_one_alone(&odd);
    }
    for bit in 0..32 * 8 {
        let mut odd = good.clone();
        odd.key[bit / 8] ^= 1 << (bit % 8);
        agrees_with_one_alone(&odd);
    }
    let odd = Signed { message: b"another".to_vec(), ..good };
    agrees_with_one_alone(&odd);
}

#[test]
fn a_response_that_is_not_reduced_is_refused() {
    // s + l for a good s: the same scalar, in other bytes.
    let order = [
        0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
    ];
    let mut odd = signed(3, b"message");
    let mut carry = 0;
    for (byte, add) in odd.signature[32..].iter_mut().zip(order) {
        let sum = u16::from(*byte) + add + carry;
        (*byte, carry) = ((sum & 0xff) as u8, sum >> 8);
    }
    assert_eq!(carry, 0);
    assert!(odd.item().response().is_none() && !odd.is_good());
    agrees_with_one_alone(&odd);
}

#[test]
fn two_that_are_wrong_by_the_opposite_are_both_found() {
    // Were the coefficients the same, what is wrong with one would make up for what is wrong with the other: under two keys and
    // under one, whose terms are added.
    for other in [4, 3] {
        let (mut first, mut second) = (signed(3, b"message"), signed(other, b"another"));
        let less = first.item().response().unwrap() - Scalar::ONE;
        let more = second.item().response().unwrap() + Scalar::ONE;
        first.signature[32..].copy_from_slice(less.as_bytes());
        second.signature[32..].copy_from_slice(more.as_bytes());
        assert_eq!(answers(&[first, second, signed(3, b"good")]), [false, false, true], "under {other}");
    }
}

/// What coefficients these have.
fn coefficients(all: &[Signed]) -> Vec<Scalar> {
    let items: Vec<Item<'_>> = all.iter().map(Signed::item).collect();
    let mut coefficients = Coefficients::of(&items);
    all.iter().map(|_| coefficients.next()).collect()
}

#[test]
fn coefficients_are_large_and_depend_on_all_of_each_signature() {
    let all = [signed(1, b"one"), signed(2, b"another")];
    let before = coefficients(&all);
    for coefficient in &before {
        let bytes = coefficient.to_bytes();
        assert!(bytes[8..16].iter().any(|byte| *byte != 0), "128 bits of it come of a hash");
        assert!(bytes[16..].iter().all(|byte| *byte == 0), "and no more, which would cost as much again");
    }
    let changed = |change: &dyn Fn(&mut [Signed])| {
        let mut other = all.clone();
        change(&mut other);
        let after = coefficients(&other);
        assert!(before.iter().zip(&after).all(|(before, after)| before != after));
    };
    for at in [0, 31] {
        changed(&|all| all[1].key[at] ^= 1);
    }
    for at in [0, 31, 32, 63] {
        changed(&|all| all[1].signature[at] ^= 1);
    }
    changed(&|all| all[1].message[6] ^= 1);
    changed(&|all| all[1].message.push(0));
    changed(&|all| all[0].message.clear());
    changed(&|all| all.swap(0, 1));
}

#[test]
fn signatures_that_make_up_for_each_other_by_coefficients_from_before_are_found() {
    // Of a forger who knows the coefficients of a draft, and chooses the second signature by them: an own key a2 * B beside the
    // victim's A, and R2 such that what is wrong with the first goes.
    let (victim, own) = (signed(1, b"victim's"), Scalar::from(77_u8));
    let own_point = own * ED25519_BASEPOINT_POINT;
    let (nonce, other_nonce) = (Scalar::from(5_u8), Scalar::from(6_u8));
    let mut forged = Signed { message: b"what it never signed".to_vec(), ..victim };
    forged.signature = [0; 64];
    forged.signature[..32].copy_from_slice(&(nonce * ED25519_BASEPOINT_POINT).compress().0);
    let mut helping = Signed { key: own_point.compress().0, signature: [0; 64], message: b"helps".to_vec() };
    let drafted = coefficients(&[forged.clone(), helping.clone()]);
    let ratio = drafted[0] * drafted[1].invert();
    let victims_point = CompressedEdwardsY(forged.key).decompress().unwrap();
    let commitment =
        other_nonce * ED25519_BASEPOINT_POINT - (ratio * forged.item().challenge()) * victims_point;
    helping.signature[..32].copy_from_slice(&commitment.compress().0);
    let response = ratio * nonce + other_nonce + helping.item().challenge() * own;
    helping.signature[32..].copy_from_slice(response.as_bytes());
    // With the coefficients of the draft it would hold.
    let made_up = drafted[0] * (nonce * ED25519_BASEPOINT_POINT + forged.item().challenge() * victims_point)
        + drafted[1] * (commitment + helping.item().challenge() * own_point)
        - (drafted[1] * response) * ED25519_BASEPOINT_POINT;
    assert!(made_up.mul_by_cofactor().is_identity());
    assert_eq!(answers(&[forged, helping]), [false, false]);
}

#[test]
fn each_of_many_has_its_own_answer_whatever_their_number() {
    for count in 0..3 * TOGETHER + 2 {
        // Three of a company of sixteen, and more, share a key.
        let mut all: Vec<Signed> = (0..count).map(|at| signed((at % 5) as u8, &[at as u8])).collect();
        assert_eq!(answers(&all), vec![true; count]);
        for company in all.chunks(TOGETHER) {
            assert!(all_hold(&company.iter().map(Signed::item).collect::<Vec<_>>()), "by one equation");
        }
        for bad in [0, count / 2, count.saturating_sub(1)].into_iter().filter(|bad| *bad < count) {
            all[bad].message.push(0);
        }
        let expected: Vec<bool> = all.iter().map(Signed::is_good).collect();
        assert_eq!(answers(&all), expected, "{count} of them");
    }
}
