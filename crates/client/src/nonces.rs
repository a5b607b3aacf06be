//! Nonces of reads, where what answers them is attested (paper 000 §4.2, footnote 4): each is used once, and nobody else can
//! foresee it, so that whatever is attested under it was attested after the read began.

use crate::Config;
use troth_auth::Signer;
use troth_types::{Digest, Hasher};

/// Marks the place that implements a rule of `docs/protocols/a2m-pbft-e.md` or `a2m-pbft-ea.md`, for `cargo xtask paper`.
macro_rules! rule {
    ($label:literal) => {};
}

/// What the nonces of a session are made of. It is made of a signature that is never sent, over what no other session has:
/// whoever cannot sign for the client cannot make it, and no session makes it again.
#[derive(Clone)]
pub(crate) struct Nonces(Digest);

impl std::fmt::Debug for Nonces {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Nonces")
    }
}

impl Nonces {
    /// Those of the session that this value names.
    pub(crate) fn new(config: &Config, name: &[u8; 32], signer: &dyn Signer) -> Self {
        rule!("A2MPBFTE-E6");
        rule!("A2MPBFTEA-E6");
        let mut session = Hasher::new("troth/read-session/v1");
        session.fixed(&config.group.id().0).number(config.client.0).number(config.first_number).fixed(name);
        let mut secret = Hasher::new("troth/read-secret/v1");
        secret.fixed(&signer.sign(&session.finish()).0);
        Self(secret.finish())
    }

    /// The nonce of the read of this number.
    pub(crate) fn of(&self, number: u64) -> Digest {
        let mut nonce = Hasher::new("troth/read-nonce/v1");
        nonce.digest(&self.0).number(number);
        nonce.finish()
    }
}
