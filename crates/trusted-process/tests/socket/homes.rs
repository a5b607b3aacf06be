//! The conformance suite through the socket.

use crate::served::Served;
use crate::support::{IDENTITY, Scratch, mac, signature, verifier};
use troth_trusted::{Certifier, Epoch, Identity};
use troth_trusted_host::TrustedComponent;
use troth_trusted_host::conformance::{Home, RULES, Rule, conformance};

struct SocketHome {
    certifier: Certifier,
    epoch: Epoch,
    place: Scratch,
    served: Option<Served>,
}

impl SocketHome {
    fn start(&mut self) -> Box<dyn TrustedComponent> {
        self.served = None;
        let identity = Identity { epoch: self.epoch, ..IDENTITY };
        let served = Served::durable(&self.place, identity, self.certifier.clone());
        Box::new(self.served.insert(served).connect())
    }
}

impl Home for SocketHome {
    fn identity(&self) -> Identity {
        IDENTITY
    }

    fn fresh(&mut self, epoch: Epoch) -> Box<dyn TrustedComponent> {
        self.served = None;
        self.place = Scratch::new();
        self.epoch = epoch;
        self.start()
    }

    fn restart(&mut self) -> Option<Box<dyn TrustedComponent>> {
        Some(self.start())
    }

    fn break_store(&mut self) -> bool {
        std::fs::write(self.place.path("broken"), []).expect("a file");
        true
    }
}

#[test]
fn a_component_behind_a_socket_holds_every_rule() {
    for certifier in [mac(), signature()] {
        let verifier = verifier(&certifier);
        let mut home = SocketHome { certifier, epoch: IDENTITY.epoch, place: Scratch::new(), served: None };
        let report = conformance(&mut home, &verifier).expect("no rule is broken");
        // The store of these tests keeps no blobs; the one that ships is in `blobs.rs` and `process`.
        assert_eq!(report.not_applicable, [Rule::BlobBesideMove]);
        assert_eq!(report.held.len(), RULES.len() - 1);
    }
}
