//! What the text report prints where no recording of iperf3 shows it, or shows a fault: failed and
//! broken tests, loss and reordering, concurrent tests, `-V` in its rarer forms.

#[path = "report_support/records.rs"]
mod records;

use std::sync::Arc;

use linerate::error::Error;
use linerate::report::text::{TextOptions, TextReport, banner};
use linerate::report::{
    Engine, Interval, Progress, ServerOutput, SideSummary, Stamps, TestEnd, Warning,
};
use linerate_core::protocol::code::ServerError;
use linerate_core::session::{Refusal, SessionError};
use linerate_core::test::{Direction, End, Limits, Protocol, TestSettings};

#[test]
fn a_refused_test_prints_whom_it_asked_and_nothing_else() {
    let busy = Error::Session(SessionError::Refused(Refusal::Busy));
    let text = print(&[records::connected(TCP, End::Client), records::failed(busy)]);
    assert_eq!(text, "Connecting to host 192.0.2.1, port 5201\n");
}

#[test]
fn a_test_without_a_connection_prints_nothing() {
    let error = Error::Connect { server: "h".into(), message: "Connection refused".into() };
    assert_eq!(print(&[records::failed(error)]), "");
}

#[test]
fn a_broken_test_prints_what_it_measured_once() {
    let limit = ServerError { number: 27, errno: 0 };
    for (end, error, last) in [
        (End::Client, SessionError::Terminated(End::Server), "(receiver statistics not available)"),
        (End::Server, SessionError::Terminated(End::Client), "receiver"),
        (End::Server, SessionError::Denied(limit), "receiver"),
    ] {
        let text = print(&records::broken(TCP, end, Error::Session(error)));
        assert_eq!(text.matches("[ ID]").count(), 2, "intervals and summary: {text}");
        assert_eq!(text.matches("0.00-1.00").count(), 1, "{text}");
        assert!(text.trim_end().ends_with(last), "{text}");
        assert!(!text.contains("iperf Done."), "{text}");
    }
}

#[test]
fn a_server_prints_its_summary_before_it_hears_from_its_client() {
    let mut events = records::complete(TCP, End::Server);
    let ended = events.pop().expect("the last event");
    let mut report = TextReport::new(TextOptions::default());
    let text: String = events.iter().map(|event| report.handle(event)).collect();
    assert!(text.ends_with("receiver\n"), "{text}");
    assert_eq!(report.handle(&ended), "");
}

#[test]
fn total_loss_is_a_hundred_percent() {
    let text = print(&with_datagrams(|side| side.datagrams.lost = Some(side.datagrams.packets)));
    assert!(text.contains("  0.012 ms  200/200 (100%)  receiver\n"), "{text}");
}

#[test]
fn loss_that_nobody_knows_is_unknown() {
    let text = print(&with_datagrams(|side| side.datagrams.lost = None));
    assert!(text.contains("  0.012 ms  Unknown/200  receiver\n"), "{text}");
}

#[test]
fn late_datagrams_have_a_line_before_their_receivers() {
    let text = print(&with_datagrams(|side| side.datagrams.out_of_order = Some(4)));
    let expected = "[SUM]  0.0- 2.0 sec  4 datagrams received out-of-order\n\
        [  5]   0.00-2.00   sec  23.8 MBytes   100 Mbits/sec  0.012 ms  20/200 (10%)  receiver\n";
    assert!(text.ends_with(expected), "{text}");
}

#[test]
fn an_interval_is_printed_if_it_is_long_enough_or_has_bytes() {
    // A tenth of the report interval of one second is 100 ms.
    for (millis, bytes, is_printed) in
        [(99, 0, false), (100, 0, true), (1, 1, true), (0, 0, false), (0, 1, true)]
    {
        let text = print(&with_last_interval(|interval| {
            let stream = &mut interval.streams[0];
            stream.span.end_ns = stream.span.start_ns + millis * 1_000_000;
            stream.bytes = bytes;
        }));
        assert_eq!(text.contains("1.00-1."), is_printed, "{millis} ms, {bytes} bytes: {text}");
    }
}

#[test]
fn lines_of_concurrent_tests_carry_the_tests_number() {
    let events = records::complete(TCP, End::Server);
    let mut report = TextReport::new(TextOptions::default());
    let mut text = String::new();
    for event in &events {
        let is_measuring = matches!(event, Progress::Interval(_));
        report.set_numbered(is_measuring);
        text += &report.handle(event);
    }
    let numbered = text.lines().filter(|line| line.starts_with("#3 ["));
    assert_eq!(numbered.count(), 3, "a header and two intervals: {text}");
    assert!(text.starts_with("Accepted connection"), "{text}");
}

#[test]
fn numbers_of_tests_do_not_go_to_the_client() {
    let settings = TestSettings { server_output: true, ..TCP };
    let mut report = TextReport::new(TextOptions::default());
    report.set_numbered(true);
    for event in &records::complete(settings, End::Server) {
        report.handle(event);
    }
    let ServerOutput::Text(output) = report.server_output() else { panic!("not a text") };
    assert!(output.starts_with("Accepted connection") && !output.contains('#'), "{output}");
}

#[test]
fn a_server_that_reports_json_is_shown_as_such() {
    let mut events = records::complete(TCP, End::Client);
    edit_end(&mut events, |end| {
        let document = serde_json::json!({"start": {}, "intervals": []});
        end.server_output = Some(ServerOutput::Json(document));
    });
    let expected = "receiver\n\nServer JSON output:\n\
        {\n\t\"start\":\t{\n\t},\n\t\"intervals\":\t[]\n}\n\niperf Done.\n";
    let text = print(&events);
    assert!(text.ends_with(expected), "{text}");
}

#[test]
fn verbose_tells_when_a_single_interval_begins_to_count() {
    let settings = TestSettings { omit_secs: 1, ..TCP };
    let mut events = records::complete(settings, End::Client);
    for event in &mut events {
        if let Progress::Started(start) = event {
            Arc::make_mut(start).interval = None;
        }
    }
    let words = "Finished omit period, starting real test\n";
    assert!(print_with(&verbose(), &events).contains(words));
    assert!(!print(&events).contains(words));
}

#[test]
fn verbose_tells_how_the_data_went_unless_only_iperf3s_words_are_wanted() {
    let mut events = records::complete(TCP, End::Client);
    edit_end(&mut events, |end| end.engines = vec![Engine::BytesSent { is_copied: false }]);
    let words = "\nBytes sent: by the kernel, without a copy (sendfile)\n\niperf Done.\n";
    assert!(print_with(&verbose(), &events).ends_with(words));
    assert!(!print(&events).contains("Bytes sent"));
    let plain = TextOptions { plain: true, ..verbose() };
    assert!(!print_with(&plain, &events).contains("Bytes sent"));
}

#[test]
fn verbose_names_the_limit_of_the_test() {
    let only = Limits::default();
    for (limits, words) in [
        (Limits { seconds: Some(10), ..only }, "10 second test, tos 0\n"),
        (Limits { bytes: Some(1024), ..only }, "1024 bytes to send, tos 0\n"),
        (Limits { blocks: Some(7), ..only }, "7 blocks to send, tos 0\n"),
        (only, "0 second test, tos 0\n"),
    ] {
        let text = print_with(
            &verbose(),
            &[records::started(TestSettings { limits, ..TCP }, End::Client)],
        );
        let expected = format!("131072 byte blocks, omitting 0 seconds, {words}");
        assert!(text.ends_with(&expected), "{text}");
    }
}

#[test]
fn verbose_shows_the_segment_size_asked_for() {
    let settings = TestSettings { mss_bytes: Some(1000), ..TCP };
    let text = print_with(&verbose(), &[records::started(settings, End::Server)]);
    assert!(text.contains("      TCP MSS: 1000\n"), "{text}");
}

#[test]
fn a_system_without_retransmission_counts_gets_plain_columns() {
    let mut events =
        records::complete(TestSettings { direction: Direction::Bidirectional, ..TCP }, End::Client);
    for event in &mut events {
        if let Progress::Interval(interval) = event {
            Arc::make_mut(interval).streams.iter_mut().for_each(|stream| stream.tcp = None);
        }
    }
    edit_end(&mut events, |end| {
        for stream in &mut end.streams {
            stream.local.retransmits = None;
            stream.remote.as_mut().expect("told").retransmits = None;
        }
    });
    let text = print(&events);
    assert!(!text.contains("Retr"), "{text}");
    let plain = "[ ID][Role] Interval           Transfer     Bitrate\n";
    assert_eq!(text.matches(plain).count(), 2, "{text}");
}

#[test]
fn warnings_leave_the_report_alone() {
    assert_eq!(print(&[Progress::Warning(Warning::DefaultUdpRate)]), "");
}

#[test]
fn stamps_stand_before_the_title_of_every_line() {
    let options = TextOptions {
        stamps: Some(Stamps::new("at ")),
        title: Some("T".into()),
        ..TextOptions::default()
    };
    let text = print_with(&options, &records::complete(TCP, End::Client));
    assert!(text.lines().all(|line| line.starts_with("at T:  ")), "{text}");
    assert!(text.ends_with("at T:  \nat T:  iperf Done.\n"), "{text}");
}

#[test]
fn a_servers_stamps_stand_in_its_banner_and_in_the_output_for_its_client() {
    let options = TextOptions { stamps: Some(Stamps::new("at ")), ..TextOptions::default() };
    assert!(banner(&options, 5201, 1).lines().all(|line| line.starts_with("at ")));
    let settings = TestSettings { server_output: true, ..TCP };
    let mut report = TextReport::new(options);
    let printed: String = records::complete(settings, End::Server)
        .iter()
        .filter(|event| !matches!(event, Progress::Ended(_)))
        .map(|event| report.handle(event))
        .collect();
    let ServerOutput::Text(output) = report.server_output() else { panic!("a text") };
    assert_eq!(output, printed);
    assert!(output.starts_with("at Accepted connection"), "{output}");
}

fn print(events: &[Progress]) -> String {
    print_with(&TextOptions::default(), events)
}

fn print_with(options: &TextOptions, events: &[Progress]) -> String {
    let mut report = TextReport::new(options.clone());
    events.iter().map(|event| report.handle(event)).collect()
}

fn verbose() -> TextOptions {
    TextOptions { verbose: true, ..TextOptions::default() }
}

/// A UDP server's test whose summary is edited.
fn with_datagrams(edit: impl Fn(&mut SideSummary)) -> Vec<Progress> {
    let settings = TestSettings::new(Protocol::Udp);
    let mut events = records::complete(settings, End::Server);
    events.remove(events.len() - 2);
    edit_end(&mut events, |end| edit(&mut end.streams[0].local));
    events
}

/// A TCP server's test whose second interval is edited.
fn with_last_interval(edit: impl Fn(&mut Interval)) -> Vec<Progress> {
    let mut events = records::complete(TCP, End::Server);
    let last = events.iter_mut().rev().find_map(|event| match event {
        Progress::Interval(interval) => Some(Arc::make_mut(interval)),
        _ => None,
    });
    edit(last.expect("there are intervals"));
    events
}

fn edit_end(events: &mut [Progress], edit: impl Fn(&mut TestEnd)) {
    if let Some(Progress::Ended(end)) = events.last_mut() {
        edit(Arc::make_mut(end));
    }
}

const TCP: TestSettings = TestSettings::new(Protocol::Tcp);
