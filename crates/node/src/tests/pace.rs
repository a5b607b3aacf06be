use crate::pace::Pace;
use std::rc::Rc;
use std::time::Duration;
use tokio::time::Instant;

const EVERY: Duration = Duration::from_millis(2);

#[tokio::test(start_paused = true)]
async fn so_many_go_at_once_and_the_others_in_time() {
    let pace = Pace::new(EVERY, 10);
    let began = Instant::now();
    for _ in 0..10 {
        pace.turn().await;
    }
    assert_eq!(began.elapsed(), Duration::ZERO);
    for _ in 0..100 {
        pace.turn().await;
    }
    assert!((199..=201).contains(&began.elapsed().as_millis()), "{:?}", began.elapsed());
    // What nobody took is there later, and no more than that.
    tokio::time::advance(Duration::from_secs(60)).await;
    let began = Instant::now();
    for _ in 0..20 {
        pace.turn().await;
    }
    assert!((19..=21).contains(&began.elapsed().as_millis()), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn who_gives_up_has_taken_nobodys_turn() {
    let pace = Rc::new(Pace::new(EVERY, 1));
    pace.turn().await;
    let began = Instant::now();
    for _ in 0..1_000 {
        let gave_up = tokio::time::timeout(Duration::ZERO, pace.turn()).await;
        assert!(gave_up.is_err());
    }
    pace.turn().await;
    assert!(began.elapsed() <= 2 * EVERY, "{:?}", began.elapsed());
}
