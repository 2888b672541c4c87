//! The document's `start`: who talks to whom, and what was agreed. A key stands in it as soon as the
//! test has come far enough to know it.

use std::time::Duration;

use linerate_core::test::{End, Protocol, TestSettings};
use serde_json::Value;

use super::{JsonOptions, Object, number, version, view};
use crate::report::{Connection, SocketBuffers, TestStart, date};

pub(super) fn object(
    options: &JsonOptions,
    connection: Option<&Connection>,
    start: Option<&TestStart>,
) -> Value {
    let mut object = Object::default();
    object.put("connected", connected(start));
    object.put("version", version(options.plain));
    object.put("system_info", options.system_info.as_str());
    let Some(connection) = connection else {
        return object.into();
    };
    // A TCP server has its sockets before it looks at the clock, everybody else after.
    let buffers_first = connection.end == End::Server && start.is_some_and(is_tcp);
    let buffers = start.map(|start| start.buffers);
    if buffers_first {
        put_buffers(&mut object, buffers);
    }
    put_connection(&mut object, connection);
    if let Some(settings) = start.map(|start| &start.settings).or(connection.settings.as_ref()) {
        put_settings(&mut object, connection, settings);
    }
    if !buffers_first {
        put_buffers(&mut object, buffers);
    }
    if let Some(start) = start {
        object.put("test_start", test_start(start));
    }
    object.into()
}

fn is_tcp(start: &TestStart) -> bool {
    !view::is_udp(&start.settings)
}

fn connected(start: Option<&TestStart>) -> Vec<Value> {
    let streams = start.map_or(&[][..], |start| &start.streams);
    let describe = |stream: &crate::report::StreamStart| {
        let mut object = Object::default();
        object.put("socket", stream.socket);
        object.put("local_host", view::host(&stream.local));
        object.put("local_port", stream.local.port());
        object.put("remote_host", view::host(&stream.remote));
        object.put("remote_port", stream.remote.port());
        object.into()
    };
    streams.iter().map(describe).collect()
}

fn put_buffers(object: &mut Object, buffers: Option<SocketBuffers>) {
    if let Some(SocketBuffers { requested, send, receive }) = buffers {
        object.put("sock_bufsize", requested);
        object.put("sndbuf_actual", send);
        object.put("rcvbuf_actual", receive);
    }
}

fn put_connection(object: &mut Object, connection: &Connection) {
    let since_epoch = date::since_epoch(connection.time);
    let mut timestamp = Object::default();
    timestamp.put("time", date::http_date(connection.time));
    timestamp.put("timesecs", since_epoch.as_secs());
    timestamp.put("timemillisecs", since_epoch.as_millis() as u64);
    object.put("timestamp", timestamp);

    let mut peer = Object::default();
    peer.put("host", view::peer_host(&connection.peer_host));
    peer.put("port", connection.peer_port);
    let key = match connection.end {
        End::Client => "connecting_to",
        End::Server => "accepted_connection",
    };
    object.put(key, peer);
    object.put("cookie", connection.cookie.as_str());
}

fn put_settings(object: &mut Object, connection: &Connection, settings: &TestSettings) {
    if settings.protocol == Protocol::Tcp {
        match settings.mss_bytes {
            Some(mss_bytes) => object.put("tcp_mss", mss_bytes),
            None => object.put("tcp_mss_default", view::default_mss(connection)),
        }
    }
    object.put("target_bitrate", settings.bitrate.map_or(0, |rate| rate.0));
    object.put("fq_rate", settings.fq_rate.map_or(0, |rate| rate.0));
}

fn test_start(start: &TestStart) -> Value {
    let settings = &start.settings;
    let flag = |is_set: bool| i32::from(is_set);
    let mut object = Object::default();
    object.put("protocol", settings.protocol.name());
    object.put("num_streams", settings.parallel);
    object.put("blksize", settings.block_bytes);
    object.put("omit", settings.omit_secs);
    object.put("duration", settings.limits.seconds.unwrap_or(0));
    object.put("bytes", settings.limits.bytes.unwrap_or(0));
    object.put("blocks", settings.limits.blocks.unwrap_or(0));
    object.put("reverse", flag(view::is_reverse(settings)));
    object.put("tos", settings.tos);
    object.put("target_bitrate", settings.bitrate.map_or(0, |rate| rate.0));
    object.put("bidir", flag(view::is_bidirectional(settings)));
    object.put("fqrate", settings.fq_rate.map_or(0, |rate| rate.0));
    object.put("interval", number(start.interval.as_ref().map_or(0.0, Duration::as_secs_f64)));
    object.put("gso", flag(settings.offload.gso));
    object.put("gro", flag(settings.offload.gro));
    object.into()
}
