//! From the options as typed to the configuration that runs: which options go together, what they
//! mean for each other, which defaults fill the gaps. The checks come in iperf3's order.

use std::net::Ipv6Addr;
use std::time::Duration;

use clap::parser::ValueSource;
use linerate_core::protocol::code::error_number;
use linerate_core::test::{
    DEFAULT_SECONDS, Direction, Limits, MAX_TCP_BLOCK, MAX_UDP_BLOCK, MIN_UDP_BLOCK, Offload,
    Protocol,
};

use super::args::{Args, CLIENT, ClientArgs, CommonArgs, SERVER, ServerArgs};
use super::limits::{LimitChoices, Service};
use super::problem::{Problem, iperf3_text, number, option_name, spelling};
use super::{Command, JsonStreamKind, LimitsConfig, OutputConfig, ProcessConfig};
use crate::config::{
    ClientConfig, Credentials, DEFAULT_ANSWER_TIMEOUT, DEFAULT_INTERVAL, DEFAULT_PORT,
    DEFAULT_TIME_SKEW, Family, KeepAlive, LoginConfig, Padding, SctpOptions, ServerConfig,
    ServerLimits,
};

/// Checks the options against each other and fills in the defaults.
pub(super) fn resolve(
    mut args: Args,
    command: &clap::Command,
    matches: &clap::ArgMatches,
    program: &str,
) -> Result<Command, Problem> {
    let typed = Typed { command, matches };
    typed.at_most_one(&["server", "client"], number::BOTH_ROLES)?;
    typed.at_most_one(&["reverse", "bidir"], number::REVERSE_BIDIR)?;
    let host = args.common.client.take();
    if host.is_none() && !args.common.server {
        return Err(Problem::new("", iperf3_text(number::NO_ROLE)));
    }
    let output = output(&args, program);
    let process = ProcessConfig {
        daemon: args.server.daemon,
        pidfile: args.common.pidfile.clone(),
        limits: limits_of_server(&args.server, &typed)?,
    };
    match host {
        Some(host) => {
            typed.none_under(SERVER, number::SERVER_ONLY)?;
            Ok(Command::Client(client(&host, args, &typed)?, output, process))
        }
        None => {
            typed.none_under(CLIENT, number::CLIENT_ONLY)?;
            let limits = process.limits.of_options();
            Ok(Command::Server(server(args, limits, &typed)?, output, process))
        }
    }
}

fn client(host: &str, args: Args, typed: &Typed<'_>) -> Result<ClientConfig, Problem> {
    let Args { common, client, .. } = args;
    let protocol = protocol(&common, &client, typed)?;
    let credentials = credentials(&common, &client, typed)?;
    let direction = match (client.reverse, client.bidir) {
        (true, _) => Direction::Reverse,
        (_, true) => Direction::Bidirectional,
        _ => Direction::Forward,
    };
    if common.rcv_timeout.is_some() && direction == Direction::Forward {
        return Err(typed.problem(&["rcv_timeout"], number::RECEIVE_TIMEOUT_OF_SENDER));
    }
    if common.file.is_some() && protocol == Protocol::Udp {
        return Err(typed.problem(&["udp", "file"], number::UDP_FILE));
    }
    let length = block_bytes(&client, protocol, typed)?;
    let limits = limits(&client, typed)?;
    let (host, host_device) = split_device("client", host, typed)?;
    let (bind, bind_device) = bind(&common, typed)?;

    let mut config = ClientConfig::new(host, protocol);
    config.port = common.port.unwrap_or(DEFAULT_PORT);
    config.family = family(&common);
    config.interval = interval(&common);
    config.bind = bind;
    config.bind_device = bind_device.or(host_device);
    config.client_port = common.cport;
    config.connect_timeout = client.connect_timeout;
    config.answer_timeout = Some(client.answer_timeout.unwrap_or(DEFAULT_ANSWER_TIMEOUT))
        .filter(|timeout| !timeout.is_zero());
    config.receive_timeout = common.rcv_timeout;
    config.send_timeout = common.snd_timeout.filter(|timeout| !timeout.is_zero());
    config.control_keep_alive = common.cntl_ka.unwrap_or(KeepAlive::PROMPT);
    config.affinity = common.affinity.map(|affinity| affinity.own);
    config.credentials = credentials;
    config.sctp = SctpOptions { bind: common.xbind, streams: client.nstreams };
    config.end_is_default =
        client.time.is_none() && limits.bytes.is_none() && limits.blocks.is_none();
    config.block_from_path = protocol == Protocol::Udp && length.is_none();
    config.title = client.title;
    config.extra_data = client.extra_data;
    config.congestion = client.congestion;

    let settings = &mut config.settings;
    settings.direction = direction;
    settings.parallel = client.parallel.unwrap_or(settings.parallel);
    settings.omit_secs = client.omit.unwrap_or(settings.omit_secs);
    settings.limits = limits;
    settings.block_bytes = length.unwrap_or(settings.block_bytes);
    if let Some(rate) = client.bitrate {
        config.rate_is_default = false;
        config.packet_rate = rate.packets;
        settings.bitrate = rate.bitrate;
        settings.burst = rate.burst;
    }
    settings.fq_rate = client.fq_rate.filter(|rate| rate.0 > 0);
    settings.pacing_timer_us = client.pacing_timer.unwrap_or(settings.pacing_timer_us);
    settings.window_bytes = client.window.filter(|bytes| *bytes > 0);
    settings.mss_bytes = client.set_mss.filter(|bytes| *bytes > 0);
    settings.no_delay = client.no_delay;
    settings.tos = client.tos.or(client.dscp).unwrap_or(settings.tos);
    settings.flow_label = client.flowlabel;
    settings.counters_64bit = client.udp_counters_64bit;
    settings.repeating_payload = client.repeating_payload;
    settings.zero_copy = client.zerocopy;
    settings.skip_rx_copy = client.skip_rx_copy;
    settings.dont_fragment = client.dont_fragment;
    settings.server_output = client.get_server_output;
    settings.mptcp = common.mptcp;
    settings.server_affinity = common.affinity.and_then(|affinity| affinity.server);
    settings.offload = Offload { gso: client.gsro, gro: client.gsro };
    config.file = common.file;
    Ok(config)
}

/// The limits that options set, and the file with the others.
fn limits_of_server(server: &ServerArgs, typed: &Typed<'_>) -> Result<LimitsConfig, Problem> {
    let options = LimitChoices {
        bitrate: server.server_bitrate_limit,
        duration: server.server_max_duration,
        bytes: server.max_test_bytes,
        streams: server.max_streams,
        server_bitrate: server.max_bitrate,
        exclusive: server.exclusive.then_some(true),
        tests: server.max_tests,
        tests_per_address: server.max_tests_per_address,
        queue: server.queue,
        ..LimitChoices::default()
    };
    let has_login = server.rsa_private_key_path.is_some() && server.authorized_users_path.is_some();
    let service = Service { one_off: server.one_off, has_login };
    match options.conflict(service) {
        Some(conflict) => {
            Err(typed.problem_in_words(conflict.options(), "only one of them can be"))
        }
        None => Ok(LimitsConfig::new(options, server.policy.clone(), service)),
    }
}

fn server(args: Args, limits: ServerLimits, typed: &Typed<'_>) -> Result<ServerConfig, Problem> {
    let Args { common, server, .. } = args;
    if common.affinity.is_some_and(|affinity| affinity.server.is_some()) {
        return Err(typed.problem(&["affinity"], number::CLIENT_ONLY));
    }
    let login = login(&common, &server, typed)?;
    let (bind, bind_device) = bind(&common, typed)?;
    Ok(ServerConfig {
        port: common.port.unwrap_or(DEFAULT_PORT),
        family: family(&common),
        interval: interval(&common),
        one_off: server.one_off,
        bind,
        bind_device,
        idle_timeout: server.idle_timeout,
        receive_timeout: common.rcv_timeout,
        send_timeout: common.snd_timeout.filter(|timeout| !timeout.is_zero()),
        control_keep_alive: common.cntl_ka.unwrap_or(KeepAlive::PROMPT),
        affinity: common.affinity.map(|affinity| affinity.own),
        file: common.file,
        limits,
        login,
        sctp_bind: common.xbind,
        udp_anywhere: server.udp_anywhere,
    })
}

fn output(args: &Args, program: &str) -> OutputConfig {
    let Args { common, client, server } = args;
    let json_stream = match (common.json_stream, common.json_stream_full_output) {
        (false, _) => None,
        (true, false) => Some(JsonStreamKind::Lines),
        (true, true) => Some(JsonStreamKind::LinesAndDocument),
    };
    OutputConfig {
        program: program.into(),
        format: common.format,
        json: common.json,
        json_stream,
        logfile: common.logfile.clone(),
        timestamps: common.timestamps.clone(),
        test_log: server.test_log,
        debug: common.debug.filter(|level| *level > 0),
        verbose: common.verbose,
        explain: common.explain && program != super::IPERF3_PROGRAM,
        title: client.title.clone(),
        has_obsolete: client.no_fq_socket_pacing,
    }
}

/// The transport that the options name, or the words that it cannot be all of them.
fn protocol(
    common: &CommonArgs,
    client: &ClientArgs,
    typed: &Typed<'_>,
) -> Result<Protocol, Problem> {
    for others in [&["udp", "sctp"][..], &["udp", "mptcp"], &["sctp", "mptcp"]] {
        if others.iter().all(|id| typed.is_given(id)) {
            return Err(typed.problem_in_words(others, "only one of -u, --sctp and -m can be"));
        }
    }
    if !client.sctp && (client.nstreams.is_some() || !common.xbind.is_empty()) {
        let id = if client.nstreams.is_some() { "nstreams" } else { "xbind" };
        return Err(typed.problem_in_words(&[id], "is for --sctp only"));
    }
    match (client.udp, client.sctp) {
        (_, true) => Ok(Protocol::Sctp),
        (true, _) => Ok(Protocol::Udp),
        _ => Ok(Protocol::Tcp),
    }
}

/// Half a login is none. The password is not an option: the command asks for it.
fn credentials(
    common: &CommonArgs,
    client: &ClientArgs,
    typed: &Typed<'_>,
) -> Result<Option<Credentials>, Problem> {
    match (&client.username, &client.rsa_public_key_path) {
        (None, None) => Ok(None),
        (Some(username), Some(public_key)) => Ok(Some(Credentials {
            username: username.clone(),
            password: String::new(),
            public_key: public_key.clone(),
            padding: padding(common),
        })),
        (Some(_), None) => Err(typed.problem(&["username"], number::CLIENT_LOGIN)),
        (None, Some(_)) => Err(typed.problem(&["rsa_public_key_path"], number::CLIENT_LOGIN)),
    }
}

/// As for clients.
fn login(
    common: &CommonArgs,
    server: &ServerArgs,
    typed: &Typed<'_>,
) -> Result<Option<LoginConfig>, Problem> {
    match (&server.rsa_private_key_path, &server.authorized_users_path) {
        (None, None) => Ok(None),
        (Some(private_key), Some(users)) => Ok(Some(LoginConfig {
            private_key: private_key.clone(),
            users: users.clone(),
            time_skew: server.time_skew_threshold.unwrap_or(DEFAULT_TIME_SKEW),
            padding: padding(common),
        })),
        (Some(_), None) => Err(typed.problem(&["rsa_private_key_path"], number::SERVER_LOGIN)),
        (None, Some(_)) => Err(typed.problem(&["authorized_users_path"], number::SERVER_LOGIN)),
    }
}

const fn padding(common: &CommonArgs) -> Padding {
    if common.use_pkcs1_padding { Padding::Pkcs1 } else { Padding::Oaep }
}

/// The address and the device to use here.
fn bind(
    common: &CommonArgs,
    typed: &Typed<'_>,
) -> Result<(Option<String>, Option<String>), Problem> {
    let (host, device) = match &common.bind {
        Some(host) => {
            let (host, device) = split_device("bind", host, typed)?;
            (Some(host), device)
        }
        None => (None, None),
    };
    Ok((host, common.bind_dev.clone().or(device)))
}

/// `HOST%DEVICE` names a device, too, unless the device is the zone of an IPv6 link-local address.
fn split_device(
    id: &str,
    host: &str,
    typed: &Typed<'_>,
) -> Result<(String, Option<String>), Problem> {
    let Some((name, device)) = host.split_once('%') else { return Ok((host.into(), None)) };
    if name.is_empty() || device.is_empty() {
        return Err(typed.problem_in_words(&[id], "must be HOST or HOST%DEVICE"));
    }
    let address = name.strip_prefix('[').unwrap_or(name).parse::<Ipv6Addr>();
    if address.is_ok_and(|address| address.is_unicast_link_local() || address.is_multicast()) {
        return Ok((host.into(), None));
    }
    Ok((name.into(), Some(device.into())))
}

/// The block size that was asked for; none stands for the default.
fn block_bytes(
    client: &ClientArgs,
    protocol: Protocol,
    typed: &Typed<'_>,
) -> Result<Option<u32>, Problem> {
    let (smallest, largest, error) = match protocol {
        Protocol::Udp => (MIN_UDP_BLOCK, MAX_UDP_BLOCK, error_number::UDP_BLOCK_SIZE),
        Protocol::Tcp | Protocol::Sctp => (1, MAX_TCP_BLOCK, error_number::BLOCK_SIZE),
    };
    match client.length {
        None | Some(0) => Ok(None),
        Some(bytes) => match u32::try_from(bytes) {
            Ok(bytes) if (smallest..=largest).contains(&bytes) => Ok(Some(bytes)),
            _ => Err(typed.problem(&["length"], error)),
        },
    }
}

/// Zero bytes or blocks are no condition, as in iperf3; zero seconds are one: run until interrupted.
fn limits(args: &ClientArgs, typed: &Typed<'_>) -> Result<Limits, Problem> {
    let bytes = args.bytes.filter(|bytes| *bytes > 0);
    let blocks = args.blockcount.filter(|blocks| *blocks > 0);
    let conditions = [
        ("time", args.time.is_some()),
        ("bytes", bytes.is_some()),
        ("blockcount", blocks.is_some()),
    ];
    let given: Vec<_> =
        conditions.into_iter().filter_map(|(id, given)| given.then_some(id)).collect();
    let seconds = match given[..] {
        [] => Some(DEFAULT_SECONDS),
        [_] => args.time.filter(|seconds| *seconds > 0),
        _ => return Err(typed.problem(&given, number::END_CONDITIONS)),
    };
    Ok(Limits { seconds, bytes, blocks })
}

fn family(args: &CommonArgs) -> Option<Family> {
    match (args.version4, args.version6) {
        (true, _) => Some(Family::V4),
        (_, true) => Some(Family::V6),
        _ => None,
    }
}

fn interval(args: &CommonArgs) -> Option<Duration> {
    Some(args.interval.unwrap_or(DEFAULT_INTERVAL)).filter(|interval| !interval.is_zero())
}

/// What was typed, for messages that name it.
struct Typed<'a> {
    command: &'a clap::Command,
    matches: &'a clap::ArgMatches,
}

impl Typed<'_> {
    fn is_given(&self, id: &str) -> bool {
        self.matches.value_source(id) == Some(ValueSource::CommandLine)
    }

    fn at_most_one(&self, ids: &[&str], number: i32) -> Result<(), Problem> {
        let given: Vec<_> = ids.iter().copied().filter(|id| self.is_given(id)).collect();
        if given.len() > 1 { Err(self.problem(&given, number)) } else { Ok(()) }
    }

    /// No option of the other role.
    fn none_under(&self, heading: &str, number: i32) -> Result<(), Problem> {
        let mut args = self.command.get_arguments();
        let stranger = args.find(|arg| {
            arg.get_help_heading() == Some(heading) && self.is_given(arg.get_id().as_str())
        });
        stranger.map_or(Ok(()), |arg| Err(self.problem(&[arg.get_id().as_str()], number)))
    }

    /// iperf3's words about these options.
    fn problem(&self, ids: &[&str], number: i32) -> Problem {
        self.problem_in_words(ids, &iperf3_text(number))
    }

    /// Words of our own about these options.
    fn problem_in_words(&self, ids: &[&str], words: &str) -> Problem {
        let seen: Vec<_> = ids.iter().map(|id| self.shown(id)).collect();
        Problem::new(seen.join(" "), words)
    }

    /// An option as typed, with its value.
    fn shown(&self, id: &str) -> String {
        let mut args = self.command.get_arguments();
        let arg = args.find(|arg| arg.get_id() == id).expect("an option of the table");
        let value = self.matches.get_raw(id).and_then(Iterator::last);
        match value.filter(|_| arg.get_action().takes_values()) {
            Some(value) => spelling(&option_name(arg), &value.to_string_lossy()),
            None => option_name(arg),
        }
    }
}
