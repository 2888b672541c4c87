//! What is printed before the first interval: who talks to whom and what is about to be measured.

use linerate_core::test::{End, Protocol, TestSettings};

use super::{TextOptions, view};
use crate::report::{Connection, StreamStart, TestStart, date, version};

/// What a server prints each time it begins to wait for a test.
pub fn banner(options: &TextOptions, port: u16, test_number: u64) -> String {
    let rule = "-".repeat(59);
    let program = program(options);
    options.stamped(&format!(
        "{program}{rule}\nServer listening on {port} (test #{test_number})\n{rule}\n"
    ))
}

/// The control connection stands.
pub(super) fn connected(options: &TextOptions, connection: &Connection) -> String {
    let mut text = String::new();
    if options.verbose {
        if connection.end == End::Client {
            text += &program(options);
            text += &client_sizes(connection);
        }
        text += &format!("Time: {}\n", date::http_date(connection.time));
    }
    let (host, port) = (view::peer_host(&connection.peer_host), connection.peer_port);
    text += &match connection.end {
        End::Client => format!("Connecting to host {host}, port {port}\n"),
        End::Server => format!("Accepted connection from {host}, port {port}\n"),
    };
    text
}

/// The settings are agreed and the streams are there.
pub(super) fn started(options: &TextOptions, start: &TestStart) -> String {
    let connection = &start.connection;
    let mut text = String::new();
    if view::is_reverse(&start.settings) && connection.end == End::Client {
        text += &format!("Reverse mode, remote host {} is sending\n", connection.peer_host);
    }
    if options.verbose {
        text += &agreed(connection, &start.settings);
    }
    for stream in &start.streams {
        text += &stream_line(stream);
    }
    if options.verbose {
        text += &starting_test(&start.settings);
    }
    text
}

fn program(options: &TextOptions) -> String {
    if options.verbose {
        format!("{}\n{}\n", version(options.plain), options.system_info)
    } else {
        String::new()
    }
}

fn client_sizes(connection: &Connection) -> String {
    let mut text = format!("Control connection MSS {}\n", connection.control_mss.unwrap_or(0));
    if let Some(block_bytes) = connection.path_block_bytes {
        text += &format!("Setting UDP block size to {block_bytes}\n");
    }
    text
}

fn agreed(connection: &Connection, settings: &TestSettings) -> String {
    let mut text = format!("      Cookie: {}\n", connection.cookie);
    if settings.protocol == Protocol::Tcp {
        text += &match settings.mss_bytes {
            Some(mss_bytes) => format!("      TCP MSS: {mss_bytes}\n"),
            None => format!("      TCP MSS: {} (default)\n", view::default_mss(connection)),
        };
    }
    if let Some(bitrate) = settings.bitrate {
        text += &format!("      Target Bitrate: {}\n", bitrate.0);
    }
    text
}

fn stream_line(stream: &StreamStart) -> String {
    format!(
        "[{:>3}] local {} port {} connected to {} port {}\n",
        stream.socket,
        view::host(&stream.local),
        stream.local.port(),
        view::host(&stream.remote),
        stream.remote.port(),
    )
}

fn starting_test(settings: &TestSettings) -> String {
    let protocol = settings.protocol.name();
    let limits = &settings.limits;
    let until = match (limits.bytes, limits.blocks) {
        (Some(bytes), _) => format!("{bytes} bytes to send"),
        (None, Some(blocks)) => format!("{blocks} blocks to send"),
        (None, None) => format!("{} second test", limits.seconds.unwrap_or(0)),
    };
    let TestSettings { parallel, block_bytes, omit_secs, tos, .. } = settings;
    format!(
        "Starting Test: protocol: {protocol}, {parallel} streams, {block_bytes} byte blocks, \
         omitting {omit_secs} seconds, {until}, tos {tos}\n"
    )
}
