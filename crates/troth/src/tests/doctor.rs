//! What the doctor makes of what it sees.

use crate::doctor::State::{Fail, Ok as Good, Warn};
use crate::doctor::clocks::{Beside, judge, judge_own};
use crate::doctor::cluster::{Seen, judge as judge_peers};
use crate::doctor::disk::{kind, room, speed};
use crate::doctor::isolation::{in_process, judge as isolation};
use crate::doctor::{Finding, State, kernel};
use crate::tests::cluster;
use std::path::Path;
use std::time::Duration;
use troth_node::Snapshot;
use troth_node::config::{Cluster, Durability, Protocol, TrustedHome};

use troth_types::ReplicaId;

const PLACE: &str = "/srv/troth";

/// Every finding that is not ok says what to do, in one line.
fn state(finding: &Finding) -> State {
    assert_eq!(finding.state == Good, finding.mend.is_empty(), "{finding:?}");
    assert!(!finding.to_string().contains('\n'), "{finding}");
    finding.state
}

#[test]
fn kernels_are_known_by_their_numbers() {
    assert_eq!(kernel::version("6.12.3-arch1-1"), Some((6, 12)));
    assert_eq!(kernel::version("5.4"), Some((5, 4)));
    assert_eq!(kernel::version("what"), None);
    assert_eq!(state(&kernel::kernel("6.18.44-fc")), Good);
    assert_eq!(state(&kernel::kernel("5.12.19")), Warn);
    assert_eq!(state(&kernel::kernel("")), Warn);
}

#[test]
fn what_walls_are_made_of_matters_where_there_is_something_to_wall_in() {
    let homes = [(TrustedHome::InProcess, Good), (TrustedHome::Process, Warn)];
    for (home, without) in homes {
        assert_eq!(state(&kernel::seccomp("kill_process kill_thread trap", home)), Good);
        assert_eq!(state(&kernel::seccomp("", home)), without);
        assert_eq!(state(&kernel::landlock(Some(6), home)), Good);
        assert_eq!(state(&kernel::landlock(Some(3), home)), without);
        assert_eq!(state(&kernel::landlock(None, home)), without);
        assert_eq!(state(&kernel::ptrace(Some("1"), home)), Good);
        assert_eq!(state(&kernel::ptrace(Some("0"), home)), without);
        assert_eq!(state(&kernel::ptrace(None, home)), without);
        assert_eq!(state(&kernel::memlock(Some(u64::MAX), home)), Good);
        assert_eq!(state(&kernel::memlock(Some(8 << 20), home)), without);
    }
    let limits = "Limit                     Soft Limit           Hard Limit           Units\n\
                  Max open files            1024                 4096                 files\n\
                  Max locked memory         unlimited            unlimited            bytes\n";
    assert_eq!(kernel::limit(limits, "Max open files"), Some(1024));
    assert_eq!(kernel::limit(limits, "Max locked memory"), Some(u64::MAX));
    assert_eq!(kernel::limit(limits, "Max nothing"), None);
    assert_eq!(state(&kernel::files(Some(1024))), Good);
    assert_eq!(state(&kernel::files(Some(256))), Warn);
}

#[test]
fn file_systems_that_keep_nothing_are_said_to() {
    let place = Path::new(PLACE);
    for (number, expected) in [
        (0xef53, Good),
        (0x5846_5342, Good),
        (0x0102_1994, Fail),
        (0x8584_58f6, Fail),
        (0x794c_7630, Warn),
        (0x6969, Warn),
        (0x1234, Warn),
    ] {
        assert_eq!(state(&kind(place, number)), expected, "{number:#x}");
    }
    for (mebibytes, expected) in [(10, Fail), (500, Warn), (5_000, Good)] {
        assert_eq!(state(&room(place, mebibytes << 20)), expected, "{mebibytes}");
    }
}

#[test]
fn a_disk_may_be_too_slow_and_too_fast() {
    let place = Path::new(PLACE);
    for (micros, expected) in [(1, Warn), (200, Good), (5_000, Good), (30_000, Warn)] {
        let mut times = vec![Duration::from_micros(micros); 9];
        times.push(Duration::from_millis(100));
        let finding = speed(place, &times);
        assert_eq!(state(&finding), expected, "{micros}");
        assert!(finding.said.contains("100.00 ms at the slowest"), "{}", finding.said);
    }
    assert_eq!(state(&speed(place, &[])), Warn);
}

#[test]
fn clocks_are_judged_by_what_replicas_bear() {
    let cluster = cluster("clocks", Protocol::MinBft);
    let bound = i64::try_from(cluster.timing.clock_bound_ms).expect("small") * 1000;
    let worst = |ahead: i64, give_or_take: u64| {
        let findings = judge(
            &cluster,
            &[(0, Beside { ahead: 10, give_or_take: 5 }), (1, Beside { ahead, give_or_take })],
        );
        findings.iter().map(state).max().expect("there is a finding")
    };
    assert_eq!(worst(1_000, 500), Good);
    assert_eq!(worst(-bound / 2, 500), Warn);
    assert_eq!(worst(bound / 2, 500), Warn);
    assert_eq!(worst(bound + 1_000, 500), Fail);
    assert_eq!(worst(-600_000_000, 500), Fail, "ten minutes behind");
    assert_eq!(worst(bound + 1_000, 2_000_000), Good, "nothing is certain over a network that slow");
    assert!(judge(&cluster, &[]).is_empty());
    assert_eq!([Some(true), Some(false), None].map(|said| state(&judge_own(said))), [Good, Warn, Warn]);
}

#[test]
fn no_isolation_is_called_what_it_is() {
    let both = [ReplicaId(0), ReplicaId(2)];
    let places = [0, 2].map(|id| format!("/srv/troth/trusted-{id}").into());
    let isolation = |replica, trusted| isolation(&both, replica, trusted, &places);
    for none in [in_process(), isolation(Some(1000), Some(1000)), isolation(Some(0), Some(1000))] {
        assert_eq!(state(&none), Warn);
        assert!(none.said.contains("no isolation"), "{}", none.said);
    }
    assert_eq!(state(&isolation(Some(1000), Some(1001))), Good);
    assert_eq!(state(&isolation(None, Some(1001))), Warn);
    for replica in [0, 1000] {
        let of_root = isolation(Some(replica), Some(0));
        assert_eq!(state(&of_root), Fail, "such a component does not start");
        assert!(of_root.said.starts_with("replicas 0 and 2: "), "{}", of_root.said);
        let mend = "`chown -R troth-trusted: /srv/troth/trusted-0 /srv/troth/trusted-2`";
        assert!(of_root.mend.contains(mend), "{}", of_root.mend);
    }
}

fn seen(port: bool, says: Snapshot) -> Seen {
    let port = if port { Ok(()) } else { Err("refused".to_owned()) };
    Seen { ran: Some(true), says: port.is_ok().then_some(Ok(says)), port, clock: None }
}

#[test]
fn too_few_replicas_are_a_failure_and_none_at_all_is_one_once_they_ran() {
    let cluster = cluster("peers", Protocol::MinBft);
    let group = troth_node::config::hex::encode(&cluster.group.id().0);
    let good = || Snapshot { group: group.clone(), active: true, peers: vec![1, 2], ..Snapshot::default() };
    let worst = |seen: Vec<Seen>| judge_peers(&cluster, &seen).iter().map(state).max().expect("a finding");
    let up = |count: usize| (0..3).map(|id| seen(id < count, good())).collect();
    assert_eq!([0, 1, 2, 3].map(|count| worst(up(count))), [Fail, Fail, Warn, Good]);
    let new = (0..3).map(|_| Seen { ran: Some(false), ..seen(false, good()) }).collect();
    assert_eq!(worst(new), Warn, "none has begun yet");
    let odd = |odd: Snapshot| worst(vec![seen(true, good()), seen(true, good()), seen(true, odd)]);
    assert_eq!(odd(Snapshot { group: "00".to_owned(), ..good() }), Fail, "another group's");
    let foreign = seen(true, Snapshot { group: "00".to_owned(), ..good() });
    let findings = judge_peers(&cluster, &[seen(true, good()), seen(true, good()), foreign]);
    let mend = &findings.iter().find(|one| one.said.contains("another group")).expect("it is seen").mend;
    assert!(mend.starts_with("stop that group") && mend.contains("other ports"), "{mend}");
    assert_eq!(odd(Snapshot { peers: vec![], ..good() }), Warn);
    assert_eq!(odd(Snapshot { active: false, ..good() }), Warn);
    assert_eq!(odd(Snapshot { accused: vec![1], ..good() }), Warn);
    assert_eq!(odd(Snapshot { accused_clients: vec![3], ..good() }), Warn);
}

#[test]
fn a_replica_that_must_be_readmitted_is_not_to_be_started() {
    let mend = |durability, trusted_home, ran| {
        let cluster = Cluster { durability, trusted_home, ..cluster("ended", Protocol::MinBft) };
        let up = || seen(true, Snapshot::default());
        let gone = Seen { ran, ..seen(false, Snapshot::default()) };
        let findings = judge_peers(&cluster, &[up(), up(), gone]);
        let of_it = findings.into_iter().find(|finding| finding.said.contains("replica 2 does not answer"));
        of_it.expect("it is missed").mend
    };
    let readmit = "troth admin readmit --replica 2";
    let (here, apart) = (TrustedHome::InProcess, TrustedHome::Process);
    let memory = mend(Durability::Memory, here, Some(true));
    assert!(memory.starts_with("if it has ended it must not start again") && memory.contains(readmit));
    for (durability, home) in [(Durability::interval(), here), (Durability::Memory, apart)] {
        let some = mend(durability, home, Some(true));
        assert!(some.starts_with("start it there") && some.contains(readmit), "{some}");
        assert!(!mend(durability, home, Some(false)).contains(readmit), "it has not begun");
    }
    assert!(!mend(Durability::Memory, here, Some(false)).contains(readmit), "it has not begun");
    assert!(mend(Durability::Memory, here, None).contains(readmit), "nobody knows here whether it ran");
    assert!(!mend(Durability::Always, here, Some(true)).contains(readmit));

    // Admitting one takes as many as ordering anything does.
    let two_gone = |durability| {
        let cluster = Cluster { durability, ..cluster("two-ended", Protocol::MinBft) };
        let seen: Vec<Seen> = (0..3).map(|id| seen(id == 0, Snapshot::default())).collect();
        judge_peers(&cluster, &seen)
            .into_iter()
            .find(|finding| finding.said.contains("replicas 1 and 2 do not"))
    };
    for durability in [Durability::Memory, Durability::interval()] {
        let mend = two_gone(durability).expect("they are missed").mend;
        let first = "once 2 answer, as it takes to admit it: troth admin readmit --replica N";
        assert!(mend.contains(first), "{mend}");
    }

    let all_gone = |durability| {
        let cluster = Cluster { durability, ..cluster("over", Protocol::MinBft) };
        let gone: Vec<Seen> = (0..3).map(|_| seen(false, Snapshot::default())).collect();
        judge_peers(&cluster, &gone).pop().expect("a finding").mend
    };
    assert!(all_gone(Durability::Memory).contains("this group is over"));
    assert!(all_gone(Durability::Always).contains("start the replicas"));
}

#[test]
fn a_replica_that_never_comes_back_is_not_said_to_be_readmitted() {
    for protocol in Protocol::ALL.into_iter().filter(|protocol| !protocol.readmits()) {
        for durability in [Durability::Always, Durability::interval(), Durability::Memory] {
            let cluster = Cluster { durability, ..cluster("for-good", protocol) };
            let n = cluster.group.n();
            let seen: Vec<Seen> = (0..n).map(|id| seen(id > 0, Snapshot::default())).collect();
            let findings = judge_peers(&cluster, &seen);
            let missed = findings.iter().find(|finding| finding.said.contains("replica 0 does not answer"));
            let mend = &missed.expect("it is missed").mend;
            assert!(!mend.contains("readmit"), "{protocol}: {mend}");
            let lost = durability != Durability::Always;
            assert_eq!(
                mend.contains("leave it stopped for good") && mend.contains("troth restore"),
                lost,
                "{mend}"
            );
        }
    }
}

#[test]
fn what_is_so_of_several_replicas_is_said_once() {
    let cluster = cluster("once", Protocol::Pbft);
    let waiting = |view| Snapshot { view, active: false, ..Snapshot::default() };
    let all = [1, 1, 2, 1].map(|view| seen(true, waiting(view)));
    let findings = judge_peers(&cluster, &all);
    let said: Vec<&str> = findings
        .iter()
        .filter(|finding| finding.said.contains("no primary"))
        .map(|one| one.said.as_str())
        .collect();
    assert_eq!(said.len(), 2, "{findings:?}");
    assert!(said[0].contains("view 1") && said[0].contains("replicas 0, 1 and 3"), "{said:?}");
    assert!(said[1].contains("view 2") && said[1].ends_with("replica 2"), "{said:?}");

    let up = |port| seen(port, Snapshot::default());
    let findings = judge_peers(&cluster, &[true, false, true, false].map(up));
    let silent: Vec<&Finding> =
        findings.iter().filter(|finding| finding.said.contains("not answer at")).collect();
    assert_eq!(silent.len(), 1, "{findings:?}");
    let expected = "replicas 1 and 3 do not answer at 127.0.0.1:4701, 127.0.0.1:4703: refused";
    assert_eq!(silent[0].said, expected);
}
