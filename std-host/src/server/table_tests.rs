//! What the table counts, and whose turn it is.

use std::time::Duration;

use linerate_core::test::{Direction, Protocol};

use super::*;

fn table(change: impl FnOnce(&mut ServerLimits)) -> Table {
    let mut limits = ServerLimits::DEFAULT;
    change(&mut limits);
    Table::new(LiveLimits::new(limits), false)
}

fn address(last: u8) -> IpAddr {
    [192, 0, 2, last].into()
}

fn cookie(number: u8) -> Cookie {
    Cookie::from_bytes([number; Cookie::LEN])
}

/// Test `number` of this address, with these settings.
fn enter_with(
    table: &Table,
    number: u8,
    from: u8,
    change: impl FnOnce(&mut TestSettings),
) -> Result<Place, Denial> {
    let mut settings = TestSettings::new(Protocol::Tcp);
    change(&mut settings);
    table.enter(cookie(number), address(from), &settings, None, None)
}

fn enter(table: &Table, number: u8, from: u8) -> Result<Place, Denial> {
    enter_with(table, number, from, |_| ())
}

fn waits(table: &Table, from: u8) -> Waiting {
    match table.welcome(address(from)) {
        Ok(Welcome::Later(waiting)) => waiting,
        other => panic!("{other:?}"),
    }
}

fn promised(table: &Table, from: u8) -> Promise {
    match table.welcome(address(from)) {
        Ok(Welcome::Now(Some(promise))) => promise,
        other => panic!("{other:?}"),
    }
}

async fn has_turn(waiting: &mut Waiting) -> Option<Promise> {
    tokio::time::timeout(Duration::from_millis(10), waiting.turn()).await.ok()
}

fn denied<T>(result: Result<T, Denial>) -> Denial {
    result.err().expect("it is not allowed")
}

#[test]
fn places_are_counted_in_all_and_by_address() {
    let table = table(|l| (l.tests, l.tests_per_address) = (3, Some(2)));
    let first = enter(&table, 1, 1).expect("room");
    let _second = enter(&table, 2, 1).expect("room");
    assert_eq!(denied(enter(&table, 3, 1)), Denial::AddressTests { limit: 2 });
    assert_eq!(denied(table.welcome(address(1))), Denial::AddressTests { limit: 2 });
    assert_eq!(denied(enter(&table, 1, 2)), Denial::SameName);
    let _third = enter(&table, 3, 2).expect("room");
    assert_eq!(denied(enter(&table, 4, 3)), Denial::Tests { limit: 3 });
    assert_eq!(denied(table.welcome(address(3))), Denial::Tests { limit: 3 });
    drop(first);
    let _fourth = enter(&table, 4, 1).expect("a place was given back");
}

#[test]
fn streams_and_rates_are_added_up() {
    let table = table(|l| {
        (l.streams_in_all, l.server_bitrate) = (8, Some(BitsPerSec(1000)));
    });
    let rate = |rate| Some(BitsPerSec(rate));
    let first = enter_with(&table, 1, 1, |s| (s.parallel, s.bitrate) = (3, rate(200)));
    let first = first.expect("room");
    let both_ways = enter_with(&table, 2, 2, |s| {
        (s.parallel, s.direction) = (3, Direction::Bidirectional);
    });
    assert_eq!(denied(both_ways), Denial::ServerStreams { asked: 6, taken: 3, limit: 8 });
    let second = enter_with(&table, 2, 2, |s| s.bitrate = rate(401));
    let denial = Denial::ServerBitrate { asked: Some(401), taken: 600, limit: 1000 };
    assert_eq!(denied(second), denial);
    let second = enter_with(&table, 2, 2, |s| s.bitrate = rate(400)).expect("room");
    let denial = Denial::ServerBitrate { asked: None, taken: 1000, limit: 1000 };
    assert_eq!(denied(enter(&table, 3, 3)), denial);
    drop(first);
    let third = enter(&table, 3, 3).expect("without a rate it may take what is there");
    assert_eq!(third.weigh(600), None);
    assert_eq!(second.weigh(500), None, "too much, but another moves more");
    let denial = Denial::ServerMeasured { measured: 1101, limit: 1000 };
    assert_eq!(third.weigh(601), Some(denial));
}

#[test]
fn running_test_keeps_the_limit_that_it_began_with() {
    let limits =
        |rate| ServerLimits { server_bitrate: Some(BitsPerSec(rate)), ..ServerLimits::DEFAULT };
    let live = LiveLimits::new(limits(1000));
    let table = Table::new(live.clone(), false);
    let before = enter(&table, 1, 1).expect("room");
    assert_eq!(before.weigh(900), None);
    live.set(limits(500));
    assert_eq!(before.weigh(900), None);
    let denial = Denial::ServerBitrate { asked: None, taken: 900, limit: 500 };
    assert_eq!(denied(enter(&table, 2, 2)), denial);
}

#[test]
fn tests_beside_each_other_are_counted_at_their_most() {
    let table = table(|_| ());
    let places: Vec<_> = (0..3).map(|n| enter(&table, n, n).expect("room")).collect();
    places[0].set_running();
    assert_eq!((places[0].beside(), places[0].beside_lately()), (0, 0));
    places[1].set_running();
    places[2].set_running();
    let [first, second, third] = places.try_into().expect("three");
    assert_eq!((first.beside(), third.beside()), (2, 2));
    drop(second);
    drop(third);
    assert_eq!(first.beside_lately(), 2, "they are gone, and have been there");
    assert_eq!(first.beside_lately(), 0);
    assert_eq!(first.beside(), 2);
}

#[tokio::test]
async fn first_come_is_first_served_and_who_goes_is_skipped() {
    let table = table(|l| (l.tests, l.queue) = (1, 3));
    let promise = promised(&table, 1);
    let mut first = waits(&table, 2);
    let second = waits(&table, 3);
    let mut third = waits(&table, 4);
    assert_eq!(denied(table.welcome(address(5))), Denial::Queue { limit: 3 });
    assert!(has_turn(&mut first).await.is_none());
    drop(second);
    let mut fourth = waits(&table, 5);
    let settings = TestSettings::new(Protocol::Tcp);
    let place = table.enter(cookie(1), address(1), &settings, Some(promise), None);
    assert!(has_turn(&mut first).await.is_none());
    drop(place);
    assert!(has_turn(&mut third).await.is_none(), "it is the turn of the first");
    // Nobody passes by.
    let mut fifth = waits(&table, 6);
    let promise = has_turn(&mut first).await.expect("its turn");
    drop(promise);
    // It goes as its turn comes.
    drop(third);
    drop(has_turn(&mut fourth).await.expect("its turn"));
    drop(has_turn(&mut fifth).await.expect("its turn"));
    drop(promised(&table, 7));
    assert!(enter(&table, 9, 9).is_ok(), "all places were given back");
}

/// As many as there is room for, the first to come, and at once.
#[tokio::test]
async fn limits_that_are_raised_call_those_who_wait() {
    let limits = |tests| ServerLimits { tests, queue: 5, ..ServerLimits::DEFAULT };
    let live = LiveLimits::new(limits(1));
    let table = Table::new(live.clone(), false);
    let _runs = promised(&table, 1);
    let [mut first, mut second, mut third] = [2, 3, 4].map(|from| waits(&table, from));
    live.set(limits(3));
    table.call_next();
    let first = has_turn(&mut first).await.expect("there is room");
    let _second = has_turn(&mut second).await.expect("there is room");
    assert!(has_turn(&mut third).await.is_none());
    live.set(limits(1));
    table.call_next();
    drop(first);
    assert!(has_turn(&mut third).await.is_none(), "two are more than one already");
}

#[tokio::test]
async fn a_refused_test_leaves_its_place_to_the_next() {
    let table = table(|l| (l.tests, l.queue, l.streams_in_all) = (1, 1, 1));
    let promise = promised(&table, 1);
    let mut next = waits(&table, 2);
    let mut settings = TestSettings::new(Protocol::Tcp);
    settings.parallel = 2;
    let refused = table.enter(cookie(1), address(1), &settings, Some(promise), None);
    assert_eq!(denied(refused), Denial::ServerStreams { asked: 2, taken: 0, limit: 1 });
    assert!(has_turn(&mut next).await.is_some());
}

#[test]
fn no_address_fills_the_queue_where_none_may_fill_the_server() {
    let table = table(|l| (l.tests, l.queue, l.tests_per_address) = (1, 5, Some(1)));
    let _promise = promised(&table, 1);
    let _waiting = waits(&table, 1);
    assert_eq!(denied(table.welcome(address(1))), Denial::AddressTests { limit: 1 });
    let _other = waits(&table, 2);
}

#[test]
fn an_hour_holds_so_many_tests_of_an_address() {
    let table = table(|l| l.tests_per_hour = Some(2));
    drop(enter(&table, 1, 1).expect("room"));
    drop(enter(&table, 2, 1).expect("room"));
    let denial = denied(enter(&table, 3, 1));
    assert!(matches!(denial, Denial::HourlyTests { limit: 2, wait_secs: 3590..=3600 }));
    assert_eq!(denied(table.welcome(address(1))).told(), denial.told());
    drop(enter(&table, 3, 2).expect("another address has its own"));
}
