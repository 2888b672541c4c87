//! The contract, checked for this system's file and for the fallback.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};

use super::{Interest, KeepAlive};

/// What a datagram looks like to who gets it: whence it came, and its class.
#[cfg(target_os = "linux")]
#[test]
fn a_route_has_a_source_and_a_class_in_either_family() {
    use std::net::Ipv6Addr;

    use super::{Route, send_along, unix};

    let both = Socket::new(Domain::IPV6, Type::DGRAM, None).unwrap();
    both.set_only_v6(false).unwrap();
    both.bind(&SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)).into()).unwrap();
    let only_v4 = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
    only_v4.bind(&SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)).into()).unwrap();
    let second = Ipv4Addr::new(127, 0, 0, 77);
    let at = |socket: &Socket| socket.local_addr().unwrap().as_socket().unwrap();
    let near = udp();
    near.set_recv_tos_v4(true).unwrap();
    let mapped = SocketAddr::from((Ipv4Addr::LOCALHOST.to_ipv6_mapped(), at(&near).port()));
    let near_v6 = Socket::new(Domain::IPV6, Type::DGRAM, None).unwrap();
    near_v6.bind(&SocketAddr::from((Ipv6Addr::LOCALHOST, 0)).into()).unwrap();
    near_v6.set_recv_tclass_v6(true).unwrap();
    let from_v6 = SocketAddr::from((Ipv6Addr::LOCALHOST, 0));
    for (socket, near, to, from) in [
        (&only_v4, &near, at(&near), SocketAddr::from((second, 0))),
        (&both, &near, mapped, SocketAddr::from((second.to_ipv6_mapped(), 0))),
        (&both, &near_v6, at(&near_v6), from_v6),
    ] {
        send_along(socket, &Route { to, from: Some(from), class: 0x48 }, b"x").unwrap();
        let class = |_, kind, data: &[u8]| {
            let is_class = matches!(kind, libc::IP_TOS | libc::IPV6_TCLASS);
            is_class.then(|| SocketAddr::from((Ipv4Addr::UNSPECIFIED, data[0].into())))
        };
        let arrived = unix::recv_with_control(near, &mut [0; 8], class).unwrap();
        assert_eq!(arrived.from.ip().to_canonical(), from.ip().to_canonical(), "{to}");
        assert_eq!(arrived.to.unwrap().port(), 0x48, "{to}");
    }
}

/// A wait that does not end would hang; one that ends on its own would take this long.
const LONG: Duration = Duration::from_secs(30);

fn udp() -> Socket {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).unwrap();
    socket.set_nonblocking(true).unwrap();
    socket
}

macro_rules! contract {
    ($name:ident, $system:ident) => {
        mod $name {
            use super::*;
            use crate::sys::$system::*;

            #[test]
            fn a_wake_ends_the_current_wait_or_the_next_one() {
                let begin = Instant::now();
                let wake = Arc::new(Wake::new().unwrap());
                wake.wake();
                wake.wake();
                wait(&udp(), Interest::Nothing, &wake, Some(LONG)).unwrap();
                let other = wake.clone();
                let thread = std::thread::spawn(move || other.wake());
                wait(&udp(), Interest::Nothing, &wake, Some(LONG)).unwrap();
                thread.join().unwrap();
                assert!(begin.elapsed() < LONG);
            }

            #[test]
            fn a_wait_ends_in_time_and_a_used_wake_is_used_up() {
                let wake = Wake::new().unwrap();
                wake.wake();
                wait(&udp(), Interest::Nothing, &wake, None).unwrap();
                let begin = Instant::now();
                wait(&udp(), Interest::Nothing, &wake, Some(Duration::from_millis(5))).unwrap();
                let elapsed = begin.elapsed();
                assert!(elapsed >= Duration::from_millis(4) && elapsed < LONG, "{elapsed:?}");
            }

            #[test]
            fn data_and_room_end_a_wait() {
                let wake = Wake::new().unwrap();
                let socket = udp();
                let begin = Instant::now();
                wait(&socket, Interest::Write, &wake, Some(LONG)).unwrap();
                socket.send_to(b"x", &socket.local_addr().unwrap()).unwrap();
                wait(&socket, Interest::Read, &wake, Some(LONG)).unwrap();
                assert!(begin.elapsed() < LONG);
            }

            #[test]
            fn datagrams_come_with_their_addresses() {
                let (to, from) = (udp(), udp());
                let told = request_destination(&to, false).is_ok();
                from.send_to(b"longer than the buffer", &to.local_addr().unwrap()).unwrap();
                let mut buffer = [0; 6];
                let arrived = recv_with_destination(&to, &mut buffer).unwrap();
                assert_eq!(&buffer[..arrived.len], b"longer");
                assert_eq!(Some(arrived.from), from.local_addr().unwrap().as_socket());
                let expected = told.then_some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
                assert_eq!(arrived.to, expected);
                assert!(recv_with_destination(&to, &mut buffer).is_err(), "nothing more");
            }

            #[test]
            fn what_is_missing_degrades() {
                prepare_thread();
                let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
                let results = [
                    set_mss(&socket, 1000),
                    set_traffic_class(&socket, false, 0x20),
                    set_max_pacing_rate(&socket, 1_000_000),
                    set_dont_fragment(&udp()),
                    set_user_timeout(&socket, Duration::from_secs(1)),
                    set_keep_alive(&socket, KeepAlive::default()),
                    set_keep_alive(&socket, KeepAlive { count: Some(3), ..KeepAlive::default() }),
                    share_port(&udp()),
                    reuse_ended(&socket),
                    mark_connected(&tcp().0, 0xb8).map(drop),
                ];
                for error in results.into_iter().filter_map(Result::err) {
                    assert_eq!(error.kind(), std::io::ErrorKind::Unsupported, "{error}");
                }
                assert!(set_congestion(&socket, "no such thing").is_err());
                assert!(bind_to_device(&udp(), "nosuchdev0").is_err());
                assert!(!is_multipath(&socket), "it is plain TCP");
                for made in [multipath_socket(Domain::IPV4), sctp_socket(Domain::IPV4)] {
                    // Neither is everywhere; what is there can be bound like any other.
                    let here = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
                    assert!(made.is_err() || made.is_ok_and(|it| it.bind(&here.into()).is_ok()));
                }
                let not_sctp = [
                    set_sctp_no_delay(&socket),
                    set_sctp_max_segment(&socket, 1000),
                    set_sctp_streams(&socket, 5),
                    bind_sctp_also(&socket, &[SocketAddr::from((Ipv4Addr::LOCALHOST, 0))]),
                ];
                assert!(not_sctp.iter().all(Result::is_err), "{not_sctp:?}");
                // They answer or not, but they do not fail.
                let _ = (tcp_stats(&udp()), mss(&socket), path_mtu(&socket, false));
                let _ = (congestion(&socket), unacknowledged_bytes(&socket), unread_bytes(&socket));
                let _ = (socket_number(&socket), cpu_times(), usable_buffer(1 << 20));
                let _ = (BUFFER_LIMITS, SEND_FLAGS);
                assert_ne!(system_names()[0], "");
            }

            #[test]
            fn a_thread_runs_where_it_is_told_or_says_that_it_does_not() {
                // On a thread of its own: the other tests of this process stay where they are.
                let pinned = std::thread::spawn(|| pin_thread(0)).join().unwrap();
                let refused = std::thread::spawn(|| pin_thread(u16::MAX)).join().unwrap();
                let is_unsupported = |result: &std::io::Result<()>| {
                    result
                        .as_ref()
                        .is_err_and(|error| error.kind() == std::io::ErrorKind::Unsupported)
                };
                assert!(pinned.is_ok() || is_unsupported(&pinned), "{pinned:?}");
                assert!(refused.is_err() && is_unsupported(&refused) == is_unsupported(&pinned));
            }
        }
    };
}

contract!(this_system, os);
contract!(everywhere_else, fallback);

#[cfg(any(unix, windows))]
#[test]
fn cpu_time_grows_with_work() {
    let before = super::cpu_times();
    let thread = super::ThreadTimes::of_this_thread();
    let thread_before = thread.cpu_ns();
    let begin = Instant::now();
    let used = |times: linerate_core::stats::CpuTimes| times.user_ns + times.system_ns;
    while used(super::cpu_times()) == used(before) || thread.cpu_ns() == thread_before {
        assert!(begin.elapsed() < LONG);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn tcp_info_of_a_connection_is_whole() {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let near: Socket = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap().into();
    let (far, _) = listener.accept().unwrap();
    near.send(&[0; 1000]).unwrap();
    let far = Socket::from(far);
    while super::os::unread_bytes(&far) != Some(1000) {
        std::thread::yield_now();
    }
    assert_eq!(super::os::unacknowledged_bytes(&near), Some(0));
    let stats = super::tcp_stats(&near).unwrap();
    assert_eq!(stats.retransmits, Some(0));
    assert!(stats.cwnd_bytes.unwrap() >= u64::from(super::mss(&near).unwrap()));
    assert!(super::path_mtu(&near, false) >= Some(1280));
}

/// What it costs plain clients that the server's port speaks MPTCP: nothing, for they get plain TCP.
#[cfg(target_os = "linux")]
#[test]
fn a_multipath_port_accepts_plain_connections_as_plain_sockets() {
    use socket2::Protocol;

    let Ok(listener) = super::multipath_socket(Domain::IPV4) else {
        println!("skipped: this kernel has no MPTCP");
        return;
    };
    listener.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).unwrap();
    listener.listen(2).unwrap();
    let at = listener.local_addr().unwrap();
    let plain = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    let multipath = super::multipath_socket(Domain::IPV4).unwrap();
    for (near, protocol) in [(plain, Protocol::TCP), (multipath, Protocol::MPTCP)] {
        near.connect(&at).unwrap();
        let (far, _) = listener.accept().unwrap();
        assert_eq!(far.protocol().unwrap(), Some(protocol));
        let is_multipath = protocol == Protocol::MPTCP;
        assert_eq!([&near, &far].map(super::is_multipath), [is_multipath; 2]);
    }
    // Towards a plain port it falls back.
    let plain = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let near = super::multipath_socket(Domain::IPV4).unwrap();
    near.connect(&plain.local_addr().unwrap().into()).unwrap();
    assert!(!super::is_multipath(&near));
}

macro_rules! bulk_contract {
    ($name:ident, $system:ident) => {
        mod $name {
            use std::io::Read;

            use super::*;
            use crate::sys::$system::*;
            use crate::sys::{Joined, Route};

            #[test]
            fn a_file_arrives_from_any_offset_and_ends() {
                let Ok(file) = file_of(b"0123456789") else { return };
                let (near, mut far) = tcp();
                for (offset, most, sent) in [(0, 10, 10), (7, 100, 3), (2, 1, 1), (10, 5, 0)] {
                    assert_eq!(send_file(&near, &file, offset, most).unwrap(), sent, "{offset}");
                }
                let mut arrived = [0; 14];
                far.read_exact(&mut arrived).unwrap();
                assert_eq!(&arrived, b"01234567897892");
            }

            #[test]
            fn what_is_discarded_is_gone_and_counted() {
                if !SKIPS_RX_COPY {
                    return;
                }
                let (near, mut far) = tcp();
                near.send(b"0123456789").unwrap();
                let mut buffer = [0xaa; 4];
                assert_eq!(discard(&far, &mut buffer).unwrap(), 4);
                let mut rest = [0; 6];
                far.read_exact(&mut rest).unwrap();
                assert_eq!((&rest, buffer), (b"456789", [0xaa; 4]));
                drop(near);
                assert_eq!(discard(&far, &mut buffer).unwrap(), 0, "the end");
            }

            #[test]
            fn a_cut_datagram_has_its_true_length() {
                if !SKIPS_RX_COPY {
                    return;
                }
                let (to, from) = (udp(), udp());
                let mut buffer = [0; 6];
                for datagram in [b"longer than the buffer".as_slice(), b"short"] {
                    from.send_to(datagram, &to.local_addr().unwrap()).unwrap();
                    let mut found = [Joined::default()];
                    assert_eq!(recv_messages(&to, &mut buffer, 6, &mut found).unwrap(), 1);
                    assert_eq!(found[0].len, datagram.len());
                    let there = datagram.len().min(buffer.len());
                    assert_eq!(buffer[..there], datagram[..there]);
                }
            }

            #[test]
            fn a_row_of_datagrams_goes_and_comes_in_parts() {
                let (to, from) = (udp(), udp());
                from.connect(&to.local_addr().unwrap()).unwrap();
                if set_segment_size(&from, Some(4)).is_err() || request_joined(&to).is_err() {
                    return;
                }
                from.send(b"aaaabbbbcc").unwrap();
                let mut buffer = [0; 100];
                let mut parts = Vec::new();
                while parts.len() < 3 {
                    let joined = receive_one(&to, &mut buffer);
                    parts.extend(buffer[..joined.len].chunks(joined.segment).map(<[u8]>::to_vec));
                }
                assert_eq!(parts, [b"aaaa".as_slice(), b"bbbb", b"cc"]);
                set_segment_size(&from, None).unwrap();
                from.send(b"one by itself").unwrap();
                let joined = receive_one(&to, &mut buffer);
                assert_eq!((joined.len, joined.segment), (13, 13));
            }

            fn receive_one(socket: &Socket, buffer: &mut [u8]) -> Joined {
                let mut found = [Joined::default()];
                let slot_bytes = buffer.len();
                assert_eq!(recv_messages(socket, buffer, slot_bytes, &mut found).unwrap(), 1);
                found[0]
            }

            #[test]
            fn many_messages_go_and_come_in_few_calls() {
                let (to, from) = (udp(), udp());
                from.connect(&to.local_addr().unwrap()).unwrap();
                let sent = b"aaabbbcccddde";
                let mut rest = sent.as_slice();
                while !rest.is_empty() {
                    let count = send_messages(&from, rest, 3).unwrap();
                    assert!((1..=MOST_MESSAGES).contains(&count));
                    rest = &rest[rest.len().min(3 * count)..];
                }
                let mut received = Vec::new();
                while received.len() < 5 {
                    let (mut buffer, mut found) = ([0; 2 * 8], [Joined::default(); 2]);
                    let count = recv_messages(&to, &mut buffer, 8, &mut found).unwrap();
                    assert!((1..=2).contains(&count));
                    let slots = buffer.chunks(8).zip(&found[..count]);
                    received.extend(slots.map(|(slot, found)| slot[..found.len].to_vec()));
                }
                assert_eq!(received, [b"aaa".as_slice(), b"bbb", b"ccc", b"ddd", b"e"]);
            }

            #[test]
            fn one_socket_hears_many_and_answers_each() {
                let (shared, near) = (udp(), [udp(), udp()]);
                let told = crate::sys::request_destination(&shared, false).is_ok();
                for (socket, sent) in [(0, b"a"), (1, b"b"), (1, b"c"), (0, b"d")] {
                    near[socket].send_to(sent, &shared.local_addr().unwrap()).unwrap();
                }
                let (mut buffer, mut heard) = ([0; 4 * 8], Vec::new());
                while heard.len() < 4 {
                    let mut found = [Joined::default(); 4];
                    let count = recv_messages_of_many(&shared, &mut buffer, 8, &mut found).unwrap();
                    for (slot, found) in buffer.chunks(8).zip(&found[..count]) {
                        let here = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
                        assert_eq!(found.to, told.then_some(here));
                        heard.push((found.from.unwrap(), slot[..found.len].to_vec()));
                    }
                }
                let from = near.each_ref().map(|it| it.local_addr().unwrap().as_socket().unwrap());
                let expected = [(0, "a"), (1, "b"), (1, "c"), (0, "d")];
                assert_eq!(heard, expected.map(|(near, sent)| (from[near], sent.into())));
                for (near, to) in near.iter().zip(from) {
                    let here = told.then_some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
                    let route = Route { to, from: here, class: 0 };
                    let cut = check_segments(&shared).is_ok().then_some(2);
                    let (whole, message_bytes) = (b"aabbc", cut.map_or(2, |_| 5));
                    let mut rest = whole.as_slice();
                    while !rest.is_empty() {
                        let sent = send_messages_along(&shared, &route, cut, rest, message_bytes);
                        rest = &rest[rest.len().min(sent.unwrap() * message_bytes)..];
                    }
                    for part in whole.chunks(2) {
                        let len = receive_one(near, &mut buffer).len;
                        assert_eq!(&buffer[..len], part);
                    }
                    crate::sys::send_along(&shared, &route, b"alone").unwrap();
                    assert_eq!(receive_one(near, &mut buffer).len, 5);
                }
            }
        }
    };
}

bulk_contract!(this_systems_bulk, bulk);
#[cfg(any(target_os = "linux", target_os = "macos", target_os = "freebsd"))]
bulk_contract!(bulk_elsewhere, bulk_none);

fn tcp() -> (Socket, Socket) {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let near = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (near.into(), listener.accept().unwrap().0.into())
}

#[cfg(unix)]
#[test]
fn a_file_without_a_name_leaves_nothing_behind() {
    use std::os::unix::fs::MetadataExt;

    let file = super::unix::unnamed_file().unwrap();
    assert_eq!(file.metadata().unwrap().nlink(), 0);
}
