//! What this host can do before any network is blamed: a server and a client in this process, over
//! loopback, through the same code as every other test.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;

use linerate::cli::CalibrateConfig;
use linerate::client::{TestReport, run_client};
use linerate::config::{ClientConfig, ServerConfig};
use linerate::error::{Error, ExitCode};
use linerate::observe::{Cancel, Observer};
use linerate::report::json::to_document_string;
use linerate::report::{Progress, error_line, rate, version};
use linerate::server::{ObserveTests, Server};
use linerate::system_info::system_info;
use linerate_core::test::{Direction, End, Protocol, TestSettings};
use serde_json::{Value, json};

use super::{block_on, console, signals};

/// Measures every kind of work in turn and prints a table.
pub(crate) fn calibrate(config: &CalibrateConfig) -> ExitCode {
    let measured = block_on(run(config));
    match measured {
        Ok(()) => ExitCode::Success,
        Err(error) => {
            console::complain(&error_line("linerate", &error, End::Client));
            error.exit_code()
        }
    }
}

/// A kind of work: its name in the table, and the test that does it.
struct Work {
    name: &'static str,
    protocol: Protocol,
    direction: Direction,
    parallel: u16,
    datagram_bytes: Option<u32>,
}

const WORK: [Work; 5] = [
    Work::tcp("TCP, 1 stream", Direction::Forward, 1),
    Work::tcp("TCP, 1 stream, reverse", Direction::Reverse, 1),
    Work::tcp("TCP, 4 streams", Direction::Forward, 4),
    Work::udp("UDP, 1400-byte datagrams", 1400),
    Work::udp("UDP, 64-byte datagrams", 64),
];

impl Work {
    const fn tcp(name: &'static str, direction: Direction, parallel: u16) -> Self {
        Self { name, protocol: Protocol::Tcp, direction, parallel, datagram_bytes: None }
    }

    const fn udp(name: &'static str, datagram_bytes: u32) -> Self {
        let (protocol, direction) = (Protocol::Udp, Direction::Forward);
        Self { name, protocol, direction, parallel: 1, datagram_bytes: Some(datagram_bytes) }
    }

    fn client(&self, port: u16, seconds: u32) -> ClientConfig {
        let mut settings = TestSettings::new(self.protocol);
        settings.direction = self.direction;
        settings.parallel = self.parallel;
        settings.bitrate = None;
        settings.limits.seconds = Some(seconds);
        settings.counters_64bit = true;
        settings.block_bytes = self.datagram_bytes.unwrap_or(settings.block_bytes);
        let mut config = ClientConfig::new("127.0.0.1", self.protocol);
        config.port = port;
        config.settings = settings;
        config.block_from_path = false;
        config.rate_is_default = false;
        config
    }
}

async fn run(config: &CalibrateConfig) -> Result<(), Error> {
    let cancel = Cancel::new();
    signals::listen(&cancel, ExitCode::Aborted, None, None);
    let server = Server::bind(ServerConfig::loopback()).await?;
    let port = server.port();
    let serving = tokio::spawn({
        let cancel = cancel.clone();
        async move { server.run(Arc::new(Unwatched), &cancel).await }
    });
    let mut figures = Vec::new();
    if !config.json {
        console::print(&heading());
    }
    for work in &WORK {
        let mut live = Live { name: work.name, shows: !config.json && io::stderr().is_terminal() };
        let client = work.client(port, config.seconds);
        let report = run_client(&client, &mut live, &cancel).await;
        live.clear();
        let figure = Figure::of(work, &report.map_err(|failure| failure.error)?);
        if !config.json {
            console::print(&figure.row());
        }
        figures.push(figure);
    }
    if config.json {
        console::print(&to_document_string(&document(&figures, config)));
    } else {
        console::print(CONCLUSION);
    }
    cancel.cancel();
    // It ends at once: no test is left.
    let _ = serving.await;
    Ok(())
}

/// What one kind of work came to.
struct Figure {
    name: &'static str,
    protocol: Protocol,
    bits_per_second: f64,
    packets_per_second: f64,
    lost_percent: f64,
    /// Client and server together, of one core.
    cpu_percent: f64,
}

impl Figure {
    fn of(work: &Work, report: &TestReport) -> Self {
        let received: Vec<_> =
            report.end.streams.iter().filter_map(|stream| stream.received()).collect();
        let nanos = received.iter().filter_map(|side| side.duration_ns).max().unwrap_or(0);
        let seconds = (nanos as f64 / 1e9).max(f64::MIN_POSITIVE);
        let bytes: u64 = received.iter().map(|side| side.bytes).sum();
        let packets: u64 = received.iter().map(|side| side.datagrams.packets).sum();
        let lost: u64 = received.iter().filter_map(|side| side.datagrams.lost).sum();
        Self {
            name: work.name,
            protocol: work.protocol,
            bits_per_second: bytes as f64 * 8.0 / seconds,
            packets_per_second: packets.saturating_sub(lost) as f64 / seconds,
            lost_percent: 100.0 * lost as f64 / packets.max(1) as f64,
            cpu_percent: report.end.local_cpu.total_micropercent as f64 / 1e6,
        }
    }

    fn row(&self) -> String {
        let rate = format!("{}s/sec", rate(self.bits_per_second, None));
        let row = format!("{:<26}{rate:>17}{:>7.0} %", self.name, self.cpu_percent);
        match self.protocol {
            Protocol::Tcp | Protocol::Sctp => format!("{row}\n"),
            Protocol::Udp => {
                let thousands = self.packets_per_second / 1000.0;
                format!("{row}{thousands:>11.0} k/s{:>8.2} %\n", self.lost_percent)
            }
        }
    }

    fn to_json(&self) -> Value {
        let mut figure = json!({
            "name": self.name,
            "bits_per_second": self.bits_per_second,
            "cpu_percent": self.cpu_percent,
        });
        if self.protocol == Protocol::Udp {
            figure["packets_per_second"] = self.packets_per_second.into();
            figure["lost_percent"] = self.lost_percent.into();
        }
        figure
    }
}

fn heading() -> String {
    format!(
        "{}\n{}\nClient and server in this process, over loopback.\n\n\
         {:<26}{:>17}{:>9}{:>15}{:>10}\n",
        version(false),
        system_info(),
        "Work",
        "Received",
        "CPU",
        "Datagrams",
        "Lost",
    )
}

const CONCLUSION: &str = "\nCPU is that of both ends together, in percent of one core. A network \
    that is faster than\nthese figures cannot be measured from this host; below them, the limit is \
    elsewhere.\n";

fn document(figures: &[Figure], config: &CalibrateConfig) -> Value {
    json!({
        "version": version(false),
        "system_info": system_info(),
        "seconds": config.seconds,
        "work": figures.iter().map(Figure::to_json).collect::<Vec<_>>(),
    })
}

/// Shows the running interval on a line that the next one replaces.
struct Live {
    name: &'static str,
    shows: bool,
}

impl Live {
    fn show(&self, text: &str) {
        if self.shows {
            let mut terminal = io::stderr().lock();
            // Only for show; nothing depends on it.
            let _ = write!(terminal, "\r\x1b[K{text}").and_then(|()| terminal.flush());
        }
    }

    fn clear(&self) {
        self.show("");
    }
}

impl Observer for Live {
    fn handle(&mut self, progress: Progress) {
        match progress {
            Progress::Started(_) => self.show(&format!("{} …", self.name)),
            Progress::Interval(interval) => {
                let bytes: u64 = interval.streams.iter().map(|stream| stream.bytes).sum();
                let seconds = interval.span.nanos().max(1) as f64 / 1e9;
                let rate = rate(bytes as f64 * 8.0 / seconds, None);
                self.show(&format!("{} … {rate}s/sec", self.name));
            }
            _ => {}
        }
    }
}

/// The server's half is not shown: its client tells everything.
struct Unwatched;

impl ObserveTests for Unwatched {
    fn observe(&self, _test_number: u64) -> Box<dyn Observer> {
        Box::new(|_: Progress| ())
    }
}
