//! Reads whose answers wait for the end of the history, and the room that they share.

use crate::proving::{Done, One, Proving, Step, Told, Watch, shows, state};
use troth_core::Replica;
use troth_types::{ClientId, Group, GroupId, ReplicaId};

/// The rules stand on the pages of the protocols whose reads are proven.
macro_rules! about {
    ($label:literal) => {};
}

#[test]
fn reads_share_an_end_and_show_the_state_in_which_it_was_asked_for() {
    let mut one = One::new();
    one.step(Step::Execute(1));
    assert!(one.read(1, Some(1)).is_empty());
    // What comes while the END is under way waits for the next one, and the state goes on.
    for (number, nonce) in [(2, 2), (3, 3), (4, 4)] {
        one.step(Step::Execute(number));
        assert!(one.read(number, Some(nonce)).is_empty());
    }
    assert_eq!(one.0.agreement().ends, [(1, [1; 32])]);
    let told = one.reads(Step::End);
    assert_eq!(told.len(), 1);
    assert_eq!(shows(&told[0], 1, 1, [1; 32]), state(1, 1), "not of the state that is there by now");
    let (executed, root) = one.0.agreement().ends[1];
    assert_eq!(executed, 4);
    let told = one.reads(Step::End);
    assert_eq!(told.len(), 3);
    for (told, number) in told.iter().zip(2..) {
        assert_eq!(shows(told, number, number as u8, root), state(number, 4));
    }
    assert!(one.read(5, Some(5)).is_empty() && one.0.agreement().ends.len() == 3);
}

#[test]
fn what_cannot_be_proven_is_refused() {
    let mut one = One::new();
    one.step(Step::Execute(1));
    assert_eq!(one.read(1, None), [Told::Refusal(1)], "it would be no answer");
    one.0 = {
        let group = Group::hybrid(GroupId([1; 16]), 3).expect("2f+1");
        let astray = Proving { astray: true, ..Proving::default() };
        Replica::new(ReplicaId(0), group, astray, Done::default())
    };
    assert_eq!(one.read(2, Some(2)), [Told::Refusal(2)], "its history ends elsewhere");
}

#[test]
fn what_a_wrong_state_answered_does_not_go() {
    let mut one = One::new();
    one.step(Step::Execute(1));
    one.read(1, Some(1));
    one.read(2, Some(2));
    assert_eq!(one.reads(Step::Wrong(1)), [Told::Refusal(2), Told::Refusal(1)]);
    assert!(one.reads(Step::End).is_empty());
    assert_eq!(one.read(3, Some(3)), [Told::Refusal(3)], "until it is mended");
}

#[test]
fn a_client_that_reads_without_end_has_its_share_and_no_more() {
    let mut one = One::new();
    one.step(Step::Execute(1));
    let refused = (1..=2000).filter(|number| one.read(*number, Some(1)) == [Told::Refusal(*number)]).count();
    assert_eq!(refused, 2000 - 512);
    // All of it ends: so many at a time as one END is for.
    let mut answered = Vec::new();
    for _ in 0..18 {
        answered.push(one.reads(Step::End).len());
    }
    assert_eq!((answered[0], &answered[1..16], &answered[16..]), (1, &[32; 15][..], &[31, 0][..]));
    assert!(one.read(3000, Some(1)).is_empty(), "there is room again");
}

/// One with an END under way, so that all reads wait.
fn waiting(padding: usize) -> One {
    waiting_at(Done { padding, ..Done::default() })
}

fn waiting_at(done: Done) -> One {
    let mut one = One::new();
    let group = Group::hybrid(GroupId([1; 16]), 3).expect("2f+1");
    one.0 = Replica::new(ReplicaId(0), group, Proving::default(), done);
    one.step(Step::Execute(1));
    assert!(one.read_of(100, 1, 0).is_empty());
    one
}

#[test]
fn one_step_makes_answers_of_about_a_mebibyte() {
    about!("A2MPBFTE-E3");
    about!("A2MPBFTEA-E3");
    let mut one = waiting(400 << 10);
    for number in 1..=7 {
        assert!(one.read(number, Some(1)).is_empty());
    }
    let answered: Vec<usize> = (0..5).map(|_| one.reads(Step::End).len()).collect();
    assert_eq!(answered, [1, 3, 3, 1, 0], "the third goes over it, whoever sends the results in full");
}

#[test]
fn one_step_answers_for_about_two_milliseconds() {
    about!("A2MPBFTE-E3");
    about!("A2MPBFTEA-E3");
    let mut one = waiting_at(Done { watch: Some(Watch(900)), ..Done::default() });
    for number in 1..=8 {
        assert!(one.read(number, Some(1)).is_empty());
    }
    let answered: Vec<usize> = (0..5).map(|_| one.reads(Step::End).len()).collect();
    assert_eq!(
        answered,
        [1, 3, 3, 2, 0],
        "the third goes over it, and the next three share an END of their own"
    );
}

#[test]
fn clients_take_turns() {
    about!("A2MPBFTE-E3");
    about!("A2MPBFTEA-E3");
    let mut one = waiting(0);
    for number in 1..=300 {
        assert!(one.read_of(2, number, 0).is_empty());
    }
    for client in [1, 3] {
        assert!(one.read_of(client, 1000 + client, 0).is_empty());
    }
    one.reads(Step::End);
    let told = one.reads(Step::End);
    assert_eq!(told.len(), 32);
    let numbers: Vec<u64> = told.iter().filter_map(Told::answers).collect();
    assert_eq!(numbers[..5], [1001, 1, 1003, 2, 3], "who asks little waits for nobody who asks much");
}

#[test]
fn who_holds_most_gives_way_where_all_room_is_taken() {
    about!("A2MPBFTE-E3");
    about!("A2MPBFTEA-E3");
    let mut one = waiting(0);
    // 32 clients fill it, one of them with a little more than the others.
    let third = 340 << 10;
    for client in 1..=32 {
        for of_three in 1..=3 {
            let number = 10 * client + of_three;
            assert!(one.read_of(client, number, third + usize::from(client == 7)).is_empty());
        }
    }
    assert!(one.read_of(50, 500, 90 << 10).is_empty(), "there is a little left");
    assert_eq!(one.read_of(51, 510, 90 << 10), [Told::Refusal(73)], "the newest of the one that holds most");
    assert_eq!(one.read_of(7, 74, third + 1), [Told::Refusal(74)], "it would again hold most");
    assert!(one.read_of(52, 520, 90 << 10).is_empty(), "what it gave up is more than was needed");
    let answered: Vec<u64> =
        std::iter::from_fn(|| Some(one.reads(Step::End)).filter(|told| !told.is_empty()))
            .flatten()
            .filter_map(|told| told.answers())
            .collect();
    assert_eq!(answered.len(), 1 + 96 - 1 + 3);
    assert!(answered.contains(&510) && answered.contains(&72) && !answered.contains(&73));
}

#[test]
fn answers_give_way_too() {
    let mut one = waiting(700 << 10);
    // Answers of 700 KiB wait for their ENDs, two at a time; whatever one client holds, another with less gets in.
    let group = Group::hybrid(GroupId([1; 16]), 3).expect("2f+1");
    let number =
        (1..).find(|number| group.designated(ClientId(1), *number) == ReplicaId(0)).expect("in its turn");
    assert!(one.read_of(1, number, 0).is_empty());
    assert_eq!(one.reads(Step::End).len(), 1);
    for client in 2..=65 {
        assert!(one.read_of(client, client, 500 << 10).is_empty(), "{client}");
    }
    let told = one.read_of(66, 66, 500 << 10);
    assert_eq!(told, [Told::Refusal(number)], "the answer to 1 is the most that anybody holds");
    assert_eq!(one.reads(Step::End), [], "and does not come");
}
