//! The order of the exchange: what is said in a whole test, out of turn, and not at all.

use std::string::String;

use super::*;
use crate::flow::StreamPlan;
use crate::report::{Datagrams, Limit, StreamDetail, ThreadUse, Verdict};
use crate::stats::{Accounts, Remote};
use crate::units::{BitsPerSec, PacketsPerSec};

#[test]
fn every_direction_and_number_of_streams_runs_to_its_end() {
    for protocol in [Protocol::Tcp, Protocol::Udp] {
        for direction in [Direction::Forward, Direction::Reverse, Direction::Bidirectional] {
            for parallel in [1, 4] {
                for server_output in [false, true] {
                    let mut settings = settings(protocol, direction, parallel);
                    settings.server_output = server_output;
                    let mut pair = Pair::new(settings, None, None);
                    pair.run();
                    assert_eq!(pair.ending("client"), Some(Ending::Complete), "{settings:?}");
                    assert_eq!(pair.ending("server"), Some(Ending::Complete), "{settings:?}");
                    assert_eq!(pair.server.settings(), pair.client.settings());
                    assert_eq!(pair.server.text().title(), Some("a \"title\""));
                    let summary = pair.client.accounts().summary(0).expect("a stream");
                    assert_eq!(summary.local.bytes, 10_000_000);
                    assert_eq!(summary.remote.map(|side| side.bytes), Some(10_000_000));
                }
            }
        }
    }
}

#[test]
fn the_extension_is_agreed_only_if_both_want_it() {
    let own = Some(Offer::OWN);
    for (offer, answer, agreed) in [(own, own, own), (own, None, None), (None, own, None)] {
        let settings = settings(Protocol::Tcp, Direction::Forward, 1);
        let mut pair = Pair::new(settings, offer, answer);
        pair.run();
        assert_eq!(pair.client.extension(), agreed);
        assert_eq!(pair.server.extension(), agreed);
        assert_eq!(pair.ending("client"), Some(Ending::Complete));
    }
}

#[test]
fn an_echoed_start_does_not_end_a_measured_test_again() {
    let mut settings = settings(Protocol::Tcp, Direction::Forward, 1);
    settings.server_output = true;
    let mut pair = Pair::new(settings, None, None);
    pair.run_to_running();
    let Pair { server, now, .. } = &mut pair;
    let mut actions_after = |code: ControlCode| {
        server.handle_control(*now, &[code.byte()]);
        let mut actions: Vec<_> = core::iter::from_fn(|| server.poll_action()).collect();
        if actions.contains(&Action::Sample) {
            server.handle_samples(*now, &[Sample::default()], CpuTimes::default());
            actions.extend(core::iter::from_fn(|| server.poll_action()));
        }
        while server.poll_event().is_some() {}
        actions
    };
    let ends = [Action::StopStreams, Action::Sample, Action::CloseStreams, Action::CollectOutput];
    assert_eq!(actions_after(ControlCode::TestEnd), ends);
    assert_eq!(actions_after(ControlCode::TestStart), []);
}

#[test]
fn a_silent_server_is_given_up_in_time() {
    let settings = settings(Protocol::Tcp, Direction::Forward, 1);
    let mut pair = Pair::new(settings, None, None);
    let (timer, at) = pair.client.poll_timeout().expect("an answer is awaited");
    assert_eq!(timer, Timer::Quiet);
    pair.client.handle_timeout(at);
    assert_eq!(pair.client.poll_event(), Some(Event::StillUnanswered));
    let (timer, at) = pair.client.poll_timeout().expect("an answer is awaited");
    assert_eq!(timer, Timer::Step);
    pair.client.handle_timeout(at);
    let actions: Vec<_> = core::iter::from_fn(|| pair.client.poll_action()).collect();
    assert_eq!(actions, [Action::CloseStreams, Action::CloseControl]);
    let error = SessionError::Unanswered;
    assert_eq!(pair.client.poll_event(), Some(Event::Finished(Ending::Failed(error))));
    assert_eq!(pair.client.poll_control(), None, "no goodbye to a server that said nothing");
}

#[test]
fn an_interrupt_is_measured_and_told_to_the_other_end() {
    let mut pair = Pair::new(settings(Protocol::Tcp, Direction::Forward, 1), None, None);
    pair.run_to_running();
    pair.now = Instant::from_nanos(1_500_000_000);
    pair.client.handle_command(Command::Interrupt);
    pair.run();
    let interrupted = Ending::Failed(SessionError::Interrupted);
    assert_eq!(pair.ending("client"), Some(interrupted));
    let terminated = SessionError::Terminated(crate::test::End::Client);
    assert_eq!(pair.ending("server"), Some(Ending::Failed(terminated)));
    for (end, accounts) in [("client", pair.client.accounts()), ("server", pair.server.accounts())]
    {
        assert_eq!(accounts.summary(0).expect("a stream").local.bytes, 1_500_000, "{end}");
    }
}

#[test]
fn an_echo_of_a_state_while_the_output_is_collected_changes_nothing() {
    let mut settings = settings(Protocol::Tcp, Direction::Forward, 1);
    settings.server_output = true;
    let mut server = running_server(settings);
    server.handle_control(Instant::ZERO, &[4]);
    outputs(&mut server);
    answer(&mut server, SECOND, 1000);
    assert!(outputs(&mut server).0.contains(&Action::CollectOutput));
    server.handle_control(Instant::ZERO, &[1, 2]);
    assert_eq!(outputs(&mut server), (vec![], vec![]));
}

/// Before the parameters a reason may follow the refusal, or not.
#[test]
fn a_busy_server_may_say_why_or_not() {
    let frame = crate::protocol::explanation::explanation_frame(&"tests at once: 1");
    let refused = Event::Finished(Ending::Failed(SessionError::Refused(Refusal::Busy)));
    let denied = ControlCode::AccessDenied.byte();
    for (offer, bytes, then_closes, expected) in [
        (Some(Offer::OWN), &frame[..], false, Some("tests at once: 1")),
        (Some(Offer::OWN), &frame[..7], true, None),
        // A stock server closes at once.
        (Some(Offer::OWN), &[], true, None),
        (Some(Offer::OWN), &[], false, None),
        // No explanation is so long.
        (Some(Offer::OWN), &[0, 0, 1, 1], false, None),
        (None, &frame[..], false, None),
    ] {
        let settings = settings(Protocol::Tcp, Direction::Forward, 1);
        let mut pair = Pair::new(settings, offer, None);
        while let Some(Transmit::Bytes(cookie)) = pair.client.poll_control() {
            let len = cookie.len();
            pair.client.consume_control(len);
        }
        let mut told = Vec::new();
        let mut say = |client: &mut ClientSession<'static, N>, bytes: &[u8]| {
            client.handle_control(Instant::ZERO, bytes);
            told.extend(outputs(client).1);
        };
        say(&mut pair.client, &[denied]);
        bytes.iter().for_each(|byte| say(&mut pair.client, &[*byte]));
        if told.is_empty() {
            if then_closes {
                pair.client.handle_control_closed(Instant::ZERO);
            } else {
                let in_time = Instant::from_nanos(1_000_000_000);
                assert_eq!(pair.client.poll_timeout(), Some((Timer::Step, in_time)));
                pair.client.handle_timeout(in_time);
            }
            told.extend(outputs(&mut pair.client).1);
        }
        assert_eq!(told, [refused], "{offer:?} {bytes:?}");
        assert_eq!(pair.client.explanation(), expected);
        assert_eq!(pair.client.poll_control(), None, "nothing more is said");
    }
}

#[test]
fn jitter_of_batches_is_told_to_linerate_ends_only() {
    for offer in [None, Some(Offer::OWN)] {
        let settings = settings(Protocol::Udp, Direction::Forward, 1);
        let mut pair = Pair::new(settings, offer, offer);
        pair.client.handle_batch_jitter();
        pair.server.handle_batch_jitter();
        pair.run();
        let told = |remote: Option<&Remote>| remote.expect("results").jitter_of_batches;
        assert_eq!(told(pair.client.accounts().remote()), offer.is_some());
        assert_eq!(told(pair.server.accounts().remote()), offer.is_some());
    }
}

#[test]
fn datagrams_have_wide_numbers_between_linerate_ends() {
    for (offer, asked) in
        [(None, false), (None, true), (Some(Offer::OWN), false), (Some(Offer::OWN), true)]
    {
        let mut settings = settings(Protocol::Udp, Direction::Bidirectional, 1);
        settings.counters_64bit = asked;
        let mut pair = Pair::new(settings, offer, offer);
        pair.run_to_running();
        let is_wide = |plan: Option<StreamPlan>| plan.expect("it runs").counters_64bit;
        for id in [0, 1].map(StreamId::from_index) {
            assert_eq!(is_wide(pair.client.plan(id)), asked || offer.is_some());
            assert_eq!(is_wide(pair.server.plan(id)), asked || offer.is_some());
        }
    }
}

#[test]
fn details_of_streams_are_told_to_linerate_ends_only() {
    let sent = StreamDetail { refusals: Some(1), buffer_bytes: Some(2), ..StreamDetail::default() };
    let received =
        StreamDetail { socket_drops: Some(3), buffer_bytes: Some(4), ..StreamDetail::default() };
    for offer in [None, Some(Offer::OWN)] {
        let mut pair = Pair::new(settings(Protocol::Udp, Direction::Forward, 2), offer, offer);
        pair.run_to_running();
        pair.client.handle_detail(0, sent);
        pair.server.handle_detail(0, received);
        pair.run();
        assert_eq!(pair.ending("client"), Some(Ending::Complete));
        let told = |accounts: &Accounts<N>| {
            let summary = accounts.summary(0).expect("a stream");
            let Datagrams { duplicates, too_late, .. } = summary.remote.expect("results").datagrams;
            (accounts.remote_detail(0), duplicates, too_late)
        };
        let some = |detail| offer.map(|_| detail);
        assert_eq!(
            told(pair.client.accounts()),
            (some(received), offer.map(|_| 0), offer.map(|_| 0))
        );
        assert_eq!(told(pair.server.accounts()), (some(sent), None, None));
        assert_eq!(pair.client.accounts().remote_detail(1), None, "nothing is known of it");
    }
}

#[test]
fn both_linerate_ends_name_the_same_limit_of_a_direction() {
    let thread = ThreadUse { wall_ns: 1000, cpu_ns: 900, queued_ns: Some(50) };
    for (offer, named) in [(Some(Offer::OWN), Limit::SenderCpu), (None, Limit::Unclear)] {
        let mut pair = Pair::new(settings(Protocol::Tcp, Direction::Forward, 1), offer, offer);
        pair.run_to_running();
        let sent = StreamDetail { thread: Some(thread), ..StreamDetail::default() };
        let received = StreamDetail { buffer_bytes: Some(4), ..StreamDetail::default() };
        pair.client.handle_detail(0, sent);
        pair.server.handle_detail(0, received);
        pair.run();
        let limit = |verdict: Option<Verdict>| {
            verdict.map(|Verdict { limit, is_one_sided, .. }| (limit, is_one_sided))
        };
        let is_one_sided = offer.is_none();
        let by_client = limit(pair.client.verdict(Role::Sender));
        assert_eq!(by_client, Some((Limit::SenderCpu, is_one_sided)));
        assert_eq!(limit(pair.server.verdict(Role::Receiver)), Some((named, is_one_sided)));
        assert_eq!(pair.client.verdict(Role::Receiver), None, "nothing went that way");
    }
}

#[test]
fn details_of_an_unknown_stream_are_refused_as_its_results_are() {
    let results = |details: &str| {
        let body = std::format!(
            r#"{{"cpu_util_total":1,"cpu_util_user":1,"cpu_util_system":0,"sender_has_retransmits":1,
            "details":[{details}],"streams":[]}}"#
        );
        [&(body.len() as u32).to_be_bytes(), body.as_bytes()].concat()
    };
    for (offer, details, refused) in [
        (Some(Offer::OWN), r#"{"id":3,"socket_drops":3}"#, true),
        (Some(Offer::OWN), r#"{"id":1,"socket_drops":3}"#, false),
        (None, r#"{"id":3}"#, false),
    ] {
        let mut pair = Pair::new(settings(Protocol::Udp, Direction::Forward, 1), offer, offer);
        while pair.client.phase() != Phase::Ending {
            pair.step();
        }
        pair.client.handle_control(pair.now, &[ControlCode::ExchangeResults.byte()]);
        outputs(&mut pair.client);
        pair.client.handle_control(pair.now, &results(details));
        let error = SessionError::Peer(PeerError::UnknownStream { number: 3 });
        let finished = [Event::Finished(Ending::Failed(error))];
        let expected = if refused { &finished[..] } else { &[] };
        assert_eq!(outputs(&mut pair.client).1, expected, "{details}");
        let drops = pair.client.accounts().remote_detail(0).map(|detail| detail.socket_drops);
        assert_eq!(drops, (offer.is_some() && !refused).then_some(Some(3)), "{details}");
    }
}

#[test]
fn packets_per_second_become_bits_of_the_datagrams_that_the_path_carries() {
    // 1000 a second of 1448 bytes; before the path is known, of 1460.
    let mut settings = settings(Protocol::Udp, Direction::Bidirectional, 2);
    settings.bitrate = None;
    let config =
        ClientConfig { packet_rate: Some(PacketsPerSec(1000)), ..client_config(settings, None) };
    let cookie = Cookie::from_random([7; 36]);
    let mut client = ClientSession::<N>::new(Instant::ZERO, config, cookie).expect("few streams");
    assert_eq!(client.settings().bitrate, Some(BitsPerSec(11_680_000)));
    client.handle_path(Some(1448));
    assert_eq!(client.settings().bitrate, Some(BitsPerSec(11_584_000)));
    assert_eq!(client.settings().asked_bits_per_second(), Some(4 * 11_584_000));

    client.consume_control(Cookie::LEN);
    client.handle_control(Instant::ZERO, &[9]);
    let mut sent = String::new();
    while let Some(Transmit::Bytes(bytes)) = client.poll_control() {
        let len = bytes.len();
        sent += &String::from_utf8_lossy(bytes);
        client.consume_control(len);
    }
    assert!(sent.contains(r#""len":1448,"bandwidth":11584000,"#), "{sent}");
}
