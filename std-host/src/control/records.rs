//! Makes the records of a report from what a session and its sockets know.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use linerate_core::report::Span;
use linerate_core::session::{Exchange, Session};
use linerate_core::stats::{BUCKETS, DetailMeter, FlowDetail};
use linerate_core::test::{End, Protocol, Role, StreamId};

use super::MAX_STREAMS;
use crate::error::{Error, words};
use crate::report::{
    Connection, Engine, Interval, ServerOutput, SocketBuffers, StreamDetail, StreamDetails,
    StreamStart, TestEnd, TestStart, Warning,
};
use crate::stream::{DataFile, DataSocket};

/// What the records need beyond the session.
#[derive(Debug)]
pub(crate) struct Records {
    pub(super) connection: Connection,
    pub(super) local_congestion: Option<String>,
    pub(super) engines: Vec<Engine>,
    pub(super) file: Option<DataFile>,
    interval: Option<Duration>,
    streams: Vec<StreamStart>,
    meters: Vec<DetailMeter<BUCKETS>>,
    buffers: SocketBuffers,
}

impl Records {
    pub(crate) fn new(connection: Connection, interval: Option<Duration>) -> Self {
        Self {
            connection,
            local_congestion: None,
            engines: Vec::new(),
            file: None,
            interval,
            streams: Vec::new(),
            meters: Vec::new(),
            buffers: SocketBuffers::default(),
        }
    }

    pub(super) fn set_streams<E: Exchange<MAX_STREAMS>>(
        &mut self,
        sockets: &[DataSocket],
        session: &Session<E, MAX_STREAMS>,
    ) {
        let end = self.connection.end;
        let start = |(index, socket): (usize, &DataSocket)| StreamStart {
            id: StreamId::from_index(index),
            role: session.settings().role(end, index),
            socket: socket.number(),
            local: socket.local(),
            remote: socket.peer(),
        };
        self.streams = sockets.iter().enumerate().map(start).collect();
        self.meters = vec![DetailMeter::default(); self.streams.len()];
        self.buffers = sockets.first().map(DataSocket::buffers).unwrap_or_default();
    }

    /// What a person should know of the data sockets.
    pub(super) fn socket_warnings<E: Exchange<MAX_STREAMS>>(
        &self,
        sockets: &[DataSocket],
        session: &Session<E, MAX_STREAMS>,
    ) -> Vec<Warning> {
        let Some(first) = sockets.first() else { return Vec::new() };
        let mut warnings = first.warnings().to_vec();
        let settings = session.settings();
        if settings.protocol == Protocol::Udp
            && self.connection.end == End::Client
            && let Some(mtu) = first.path_mtu()
        {
            let headers = if first.peer().is_ipv6() { IPV6_HEADERS } else { IPV4_HEADERS };
            let fits_bytes = mtu.saturating_sub(headers);
            if settings.block_bytes > fits_bytes {
                let datagram_bytes = settings.block_bytes;
                let may_fragment = !settings.dont_fragment || first.peer().is_ipv6();
                let warning =
                    Warning::DatagramAboveMtu { datagram_bytes, fits_bytes, may_fragment };
                warnings.push(warning);
            }
        }
        warnings
    }

    /// Why a stream broke.
    pub(super) fn reason(&self, error: &io::Error) -> String {
        let words = words(error);
        match self.connection.settings {
            Some(settings) if settings.dont_fragment && is_too_long(error) => {
                let bytes = settings.block_bytes;
                format!(
                    "{words}: -l {bytes} does not fit one packet, and --dont-fragment forbids more"
                )
            }
            _ => words,
        }
    }

    /// What an error of the file behind the streams is.
    pub(super) fn file_error(&self, error: &io::Error) -> Error {
        let what = self.file.as_ref().map(DataFile::record).map(|file| {
            let verb = if file.role == Role::Sender { "read" } else { "write" };
            format!("unable to {verb} -F file {}", file.name)
        });
        Error::system(what.unwrap_or_default(), error)
    }

    pub(super) fn start<E: Exchange<MAX_STREAMS>>(
        &self,
        session: &Session<E, MAX_STREAMS>,
    ) -> Arc<TestStart> {
        Arc::new(TestStart {
            connection: self.connection.clone(),
            settings: *session.settings(),
            interval: self.interval,
            streams: self.streams.clone(),
            buffers: self.buffers,
        })
    }

    pub(super) fn interval<E: Exchange<MAX_STREAMS>>(
        &mut self,
        details: Vec<Option<Box<FlowDetail<BUCKETS>>>>,
        session: &Session<E, MAX_STREAMS>,
        span: Span,
        omitted: bool,
        concurrent_tests: u32,
    ) -> Arc<Interval> {
        let accounts = session.accounts();
        let count = accounts.streams().len();
        let streams = (0..count).filter_map(|index| accounts.interval(index)).collect();
        let cut = |(meter, detail): (&mut DetailMeter<BUCKETS>, Option<Box<_>>)| {
            detail.map_or_else(StreamDetail::default, |detail| meter.cut(*detail))
        };
        let details = self.meters.iter_mut().zip(details).map(cut).collect();
        Arc::new(Interval { span, omitted, streams, details, concurrent_tests })
    }

    pub(super) fn end<E: Exchange<MAX_STREAMS>>(
        &self,
        session: &Session<E, MAX_STREAMS>,
        server_output: Option<ServerOutput>,
        error: Option<Error>,
    ) -> Arc<TestEnd> {
        let accounts = session.accounts();
        let count = accounts.streams().len();
        let remote = accounts.remote();
        Arc::new(TestEnd {
            streams: (0..count).filter_map(|index| accounts.summary(index)).collect(),
            details: (0..count)
                .map(|index| StreamDetails {
                    local: accounts.detail(index),
                    remote: accounts.remote_detail(index),
                })
                .collect(),
            verdicts: [Role::Sender, Role::Receiver]
                .into_iter()
                .filter_map(|role| session.verdict(role))
                .collect(),
            local_cpu: accounts.cpu(),
            remote_cpu: remote.map(|remote| remote.cpu),
            local_congestion: self.local_congestion.clone(),
            remote_congestion: remote
                .and_then(|remote| remote.congestion.as_ref())
                .map(|name| name.as_str().to_owned()),
            engines: self.engines.clone(),
            remote_batch_jitter: remote.is_some_and(|remote| remote.jitter_of_batches),
            file: self.file.as_ref().map(DataFile::record),
            concurrent_tests: match self.connection.end {
                End::Server => Some(session.concurrent_tests()),
                End::Client => remote.and_then(|remote| remote.concurrent_tests),
            },
            server_output,
            error,
        })
    }
}

fn is_too_long(error: &io::Error) -> bool {
    #[cfg(unix)]
    return error.raw_os_error() == Some(libc::EMSGSIZE);
    #[cfg(not(unix))]
    return error.raw_os_error() == Some(10040); // WSAEMSGSIZE
}

/// IP and UDP headers before the payload of a datagram, bytes, without options.
const IPV4_HEADERS: u32 = 20 + 8;
const IPV6_HEADERS: u32 = 40 + 8;
