use crate::places::Places;
use std::future::{pending, ready};

#[tokio::test]
async fn the_oldest_caller_gives_way_to_the_newest() {
    let places = Places::new(2);
    let (first, second, third) = (places.take(), places.take(), places.take());
    assert_eq!(first.hold(pending::<()>()).await, None);
    // Its end frees nothing that others hold.
    let (answered, lost) = tokio::join!(third.hold(ready(3)), async {
        places.take();
        let (_fourth, _fifth) = (places.take(), places.take());
        second.hold(pending::<()>()).await
    });
    assert_eq!((answered, lost), (Some(3), None));
}

#[tokio::test]
async fn a_place_that_was_given_back_is_free() {
    let places = Places::new(2);
    let oldest = places.take();
    for _ in 0..10 {
        assert_eq!(places.take().hold(ready(1)).await, Some(1));
    }
    assert_eq!(oldest.hold(async { tokio::task::yield_now().await }).await, Some(()));
}
