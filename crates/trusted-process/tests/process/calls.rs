//! What a component that has been taken over can still do: system calls from inside.

use crate::child::{DEADLY, Deed, forbidden};
use crate::place::{Place, Trusted};
use crate::support::{attest, step};
use crate::{Ran, Test};
use nix::sys::signal::Signal;
use std::os::unix::process::ExitStatusExt;
use troth_trusted_host::TrustedComponent;

pub const TESTS: &[Test] = &[
    ("calls::a_forbidden_system_call_kills", a_forbidden_system_call_kills),
    ("calls::without_the_filter_they_do_not", without_the_filter_they_do_not),
    ("calls::files_outside_are_out_of_reach", files_outside_are_out_of_reach),
    ("calls::what_a_store_needs_is_allowed", what_a_store_needs_is_allowed),
];

/// Makes a child do a deed from inside, in a thread, as the answer may never come.
fn make_it(place: &Place, deed: Deed) -> std::thread::JoinHandle<()> {
    let patience = troth_trusted_process::Patience {
        reconnect: std::time::Duration::from_millis(1),
        ..crate::place::PATIENCE
    };
    let mut client =
        troth_trusted_process::RemoteComponent::connect(&place.socket(), patience).expect("a process");
    std::thread::spawn(move || drop(client.call(&[attest(step(0, 0, 1), forbidden(deed))])))
}

fn deed(trusted: &Trusted) -> String {
    trusted.wait_for("deed: ").pop().expect("a line")["deed: ".len()..].to_owned()
}

fn a_forbidden_system_call_kills() -> Ran {
    for deadly in DEADLY {
        let place = Place::new();
        let trusted = place.start(&place.task());
        let asking = make_it(&place, deadly);
        let status = trusted.end();
        assert_eq!(status.signal(), Some(Signal::SIGSYS as i32), "{deadly:?}: {status}");
        asking.join().expect("no panic");
    }
    Ran::Through
}

/// The control: it is the filter that kills, not the deed.
fn without_the_filter_they_do_not() -> Ran {
    for deadly in DEADLY {
        let place = Place::new();
        let mut task = place.task();
        task.without = vec!["seccomp".into(), "landlock".into()];
        let trusted = place.start(&task);
        let asking = make_it(&place, deadly);
        deed(&trusted);
        asking.join().expect("no panic");
    }
    Ran::Through
}

fn files_outside_are_out_of_reach() -> Ran {
    let outside = |without: &[&str], what| {
        let place = Place::new();
        let mut task = place.task();
        task.without = without.iter().map(|name| (*name).to_owned()).collect();
        let trusted = place.spawn(&task);
        let landlock = trusted.wait_for("ready").iter().any(|line| line == "landlock: done");
        let asking = make_it(&place, what);
        let said = deed(&trusted);
        asking.join().expect("no panic");
        (said, landlock)
    };
    let (said, landlock) = outside(&[], Deed::Read);
    if !landlock {
        return Ran::Skipped("this kernel has no Landlock, or not all of it");
    }
    assert_eq!(said, "PermissionDenied");
    assert_eq!(outside(&[], Deed::Write).0, "PermissionDenied");
    assert_eq!(outside(&[], Deed::BootId).0, "read 36 characters");
    // The control: it is Landlock that keeps it out.
    assert_eq!(outside(&["landlock"], Deed::Read).0, "read");
    Ran::Through
}

fn what_a_store_needs_is_allowed() -> Ran {
    let place = Place::new();
    let trusted = place.start(&place.task());
    let asking = make_it(&place, Deed::Store);
    assert_eq!(deed(&trusted), "done");
    asking.join().expect("no panic");
    Ran::Through
}
