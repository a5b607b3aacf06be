use super::{CLIENT, Scene, digest, full, reply, texts};
use troth_types::{ClientId, Group, GroupId, ReplicaId, Reply, ReplyBody, Seq, ToClient, View};

#[test]
fn f_plus_one_equal_replies_with_the_full_result_complete_a_submission() {
    let mut scene = Scene::new(3);
    let ticket = scene.submit(&["put", "get"]);
    let seen = scene.drain();
    assert_eq!(seen.frames.iter().map(|(to, ..)| to.0).collect::<Vec<_>>(), [0, 1, 2], "all replicas get it");
    assert!(seen.frames.iter().all(|(_, _, full)| !full));
    scene.say(0, digest(1, &["ok", "5"]));
    assert!(scene.drain().done.is_empty(), "one replica proves nothing");
    scene.say(2, full(1, &["ok", "5"]));
    assert_eq!(scene.drain().done, [(ticket, Ok(texts(&["ok", "5"])))]);
    scene.say(1, full(1, &["late", "lie"]));
    assert!(scene.drain().done.is_empty(), "a ticket ends once");
    assert_eq!(scene.core.unconfirmed_bytes(), 0);
}

#[test]
fn one_replica_counts_once_however_often_it_speaks() {
    let mut scene = Scene::new(5);
    scene.submit(&["get"]);
    scene.drain();
    for _ in 0..9 {
        scene.say(3, full(1, &["lie"]));
        scene.say(4, full(1, &["lie"]));
    }
    assert!(scene.drain().done.is_empty(), "f replicas are no quorum");
}

#[test]
fn a_replica_that_changes_its_word_loses_the_old_one() {
    let mut scene = Scene::new(3);
    scene.submit(&["get"]);
    scene.drain();
    scene.say(0, full(1, &["a"]));
    scene.say(0, full(1, &["b"]));
    scene.say(1, digest(1, &["a"]));
    assert!(scene.drain().done.is_empty(), "nobody but replica 1 says a now");
    scene.say(2, digest(1, &["b"]));
    assert_eq!(scene.drain().done[0].1, Ok(texts(&["b"])));
}

#[test]
fn the_full_result_must_be_the_one_agreed_on() {
    let mut scene = Scene::new(3);
    let designated = scene.group.designated(CLIENT, 1).0;
    let others: Vec<u16> = (0..3).filter(|replica| *replica != designated).collect();
    scene.submit(&["get"]);
    scene.drain();
    scene.say(designated, full(1, &["lie"]));
    scene.say(others[0], digest(1, &["truth"]));
    scene.say(others[1], digest(1, &["truth"]));
    assert_eq!(scene.core.next_wake(), Some(scene.now), "the designated replica failed: ask at once");
    scene.wait(0);
    let seen = scene.drain();
    assert!(seen.done.is_empty());
    let [(asked, _, true)] = seen.frames[..] else {
        panic!("one is asked for everything: {:?}", seen.frames)
    };
    assert!(others.contains(&asked.0), "one that agrees");
    // It may be a liar, too.
    scene.wait(crate::Timing::DEFAULT.full_wait);
    let seen = scene.drain();
    assert_eq!(seen.frames.len(), 3, "then everybody");
    assert!(seen.frames.iter().all(|(_, _, full)| *full));
    scene.say(designated, full(1, &["lie"]));
    assert!(scene.drain().done.is_empty());
    scene.say(others[1], full(1, &["truth"]));
    assert_eq!(scene.drain().done[0].1, Ok(texts(&["truth"])));
}

#[test]
fn nobody_waits_again_for_a_replica_that_owes_results() {
    let mut scene = Scene::new(3);
    let turns = |number| Group::hybrid(GroupId([0; 16]), 3).expect("odd").designated(CLIENT, number).0;
    let silent = turns(1);
    let answered = |scene: &mut Scene, number: u64| -> bool {
        scene.submit(&["get"]);
        scene.drain();
        for replica in (0..3).filter(|replica| *replica != silent) {
            let reply = if turns(number) == replica { full(number, &["x"]) } else { digest(number, &["x"]) };
            scene.say(replica, reply);
        }
        let waits = scene.core.next_wake() != Some(scene.now);
        scene.wait(0);
        let waited = waits && turns(number) == silent;
        if waited {
            scene.wait(crate::Timing::DEFAULT.full_wait);
        }
        for replica in (0..3).filter(|replica| *replica != silent) {
            scene.say(replica, full(number, &["x"]));
        }
        assert_eq!(scene.drain().done.len(), 1, "{number}");
        waited
    };
    let waited: Vec<u64> = (1..=30).filter(|number| answered(&mut scene, *number)).collect();
    assert_eq!(waited, [1], "the others at once");
    let owed = |scene: &Scene| scene.core.debts[usize::from(silent)];
    assert_eq!(owed(&scene), 8, "what nobody waited for is not owed");
    // One answer for each that it gives in time; one more word of the same frame is none.
    for number in (31..).filter(|number| turns(*number) == silent).take(8) {
        while scene.core.next_number < number {
            let own = scene.core.next_number;
            scene.submit(&["get"]);
            scene.drain();
            (0..3).for_each(|replica| scene.say(replica, full(own, &["x"])));
            scene.drain();
        }
        let before = owed(&scene);
        scene.submit(&["get"]);
        scene.drain();
        scene.say(silent, full(number, &["x"]));
        scene.say(silent, full(number, &["y"]));
        scene.say(silent, full(number, &["x"]));
        assert_eq!(owed(&scene), before - 1);
        (0..3).for_each(|replica| scene.say(replica, full(number, &["x"])));
        scene.drain();
    }
    assert_eq!(owed(&scene), 0);
}

#[test]
fn a_quorum_of_digests_waits_a_little_for_a_slow_designated_replica() {
    let mut scene = Scene::new(3);
    let designated = scene.group.designated(CLIENT, 1).0;
    scene.submit(&["get"]);
    scene.drain();
    for replica in (0..3).filter(|replica| *replica != designated) {
        scene.say(replica, digest(1, &["truth"]));
    }
    let wait = crate::Timing::DEFAULT.full_wait;
    assert_eq!(scene.core.next_wake(), Some(scene.now.after(wait)));
    scene.wait(wait);
    assert!(scene.drain().frames.iter().all(|(_, _, full)| *full));
    scene.say(designated, full(1, &["truth"]));
    assert_eq!(scene.drain().done.len(), 1);
}

#[test]
fn a_result_kept_from_before_agreement_is_used() {
    let mut scene = Scene::new(3);
    scene.submit(&["get"]);
    scene.drain();
    scene.say(0, full(1, &["truth"]));
    scene.say(1, digest(1, &["truth"]));
    assert_eq!(scene.drain().done[0].1, Ok(texts(&["truth"])));
    assert_eq!(scene.core.unconfirmed_bytes(), 0);
}

#[test]
fn unconfirmed_results_stay_within_the_replicas_share() {
    let mut scene = Scene::with(3, |config| config.bounds.reply_bytes = 1_000);
    let big = "x".repeat(700);
    for number in 1..=4 {
        scene.submit(&["get"]);
        scene.drain();
        scene.say(2, full(number, &[&big]));
        assert!(scene.core.unconfirmed_bytes() <= 1_000);
    }
    for number in 1..=4 {
        scene.say(0, digest(number, &["ok"]));
        scene.say(1, full(number, &["ok"]));
    }
    assert_eq!(scene.drain().done.len(), 4, "rubbish of one replica takes no room from another");
    assert_eq!(scene.core.unconfirmed_bytes(), 0);
}

#[test]
fn a_result_that_did_not_fit_counts_as_its_digest_and_is_accepted_after_agreement() {
    let mut scene = Scene::with(3, |config| config.bounds.reply_bytes = 10);
    let big = "x".repeat(700);
    scene.submit(&["get"]);
    scene.drain();
    scene.say(0, full(1, &[&big]));
    scene.say(1, digest(1, &[&big]));
    assert!(scene.drain().done.is_empty());
    scene.say(0, full(1, &[&big]));
    assert_eq!(scene.drain().done.len(), 1);
}

#[test]
fn replies_of_another_shape_number_client_or_replica_count_for_nothing() {
    let mut scene = Scene::new(3);
    scene.submit(&["get"]);
    scene.drain();
    scene.say(0, full(1, &["a"]));
    scene.say(1, full(1, &["a", "b"]));
    scene.say(1, full(2, &["a"]));
    scene.say(77, full(1, &["a"]));
    let stranger = Reply {
        client: ClientId(8),
        number: 1,
        seq: Seq(1),
        view: View(0),
        events_up_to: 0,
        body: ReplyBody::Full(texts(&["a"])),
    };
    scene.say(2, ToClient::Reply(stranger));
    assert!(scene.drain().done.is_empty());
    // The place in the order and the events belong to the vote.
    scene.say(1, reply(1, 1, ReplyBody::Full(texts(&["a"]))));
    assert!(scene.drain().done.is_empty());
}

#[test]
fn the_view_hint_is_one_that_a_correct_replica_reached() {
    let mut scene = Scene::new(3);
    let seen_in = |view| {
        let body = ReplyBody::Full(texts(&["a"]));
        ToClient::Reply(Reply {
            client: CLIENT,
            number: 1,
            seq: Seq(1),
            view: View(view),
            events_up_to: 0,
            body,
        })
    };
    scene.say(2, seen_in(1 << 60));
    assert_eq!(scene.core.view_hint(), View(0), "one replica moves nothing");
    scene.say(0, seen_in(3));
    assert_eq!(scene.core.view_hint(), View(3));
    assert_eq!(scene.group.primary(scene.core.view_hint()), ReplicaId(0));
}

#[test]
fn an_earlier_result_never_stands_for_a_later_digest() {
    let mut scene = Scene::new(3);
    scene.submit(&["get"]);
    scene.drain();
    scene.say(0, full(1, &["lie"]));
    scene.say(0, digest(1, &["truth"]));
    scene.say(1, digest(1, &["truth"]));
    assert!(scene.drain().done.is_empty(), "the lie is not what was agreed on");
    assert_eq!(scene.core.unconfirmed_bytes(), 0);
    scene.say(1, full(1, &["truth"]));
    assert_eq!(scene.drain().done[0].1, Ok(texts(&["truth"])));
}
