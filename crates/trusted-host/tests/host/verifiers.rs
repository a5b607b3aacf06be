//! The group's verifier knows what it was configured with, and nothing else.

use crate::support::{IDENTITY, VolatileHome, mac, verifier};
use troth_trusted::{CounterId, CounterValue, Epoch, Identity, MacKey};
use troth_trusted_host::conformance::Home;
use troth_trusted_host::{Answer, Call, CertificateVerifier, GroupVerifier, TwiceConfigured};

const DIGEST: [u8; 32] = [4; 32];

#[test]
fn a_batch_gets_the_verdicts_of_single_calls() {
    let mut component = VolatileHome(mac()).fresh(IDENTITY.epoch);
    let calls = [0, 1, 2].map(|value| Call::Attest {
        counter: CounterId(0),
        previous: CounterValue(value),
        new: CounterValue(value + 1),
        digest: DIGEST,
    });
    let answers = component.call(&calls);
    let certificates: Vec<_> = answers.iter().filter_map(Answer::attested).collect();
    assert_eq!(certificates.len(), 3);
    let verifier = verifier(&mac());
    let items = [
        (1, certificates[0], &DIGEST),
        (2, certificates[1], &DIGEST),
        (1, certificates[1], &[9; 32]),
        (99, certificates[1], &DIGEST),
        (1, certificates[2], &DIGEST),
    ];
    assert_eq!(verifier.verify_batch(&items), [true, false, false, false, true]);
    assert_eq!(verifier.verify_batch(&[]), []);
    assert_eq!(Answer::Value(CounterValue(1)).attested(), None);
}

#[test]
fn an_epoch_of_a_replica_is_configured_once() {
    let key = MacKey::new(&[5; 32]);
    let twice = [(IDENTITY, key.verifier().into()), (IDENTITY, key.verifier().into())];
    assert_eq!(GroupVerifier::new(twice).map(|_| ()), Err(TwiceConfigured(1)));
    let later = Identity { epoch: Epoch(IDENTITY.epoch.0 + 1), ..IDENTITY };
    let both = [(IDENTITY, key.verifier().into()), (later, key.verifier().into())];
    let both = GroupVerifier::new(both).expect("two epochs");
    assert_eq!(both.identity(1), Some(later));
    let known = verifier(&mac());
    assert_eq!(known.identity(1), Some(IDENTITY));
    assert_eq!(known.identity(3), None);
}
