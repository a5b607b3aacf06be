//! The homes of this crate pass the suite.

use crate::support::{MemoryHome, VolatileHome, mac, signature, verifier};
use troth_trusted_host::conformance::{RULES, Rule, conformance};

#[test]
fn a_durable_home_holds_every_rule() {
    for certifier in [mac(), signature()] {
        let report = conformance(&mut MemoryHome::new(certifier.clone()), &verifier(&certifier));
        let report = report.expect("no rule is broken");
        assert_eq!(report.held, RULES);
        assert_eq!(report.not_applicable, []);
    }
}

#[test]
fn a_volatile_home_holds_every_rule_but_those_on_its_store() {
    for certifier in [mac(), signature()] {
        let report = conformance(&mut VolatileHome(certifier.clone()), &verifier(&certifier));
        let report = report.expect("no rule is broken");
        assert_eq!(
            report.not_applicable,
            [
                Rule::ResumeAfterRestart,
                Rule::ResumeAfterEveryRestart,
                Rule::BlobBesideMove,
                Rule::HaltedAfterFailingStore
            ]
        );
        assert_eq!(report.held.len() + report.not_applicable.len(), RULES.len());
    }
}
