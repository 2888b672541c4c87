//! The text report against what iperf3 printed: the recorded texts are read back into records, and
//! the report of these must be the recorded text again, line for line, trailing blanks included.

#[path = "report_support/recorded_text.rs"]
mod recorded_text;
#[path = "report_support/mod.rs"]
mod report_support;

use std::time::Duration;

use linerate::report::text::{TextOptions, TextReport, banner};
use linerate::report::{ServerOutput, version};
use linerate_core::test::End;
use report_support::{Recording, recordings, settings_by_name};

#[test]
fn recorded_texts_are_printed_again() {
    let mut compared = 0;
    for recording in recordings("txt") {
        if let Some((name, reason)) = LEFT_OUT.iter().find(|(name, _)| recording.is(name)) {
            println!("left out: {name}: {reason}");
            continue;
        }
        compared += 1;
        let expected = recording.expected();
        let (printed, _) = print_again(&recording, &expected);
        for (number, (printed, expected)) in printed.lines().zip(expected.lines()).enumerate() {
            let place = format!("{} {:?} line {}", recording.name, recording.end, number + 1);
            assert_eq!(printed, expected, "{place}");
        }
        assert_eq!(printed, expected, "{} {:?}", recording.name, recording.end);
    }
    assert_eq!(compared, 57, "recordings compared");
}

#[test]
fn a_servers_own_output_is_what_it_printed_after_the_banner() {
    let recordings = recordings("txt");
    let recording = recordings
        .iter()
        .find(|recording| recording.is("tcp-get-server-output.server"))
        .expect("it is in the repository");
    let expected = recording.expected();
    let (_, output) = print_again(recording, &expected);
    let ServerOutput::Text(output) = output else { panic!("not a text") };
    assert!(output.starts_with("Accepted connection from 127.0.0.1, port 53496\n"), "{output}");
    assert!(expected.ends_with(&output));
}

/// The recorded text's records, printed; and what a server would send of it.
fn print_again(recording: &Recording, expected: &str) -> (String, ServerOutput) {
    let options = recording.options();
    let events = recorded_text::progress(
        &expected.replace("MyTitle:  ", ""),
        recording.end,
        settings_by_name(&recording.name),
        recording.interval(),
    );
    let mut text = match recording.end {
        End::Client => String::new(),
        End::Server => banner(&options, 5201, 1),
    };
    let mut report = TextReport::new(options);
    for event in &events {
        text += &report.handle(event);
    }
    (text, report.server_output())
}

impl Recording {
    fn is(&self, file: &str) -> bool {
        file == format!(
            "{}.{}",
            self.name,
            if self.end == End::Client { "client" } else { "server" }
        )
    }

    /// The recorded text with this program's version, and without the time stamps, which are not
    /// the report's business.
    fn expected(&self) -> String {
        let stamp = match (self.name.as_str(), self.end) {
            ("tcp-title-timestamps", _) => "Mon Nov 30 21:31:56 2026 ".len(),
            ("tcp-timestamps-custom", End::Client) => "21:31:59;".len(),
            ("tcp-timestamps-custom", End::Server) => "2026-11-30_21:31:58|".len(),
            _ => 0,
        };
        let lines = self.content.replace("iperf 3.21+\n", &format!("{}\n", version(false)));
        lines.split_inclusive('\n').map(|line| &line[stamp..]).collect()
    }

    fn options(&self) -> TextOptions {
        let is_client = self.end == End::Client;
        let letter = match (self.name.strip_prefix("tcp-format-"), is_client) {
            (Some("M"), false) => "G",
            (Some("k"), false) => "K",
            (Some("t"), false) => "T",
            (letter, _) => letter.unwrap_or(""),
        };
        TextOptions {
            format: letter.parse().ok(),
            verbose: self.name.ends_with("-verbose"),
            title: (self.name == "tcp-title-timestamps" && is_client).then(|| "MyTitle".into()),
            system_info: "Linux testhost 6.1.0 #1 SMP x86_64".into(),
            ..TextOptions::default()
        }
    }

    fn interval(&self) -> Option<Duration> {
        match (self.name.as_str(), self.end) {
            ("udp-interval05", End::Client) => Some(Duration::from_millis(500)),
            ("tcp-interval0", End::Client) => None,
            _ => Some(Duration::from_secs(1)),
        }
    }
}

/// Recorded texts that are not the text of a report, or one with a fault that is not copied.
const LEFT_OUT: &[(&str, &str)] = &[
    ("error-busy.client", "empty: all of it went to the error stream"),
    ("error-param.client", "empty: all of it went to the error stream"),
    ("error-refused.client", "empty: all of it went to the error stream"),
    ("error-server-limit.client", "no data; linerate prints the same"),
    ("error-server-limit.server", "a connection is named when it is accepted, not when agreed"),
    (
        "error-server-limit-midtest.client",
        "breaks off before the first interval, which has no report",
    ),
    ("error-server-limit-midtest.server", "no summary of what was measured before the error"),
    ("interrupt-client.server", "header and interval repeated, rate over the wrong time"),
    ("interrupt-server.client", "header and interval repeated, rate over the wrong time"),
    (
        "tcp-get-server-output-textclient-jsonserver.client",
        "numbers with more digits than a double",
    ),
    ("tcp-verbose-json-warning.client", "a document with a stray line before it"),
];
