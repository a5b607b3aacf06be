//! What `kazoo` reads: pytest's outcomes, and what the suite gives to `java`; and when it holds.

use crate::kazoo::ensemble::Wanted;
use crate::kazoo::given::{Given, configuration, users};
use crate::kazoo::junit::{Outcome, Outcomes, read};
use crate::kazoo::verdict::{NOT_RUN, Verdict, counted, expected, has_servers, module};

const FILE: &str = r#"<?xml version="1.0" encoding="utf-8"?><testsuites name="pytest tests"><testsuite name="pytest" tests="6">
<testcase classname="kazoo.tests.test_client.TestClient" name="test_create" time="0.1" />
<testcase classname="kazoo.tests.test_client.TestClient" name="test_get" time="0.1"><failure message="AssertionError: a &lt; b &amp;amp; &quot;c&quot;">a &gt; long text</failure></testcase>
<testcase classname="kazoo.tests.test_sasl.TestSASL" name="test_gssapi" time="0"><skipped type="pytest.skip" message="no KDC">x</skipped></testcase>
<testcase classname="kazoo.tests.test_lock.TestLock" name="test_lock" time="1"></testcase>
<testcase classname="kazoo.tests.test_lock.TestLock" name="test_lock" time="1"><error message="failed on teardown">y</error></testcase>
<testcase classname="kazoo.tests.test_utils.TestUtils" name="test_pipe" time="0" />
</testsuite></testsuites>"#;

fn name(class: &str, test: &str) -> String {
    format!("kazoo.tests.{class}::{test}")
}

#[test]
fn outcomes_are_read_with_their_reasons_and_the_worse_of_two_counts() {
    let outcomes = read(FILE).expect("a file of pytest's");
    assert_eq!(outcomes.len(), 5);
    assert_eq!(outcomes[&name("test_client.TestClient", "test_create")], Outcome::Passed);
    let why = "AssertionError: a < b &amp; \"c\"".to_string();
    assert_eq!(outcomes[&name("test_client.TestClient", "test_get")], Outcome::Failed(why));
    assert_eq!(outcomes[&name("test_sasl.TestSASL", "test_gssapi")], Outcome::Skipped("no KDC".to_string()));
    let why = "failed on teardown".to_string();
    assert_eq!(outcomes[&name("test_lock.TestLock", "test_lock")], Outcome::Failed(why));
    // Those without servers do not count.
    assert_eq!(counted(&outcomes, &[]), (1, 2, 1));
    assert_eq!(counted(&outcomes, &["test_client".to_string()]), (1, 1, 0));
}

#[test]
fn a_file_that_is_cut_off_is_none() {
    for end in [0, 60, FILE.len() - 30] {
        assert!(read(&FILE[..end]).is_err(), "{end}");
    }
    assert!(read("<testsuite><testcase name=\"a\" /></testsuite>").is_err(), "a test without a class");
}

#[test]
fn tests_are_told_apart_by_their_modules() {
    assert_eq!(module("kazoo.tests.test_client.TestClient::test_create"), "test_client");
    assert!(has_servers("kazoo.tests.test_client.TestClient::test_create"));
    assert!(!has_servers("kazoo.tests.test_client_unit.TestClient::test_create"));
}

#[test]
fn of_some_modules_only_their_tests_count() {
    let modules = ["test_watchers".to_string()];
    let both = |client: Outcome, watchers: Outcome| {
        let of = |class: &str, outcome: &Outcome| {
            (0..30).map(|number| (name(class, &format!("t{number}")), outcome.clone())).collect::<Vec<_>>()
        };
        let all = [of("test_client.C", &client), of("test_watchers.W", &watchers)];
        all.concat().into_iter().collect::<Outcomes>()
    };
    let failed = || Outcome::Failed("why".to_string());
    let zookeeper = both(Outcome::Passed, Outcome::Passed);
    let verdict = Verdict::of(&zookeeper, &both(failed(), Outcome::Passed), &modules);
    assert_eq!((verdict.wanted, verdict.passed, verdict.others.len()), (30, 30, 0));
    assert!(verdict.holds() && verdict.wanted >= expected(&modules));
    assert!(!Verdict::of(&zookeeper, &both(Outcome::Passed, failed()), &modules).holds());
    // A run that was broken off has too few.
    assert!(expected(&modules) >= 20 && expected(&[]) > expected(&modules));
}

/// So many tests with servers that end like this.
fn all(count: usize, outcome: &Outcome) -> Outcomes {
    (0..count).map(|number| (name("test_client.C", &format!("t{number}")), outcome.clone())).collect()
}

#[test]
fn it_holds_at_97_percent_of_what_passes_on_zookeeper_and_not_below() {
    let zookeeper = all(200, &Outcome::Passed);
    let but = |failing: usize, how: Option<Outcome>| {
        let mut troth = zookeeper.clone();
        for test in zookeeper.keys().take(failing) {
            match &how {
                Some(how) => drop(troth.insert(test.clone(), how.clone())),
                None => drop(troth.remove(test)),
            }
        }
        Verdict::of(&zookeeper, &troth, &[])
    };
    let ends = [
        Some(Outcome::Failed("x".to_string())),
        // A test that is skipped, or not there at all, does not pass.
        Some(Outcome::Skipped("y".to_string())),
        None,
    ];
    for how in ends {
        assert!(but(6, how.clone()).holds());
        let below = but(7, how);
        assert!(!below.holds());
        assert_eq!((below.passed, below.wanted, below.others.len()), (193, 200, 7));
    }
    assert!(!Verdict::of(&Outcomes::new(), &zookeeper, &[]).holds(), "nothing to hold it against");
}

#[test]
fn what_does_not_pass_on_zookeeper_is_not_wanted_and_still_listed() {
    let mut zookeeper = all(3, &Outcome::Passed);
    let mut troth = zookeeper.clone();
    let there = |outcomes: &mut Outcomes, test: &str, outcome| {
        outcomes.insert(name("test_sasl.S", test), outcome);
    };
    there(&mut zookeeper, "gssapi", Outcome::Skipped("no KDC".to_string()));
    there(&mut troth, "gssapi", Outcome::Failed("tried".to_string()));
    there(&mut zookeeper, "other", Outcome::Failed("flaky".to_string()));
    // One that needs no server counts for nothing, and is listed where it does not pass.
    zookeeper.insert(name("test_utils.U", "t"), Outcome::Passed);
    let verdict = Verdict::of(&zookeeper, &troth, &[]);
    assert_eq!((verdict.passed, verdict.wanted), (3, 3));
    let listed: Vec<_> =
        verdict.others.iter().map(|(test, _, here)| (test.as_str(), here.as_str())).collect();
    let (gssapi, other, without) =
        (name("test_sasl.S", "gssapi"), name("test_sasl.S", "other"), name("test_utils.U", "t"));
    assert_eq!(
        listed,
        [(gssapi.as_str(), "failed: tried"), (other.as_str(), NOT_RUN), (without.as_str(), NOT_RUN)]
    );
}

#[test]
fn a_server_is_what_flags_and_file_say() {
    let place = std::env::temp_dir().join(format!("troth-xtask-kazoo-{}", std::process::id()));
    std::fs::create_dir_all(&place).expect("a directory");
    let (file, jaas) = (place.join("zoo.cfg"), place.join("jaas.conf"));
    let text = format!(
        "\ntickTime=2000\ndataDir={}\nclientPort=20010\n# a comment\n4lw.commands.whitelist=*\n\ninitLimit=4\n\
         server.2=localhost:20011:20012:participant\nserver.1=localhost:20001:20002:participant\npeerType=participant\n",
        place.display()
    );
    std::fs::write(&file, text).expect("a file");
    std::fs::write(place.join("myid"), "2").expect("a file");
    std::fs::write(&jaas, "Server {\n  a.Module required\n  user_super=\"s\"\n  user_me=\"p=w\";\n};")
        .expect("a file");
    let users_flag = format!("-Djava.security.auth.login.config={}", jaas.display());
    let words = [
        "-cp",
        "/x/*",
        "-Dzookeeper.DigestAuthenticationProvider.superDigest=super:D/In=",
        &users_flag,
        "org.apache.zookeeper.server.quorum.QuorumPeerMain",
        &file.to_string_lossy(),
    ]
    .map(str::to_string);
    let given = Given::read(&words).expect("a server");
    assert_eq!((given.id(), given.number("clientPort")), (Ok(1), Ok(Some(20_010))));
    let ports: Vec<_> = given.peers.iter().map(|peer| (peer.id, peer.leader, peer.election)).collect();
    assert_eq!(ports, [(1, 20_001, 20_002), (2, 20_011, 20_012)]);
    assert_eq!(given.superuser.as_deref(), Some("super:D/In="));
    let pair = |name: &str, password: &str| (name.to_string(), password.to_string());
    assert_eq!(given.users, [pair("super", "s"), pair("me", "p=w")]);
    assert!(given.number::<u16>("4lw.commands.whitelist").is_err(), "no number");

    std::fs::write(place.join("myid"), "3").expect("a file");
    assert!(given.id().is_err(), "none of the servers");
    assert!(Given::read(&words[..4]).is_err(), "no class");
    std::fs::remove_dir_all(&place).expect("our own");
}

#[test]
fn a_file_that_is_none_is_refused() {
    assert!(configuration("tickTime").is_err());
    assert!(configuration("server.1=localhost:1").is_err(), "a port is missing");
    assert!(configuration("server.x=localhost:1:2").is_err());
    assert_eq!(
        configuration("a=b=c").map(|(all, peers)| (all["a"].clone(), peers.len())),
        Ok(("b=c".into(), 0))
    );
    assert!(users("user_without_password\nother=\"x\"").is_empty());
}

#[test]
fn every_replica_is_run_by_one_server_and_the_last_ones_lie() {
    for (protocol, servers, replicas) in
        [("minbft", 3, 3), ("a2m-pbft-ea", 5, 5), ("pbft", 3, 4), ("a2m-pbft-e", 5, 7), ("pbft", 7, 10)]
    {
        let wanted = Wanted { protocol: protocol.to_string(), liars: servers / 2 };
        assert_eq!(wanted.replicas(servers), replicas, "{protocol}");
        let mut hosted: Vec<usize> = (0..servers).flat_map(|place| wanted.hosted(servers, place)).collect();
        hosted.sort_unstable();
        assert_eq!(hosted, (0..replicas).collect::<Vec<_>>(), "{protocol}");
        let liars = (0..replicas).filter(|replica| wanted.lies(servers, *replica));
        assert_eq!(liars.collect::<Vec<_>>(), (replicas - servers / 2..replicas).collect::<Vec<_>>());
        let honest = Wanted { liars: 0, ..wanted };
        assert!((0..replicas).all(|replica| !honest.lies(servers, replica)));
    }
}
