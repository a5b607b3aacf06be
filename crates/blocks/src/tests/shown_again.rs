use crate::ShownAgain;
use troth_types::Time;

#[test]
fn an_answer_has_four_large_messages_at_most() {
    let interval = 100_000;
    let lacking: Vec<u64> = (1..=6).collect();
    let mut shown = ShownAgain::default();
    let mut ask = |at: u64| shown.choose(Time(at), interval, &lacking);
    assert_eq!(ask(1), [1, 2, 3, 4]);
    assert_eq!(ask(interval / 4), [5, 6], "the first are on their way");
    assert_eq!(ask(1 + interval / 2), [1, 2, 3, 4]);
    assert_eq!(ask(1 + interval), [5, 6], "the first wait for twice as long now");
    shown.retain(|name| *name != 1);
    assert_eq!(shown.choose(Time(1 + interval), interval, &lacking), [1], "one that is forgotten");
}
