//! Tests run by a program: every call returns, with a value that says how it went.

use std::sync::Arc;
use std::time::Duration;

use linerate::client::run_client;
use linerate::config::{ClientConfig, ServerConfig};
use linerate::error::Error;
use linerate::observe::{Cancel, Observer};
use linerate::report::Progress;
use linerate::server::{ObserveTests, Server};
use linerate_core::session::SessionError;
use linerate_core::test::{Direction, End, Protocol};

struct Quiet;

impl ObserveTests for Quiet {
    fn observe(&self, _test_number: u64) -> Box<dyn Observer> {
        Box::new(|_: Progress| ())
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_an_error_value() {
    let server = Server::bind(ServerConfig::loopback()).await.expect("a port");
    let mut config = ClientConfig::new("127.0.0.1", Protocol::Tcp);
    config.port = server.port();
    drop(server);
    let failure = run_client(&config, &mut |_: Progress| (), &Cancel::new()).await;
    let failure = failure.expect_err("nobody listens");
    assert!(matches!(failure.error, Error::Connect { .. }), "{failure}");
    assert!(failure.report.start.is_none() && failure.report.intervals.is_empty());
}

/// The numbers of streams at which programs around iperf3 were seen to hang.
#[tokio::test(flavor = "multi_thread")]
async fn any_number_of_streams_returns() {
    let (port, cancel) = serve().await;
    for streams in [1, 10, 22, 23, 64] {
        let mut config = ClientConfig::new("127.0.0.1", Protocol::Tcp);
        config.port = port;
        config.settings.parallel = streams;
        config.settings.direction = Direction::Bidirectional;
        config.settings.limits.seconds = None;
        config.settings.limits.bytes = Some(1 << 20);
        let mut unwatched = |_: Progress| ();
        let test = run_client(&config, &mut unwatched, &cancel);
        let report = tokio::time::timeout(TIME_LIMIT, test).await.expect("it returns");
        let report = report.expect("it runs to its end");
        assert_eq!(report.end.streams.len(), 2 * usize::from(streams));
    }
    cancel.cancel();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_ends_a_test_early_ends_the_call() {
    let (port, server_cancel) = serve().await;
    let mut config = ClientConfig::new("127.0.0.1", Protocol::Udp);
    config.port = port;
    config.interval = Some(Duration::from_millis(100));
    let mut intervals = 0;
    let mut observer = |progress: Progress| {
        if matches!(progress, Progress::Interval(_)) {
            intervals += 1;
            if intervals == 2 {
                server_cancel.cancel();
            }
        }
    };
    let cancel = Cancel::new();
    let test = run_client(&config, &mut observer, &cancel);
    let failure = tokio::time::timeout(TIME_LIMIT, test).await.expect("it returns");
    let failure = failure.expect_err("the test had eight seconds to go");
    let terminated = Error::Session(SessionError::Terminated(End::Server));
    assert_eq!(failure.error.to_string(), terminated.to_string());
    assert!(failure.report.intervals.len() >= 2, "what was measured is there");
}

/// A server in this program: its port, and what stops it.
async fn serve() -> (u16, Cancel) {
    let server = Server::bind(ServerConfig::loopback()).await.expect("a port");
    let port = server.port();
    let cancel = Cancel::new();
    let stop = cancel.clone();
    tokio::spawn(async move { server.run(Arc::new(Quiet), &stop).await });
    (port, cancel)
}

const TIME_LIMIT: Duration = Duration::from_secs(30);
