use crate::places::Places;
use std::future::{pending, ready};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const ANYWHERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

#[tokio::test]
async fn the_oldest_caller_gives_way_to_the_newest() {
    let places = Places::new(2);
    let (first, second, third) = (places.take(ANYWHERE), places.take(ANYWHERE), places.take(ANYWHERE));
    assert_eq!(first.hold(pending::<()>()).await, None);
    // Its end frees nothing that others hold.
    let (answered, lost) = tokio::join!(third.hold(ready(3)), async {
        places.take(ANYWHERE);
        let (_fourth, _fifth) = (places.take(ANYWHERE), places.take(ANYWHERE));
        second.hold(pending::<()>()).await
    });
    assert_eq!((answered, lost), (Some(3), None));
}

#[tokio::test]
async fn who_has_a_network_of_addresses_counts_as_one() {
    let places = Places::new(4);
    let of = |network: u16, host: u16| IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, network, 0, 0, 0, host));
    let honest = places.take(of(1, 1));
    let greedy: Vec<_> = (0..100).map(|host| places.take(of(2, host))).collect();
    let slow = async {
        tokio::task::yield_now().await;
        tokio::task::yield_now().await;
    };
    assert_eq!(honest.hold(slow).await, Some(()), "the oldest of all keeps its place");
    drop(greedy);
}

#[tokio::test]
async fn a_neighbour_in_the_same_network_keeps_its_place() {
    let places = Places::new(4);
    let of = |host: u16| IpAddr::V6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, host));
    let honest = places.take(of(1));
    let greedy: Vec<_> = (0..100).map(|_| places.take(of(2))).collect();
    let slow = async {
        tokio::task::yield_now().await;
        tokio::task::yield_now().await;
    };
    assert_eq!(honest.hold(slow).await, Some(()), "one address asks for all of it");
    drop(greedy);
}

#[tokio::test]
async fn a_place_that_was_given_back_is_free() {
    let places = Places::new(2);
    let oldest = places.take(ANYWHERE);
    for _ in 0..10 {
        assert_eq!(places.take(ANYWHERE).hold(ready(1)).await, Some(1));
    }
    assert_eq!(oldest.hold(async { tokio::task::yield_now().await }).await, Some(()));
}

#[tokio::test]
async fn whoever_holds_many_places_makes_room_for_others() {
    let places = Places::new(4);
    let elsewhere = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
    let honest = places.take(elsewhere);
    let greedy: Vec<_> = (0..100).map(|_| places.take(ANYWHERE)).collect();
    // A place that is lost gives up work that does not end at once.
    let slow = async {
        tokio::task::yield_now().await;
        tokio::task::yield_now().await;
    };
    assert_eq!(honest.hold(slow).await, Some(()), "the oldest of all keeps its place");
    let mut kept = 0;
    for place in greedy {
        kept += usize::from(place.hold(tokio::task::yield_now()).await.is_some());
    }
    assert_eq!(kept, 3);
}
