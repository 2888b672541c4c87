//! Peers that keep no rule: they say and do what an honest client or server does, with random changes. A
//! seed tells which.

use std::net::SocketAddr;

use linerate_embedded::TurnedAway;
use linerate_embedded::engine::protocol::cookie::Cookie;
use linerate_embedded::engine::protocol::greeting;
use linerate_embedded::engine::session::{Ending, Event};
use linerate_embedded::engine::test::{Direction, Protocol, TestSettings};
use linerate_tests::virtual_time::random::{Random, seeds};

use super::cases::{assert_goes_on, settings};
use super::loss::Loss;
use super::pair::{Pair, Peer};

/// Sockets of its own on the network of a [`Pair`].
pub(crate) trait Anarchy: Pair {
    /// Begins a connection with the server; connections are numbered from zero.
    fn open(&mut self);

    /// Waits for a connection at [`OTHER_PORT`] of the server's host, numbered with the others.
    fn listen(&mut self);

    /// How many connections were begun or awaited.
    fn opened(&self) -> usize;

    /// Sends as much of it as the connection takes.
    fn say(&mut self, connection: usize, bytes: &[u8]);

    /// Throws away what came.
    fn hear(&mut self, connection: usize);

    fn close(&mut self, connection: usize);

    fn reset(&mut self, connection: usize);

    /// Drops all of them, as a machine does that starts anew.
    fn forget(&mut self);

    fn send_datagram(&mut self, bytes: &[u8]);

    /// Lets so many milliseconds pass.
    fn pass(&mut self, client: Option<&mut Self::Client>, millis: u64);
}

/// One thing that a peer does.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Act {
    Open,
    Listen,
    Say(usize, Vec<u8>),
    Hear(usize),
    Close(usize),
    Reset(usize),
    Datagram(Vec<u8>),
    Pass(u64),
    Lose(Loss),
}

pub(crate) fn an_honest_script_does_well<P: Anarchy>() {
    for way in WAYS {
        let mut pair = P::new();
        let acts = honest(way);
        acts.iter().for_each(|act| perform(&mut pair, None, act));
        assert_eq!(pair.told().endings, [Ending::Complete], "{way:?}");
    }
    for (direction, parallel) in SERVED {
        let mut pair = P::new();
        let (mut client, acts) = served(&mut pair, direction, parallel);
        acts.iter().for_each(|act| perform(&mut pair, Some(&mut client), act));
        assert_eq!(client.ending(), Some(Ending::Complete), "{direction:?} {parallel}");
    }
}

pub(crate) fn after_any_peer_the_next_client_is_served<P: Anarchy>() {
    let mut endings = [0; 3];
    for seed in seeds(200, 5000) {
        let mut random = Random::new(seed);
        let way = random.pick(&WAYS);
        let acts = changed(honest(way), &mut random);
        let what = format!("LINERATE_SEED={seed}: {acts:?}");
        let mut pair = P::new();
        let reports = ReportOnPanic(&what);
        acts.iter().for_each(|act| perform(&mut pair, None, act));
        end(&mut pair, &mut random);
        // The longest wait for a step of the exchange or for a peer that is silent.
        pair.pass(None, 36_000);
        assert!(!pair.is_busy(), "{what}");
        endings[match pair.told().endings[..] {
            [] => 0,
            [Ending::Complete] => 1,
            _ => 2,
        }] += 1;
        pair.lose(Loss::None);
        pair.pass(None, 1000);
        assert_goes_on(&mut pair, &what);
        drop(reports);
    }
    let [none, complete, failed] = endings;
    println!("{none} had no test, {complete} completed one, {failed} did not");
}

pub(crate) fn whatever_a_server_does_its_client_comes_to_an_end<P: Anarchy>() {
    let mut endings = [0; 3];
    for seed in seeds(200, 5000) {
        let mut random = Random::new(seed);
        let (direction, parallel) = random.pick(&SERVED);
        let mut pair = P::new();
        let (mut client, acts) = served(&mut pair, direction, parallel);
        let acts = changed(acts, &mut random);
        let what = format!("LINERATE_SEED={seed}: {acts:?}");
        let reports = ReportOnPanic(&what);
        acts.iter().for_each(|act| perform(&mut pair, Some(&mut client), act));
        end(&mut pair, &mut random);
        // The longest wait for a step of the exchange, and for the connections to break.
        pair.run_until(Some(&mut client), 75, |_, client| client.is_some_and(Peer::is_closed));
        assert!(client.told().is_over(), "{what}");
        endings[match client.ending() {
            None => 0,
            Some(Ending::Complete) => 1,
            Some(_) => 2,
        }] += 1;
        drop(client);
        // The longest that a silent stranger is left at the real server.
        pair.pass(None, 21_000);
        pair.lose(Loss::None);
        pair.pass(None, 1000);
        assert_goes_on(&mut pair, &what);
        drop(reports);
    }
    let [none, complete, failed] = endings;
    println!("{none} had no test, {complete} completed one, {failed} did not");
}

/// Resets what is left of a peer, or lets its machine be gone.
fn end(pair: &mut impl Anarchy, random: &mut Random) {
    match random.below(3) {
        0 => (0..pair.opened()).for_each(|connection| pair.reset(connection)),
        1 => pair.forget(),
        _ => {
            pair.forget();
            pair.lose(Loss::All);
        }
    }
}

pub(crate) fn a_silent_connection_is_turned_away_while_another_may_be_a_stream<P: Anarchy>() {
    let mut pair = P::new();
    let (parameters, ..) = WAYS[0];
    for act in [
        Act::Open,
        Act::Pass(5),
        Act::Say(0, cookie()),
        Act::Open,
        Act::Pass(5),
        Act::Say(0, framed(parameters)),
        Act::Pass(5000),
        // Streams are awaited, and this one says not yet that it is one.
        Act::Open,
        Act::Pass(5500),
    ] {
        perform(&mut pair, None, &act);
    }
    assert_eq!(pair.told().turned_away, [TurnedAway::Silent]);
    perform(&mut pair, None, &Act::Say(2, cookie()));
    perform(&mut pair, None, &Act::Pass(20));
    assert!(pair.told().events.contains(&Event::Started));
}

pub(crate) fn a_silent_connection_holds_its_place_no_longer_than_its_patience<P: Anarchy>() {
    let mut pair = P::new();
    for act in [Act::Open, Act::Open, Act::Pass(11_500)] {
        perform(&mut pair, None, &act);
    }
    assert_eq!(pair.told().turned_away, [TurnedAway::Silent; 2]);
    assert_goes_on(&mut pair, "beside two that stay open");
}

pub(crate) fn a_refused_client_that_stays_keeps_the_next_one_out_for_a_moment_only<P: Anarchy>() {
    let mut pair = P::new();
    let begun = [Act::Open, Act::Pass(5), Act::Say(0, cookie()), Act::Pass(5)];
    begun.iter().for_each(|act| perform(&mut pair, None, act));
    for refused in 1..=3 {
        let other = [Act::Open, Act::Pass(5), Act::Say(refused, other_cookie()), Act::Pass(1500)];
        other.iter().for_each(|act| perform(&mut pair, None, act));
        assert_eq!(pair.told().turned_away, vec![TurnedAway::Busy; refused]);
    }
}

pub(crate) fn refused_clients_in_the_places_of_streams_make_room_for_the_next_test<P: Anarchy>() {
    let mut pair = P::new();
    let (parameters, ..) = WAYS[3];
    let control = |connection| {
        [
            Act::Open,
            Act::Pass(5),
            Act::Say(connection, cookie()),
            Act::Pass(5),
            Act::Say(connection, framed(parameters)),
            Act::Pass(5),
        ]
    };
    let other = |connection, cookie| [Act::Open, Act::Pass(5), Act::Say(connection, cookie)];
    let acts = control(0)
        .into_iter()
        .chain((1..=2).flat_map(|connection| other(connection, other_cookie())))
        .chain([Act::Pass(5), Act::Close(0), Act::Pass(20)])
        .chain(control(3))
        .chain((4..=5).flat_map(|connection| other(connection, cookie())))
        .chain([Act::Pass(20)]);
    acts.for_each(|act| perform(&mut pair, None, &act));
    assert_eq!(pair.told().turned_away, [TurnedAway::Busy; 2]);
    assert!(pair.told().events.contains(&Event::Started));
}

fn perform<P: Anarchy>(pair: &mut P, client: Option<&mut P::Client>, act: &Act) {
    let last = pair.opened().checked_sub(1);
    match act {
        Act::Open => pair.open(),
        Act::Listen => pair.listen(),
        Act::Datagram(bytes) => pair.send_datagram(bytes),
        Act::Pass(millis) => pair.pass(client, *millis),
        Act::Lose(loss) => pair.lose(*loss),
        Act::Say(connection, bytes) => {
            if let Some(last) = last {
                pair.say(last.min(*connection), bytes);
            }
        }
        Act::Hear(connection) => {
            if let Some(last) = last {
                pair.hear(last.min(*connection));
            }
        }
        Act::Close(connection) => {
            if let Some(last) = last {
                pair.close(last.min(*connection));
            }
        }
        Act::Reset(connection) => {
            if let Some(last) = last {
                pair.reset(last.min(*connection));
            }
        }
    }
}

/// What an honest client does: parameters, and the streams that it opens.
fn honest((parameters, streams, is_udp): (&str, usize, bool)) -> Vec<Act> {
    let mut acts = vec![Act::Open, Act::Pass(5), Act::Say(0, cookie()), Act::Pass(5)];
    acts.extend([Act::Say(0, framed(parameters)), Act::Pass(20)]);
    for stream in 1..=streams {
        if is_udp {
            acts.push(Act::Datagram(greeting::HELLO.to_vec()));
        } else {
            acts.extend([Act::Open, Act::Pass(5), Act::Say(stream, cookie())]);
        }
        acts.push(Act::Pass(5));
    }
    for _ in 0..5 {
        for stream in 1..=streams {
            if is_udp {
                acts.push(Act::Datagram(vec![0; 1000]));
            } else {
                acts.extend([Act::Say(stream, vec![0; 4000]), Act::Hear(stream)]);
            }
        }
        acts.push(Act::Pass(10));
    }
    acts.extend([Act::Say(0, vec![TEST_END]), Act::Pass(50)]);
    acts.extend([Act::Hear(0), Act::Say(0, framed(&results(streams))), Act::Pass(20)]);
    acts.extend([Act::Hear(0), Act::Say(0, vec![IPERF_DONE]), Act::Pass(20)]);
    acts.extend((0..=streams).map(Act::Close));
    acts.push(Act::Pass(50));
    acts
}

/// Starts a client of an honest server at the other port, and says what that does.
fn served<P: Anarchy>(pair: &mut P, direction: Direction, parallel: u16) -> (P::Client, Vec<Act>) {
    let settings = TestSettings { parallel, ..settings(Protocol::Tcp, direction) };
    let streams = settings.stream_count();
    (0..=streams).for_each(|_| pair.listen());
    let server = SocketAddr::new(pair.server().ip(), OTHER_PORT);
    let client = pair.try_start(server, settings).expect("it has room for it");
    let mut acts = vec![Act::Pass(20), Act::Hear(0), Act::Say(0, vec![PARAM_EXCHANGE])];
    acts.extend([Act::Pass(20), Act::Hear(0), Act::Say(0, vec![CREATE_STREAMS]), Act::Pass(20)]);
    acts.extend([Act::Say(0, vec![TEST_START, TEST_RUNNING]), Act::Pass(5)]);
    for _ in 0..11 {
        for stream in 1..=streams {
            acts.extend([Act::Say(stream, vec![0; 4000]), Act::Hear(stream)]);
        }
        acts.push(Act::Pass(100));
    }
    acts.extend([Act::Hear(0), Act::Say(0, vec![EXCHANGE_RESULTS]), Act::Pass(20)]);
    acts.extend([Act::Hear(0), Act::Say(0, framed(&results(streams)))]);
    acts.extend([Act::Say(0, vec![DISPLAY_RESULTS]), Act::Pass(20)]);
    acts.extend((0..=streams).map(Act::Close));
    acts.push(Act::Pass(50));
    (client, acts)
}

/// Leaves out, doubles and exchanges a few of the acts, and puts others between them.
fn changed(mut acts: Vec<Act>, random: &mut Random) -> Vec<Act> {
    for _ in 0..=random.below(4) {
        let at = random.below(acts.len() as u64) as usize;
        match random.below(6) {
            0 if acts.len() > 1 => drop(acts.remove(at)),
            1 => acts.insert(at, acts[at].clone()),
            2 => {
                let other = random.below(acts.len() as u64) as usize;
                acts.swap(at, other);
            }
            3 => acts.truncate(at + 1),
            _ => acts.insert(at, any_act(random)),
        }
    }
    acts
}

fn any_act(random: &mut Random) -> Act {
    let connection = random.below(3) as usize;
    match random.below(13) {
        0 => Act::Open,
        12 => Act::Listen,
        1 => Act::Close(connection),
        2 => Act::Reset(connection),
        3 => Act::Pass(random.pick(&[1, 100, 1500, 12_000])),
        4 => Act::Lose(random.pick(&[Loss::None, Loss::OneOf(3), Loss::All])),
        5 => Act::Datagram(garbage(random)),
        6 => Act::Datagram(greeting::HELLO.to_vec()),
        7 => Act::Say(connection, garbage(random)),
        8 => Act::Say(connection, cookie()),
        // A frame that announces more than it has.
        9 => Act::Say(connection, [&[0xff; 4][..], &garbage(random)].concat()),
        _ => Act::Say(connection, vec![random.pick(&CODES)]),
    }
}

fn garbage(random: &mut Random) -> Vec<u8> {
    (0..=random.below(300)).map(|_| random.next() as u8).collect()
}

fn cookie() -> Vec<u8> {
    Cookie::from_random([7; 36]).as_bytes().to_vec()
}

fn other_cookie() -> Vec<u8> {
    Cookie::from_random([9; 36]).as_bytes().to_vec()
}

fn framed(document: &str) -> Vec<u8> {
    [&(document.len() as u32).to_be_bytes(), document.as_bytes()].concat()
}

fn results(streams: usize) -> String {
    format!("{RESULTS}{}]}}", STREAM_RESULTS[..streams].join(","))
}

/// Tells the seed also where the server itself panics.
struct ReportOnPanic<'a>(&'a str);

impl Drop for ReportOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.0);
        }
    }
}

/// Parameters, how many streams they make, and whether by UDP.
const WAYS: [(&str, usize, bool); 6] = [
    (r#"{"tcp":true,"time":1,"parallel":1,"len":1000}"#, 1, false),
    (r#"{"tcp":true,"time":1,"parallel":1,"len":1000,"reverse":true}"#, 1, false),
    (r#"{"tcp":true,"time":1,"parallel":1,"len":1000,"bidirectional":true}"#, 2, false),
    (r#"{"tcp":true,"time":1,"parallel":2,"len":1000}"#, 2, false),
    (r#"{"udp":true,"time":1,"parallel":1,"len":1000,"bandwidth":1000000}"#, 1, true),
    (
        r#"{"udp":true,"time":1,"parallel":1,"len":1000,"bandwidth":1000000,"reverse":true}"#,
        1,
        true,
    ),
];

/// With the streams' own results behind it, and its end.
const RESULTS: &str = r#"{"cpu_util_total":0,"cpu_util_user":0,"cpu_util_system":0,"sender_has_retransmits":-1,"streams":["#;
/// iperf3 leaves out the number 2.
const STREAM_RESULTS: [&str; 2] = [
    r#"{"id":1,"bytes":20000,"retransmits":-1,"jitter":0,"errors":0,"packets":5}"#,
    r#"{"id":3,"bytes":20000,"retransmits":-1,"jitter":0,"errors":0,"packets":5}"#,
];

/// What clients of an honest server ask for.
const SERVED: [(Direction, u16); 4] = [
    (Direction::Forward, 1),
    (Direction::Reverse, 1),
    (Direction::Bidirectional, 1),
    (Direction::Forward, 2),
];

pub(crate) const OTHER_PORT: u16 = 5202;

const TEST_START: u8 = 1;
const TEST_RUNNING: u8 = 2;
const TEST_END: u8 = 4;
const PARAM_EXCHANGE: u8 = 9;
const CREATE_STREAMS: u8 = 10;
const EXCHANGE_RESULTS: u8 = 13;
const DISPLAY_RESULTS: u8 = 14;
const IPERF_DONE: u8 = 16;
/// All that iperf3 knows, and three that it does not.
const CODES: [u8; 16] = [1, 2, 4, 9, 10, 11, 12, 13, 14, 15, 16, 0xff, 0xfe, 0, 3, 99];
