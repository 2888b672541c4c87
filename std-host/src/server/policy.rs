//! From a server's configuration to what its sessions go by.

use linerate_core::protocol::extension::Offer;
use linerate_core::session::{Deadlines, Policy, RateLimit, ServerConfig as SessionConfig};
use linerate_core::time::nanos;

use crate::config::{ServerConfig, ServerLimits};

/// How each session of the server treats its client.
pub(super) fn session_config(config: &ServerConfig, limits: &ServerLimits) -> SessionConfig {
    let span_ns = nanos(limits.bitrate_span);
    let over_span = |rate| RateLimit { rate, span_ns };
    SessionConfig {
        interval: config.interval,
        extension: Some(Offer::OWN),
        deadlines: Deadlines {
            silence_ns: config.receive_timeout.map(nanos),
            ..Deadlines::default()
        },
        policy: Policy {
            bitrate: limits.bitrate.map(over_span),
            seconds: limits.duration.map(|time| u32::try_from(time.as_secs()).unwrap_or(u32::MAX)),
            bytes: limits.bytes,
            streams: Some(limits.streams),
            refuses_udp: !limits.udp,
            has_file: config.file.is_some(),
            server_bitrate: limits.server_bitrate.map(over_span),
        },
    }
}
