//! Every mode of a test, between linerate and stock iperf3 in both roles: bytes, packets, times and
//! rates of both ends held against each other. iperf3 with itself is the check of the harness.

use linerate_tests::case::Case;
use linerate_tests::pair;
use linerate_tests::rows::run_all;
use linerate_tests::tool::{Tool, skipped};

const TCP_BY_TIME: &[&str] = &[
    "-t 1",
    "-t 1 -R",
    "-t 1 --bidir -b 100M",
    "-t 1 -P 4 -b 50M",
    "-t 1 -P 4 -R",
    "-t 1 -P 4 --bidir -b 50M",
];

const TCP_BY_AMOUNT: &[&str] = &[
    "-n 4M",
    "-n 4M -R",
    "-n 1000001 -P 4 -R",
    "-n 4M -R -b 100M",
    "-n 4M --bidir -b 100M",
    "-n 4M -P 4",
    "-n 4M -P 4 -R -b 50M",
    "-n 4M -P 4 --bidir -b 50M",
    "-n 1000001 -b 50M",
    "-k 40",
    "-k 40 -P 4 -R",
    "-k 40 -R -b 100M",
    "-k 40 --bidir -b 100M",
    "-k 40 -P 4",
    "-k 40 -P 4 -R -b 50M",
    "-k 40 -P 4 --bidir -b 50M",
];

const UDP_BY_TIME: &[&str] = &[
    "-u -t 1 -b 20M",
    "-u -t 1 -b 20M -l 1400 -R",
    "-u -t 1 -b 10M -l 1400 --bidir",
    "-u -t 1 -b 10M -l 1400 -P 4",
    "-u -t 1 -b 10M -l 1400 -P 4 -R",
    "-u -t 1 -b 5M -l 1400 -P 4 --bidir",
    "-u -t 1",
];

const UDP_BY_AMOUNT: &[&str] = &[
    "-u -n 1M -b 50M -l 1400",
    "-u -n 1M -b 50M -l 1400 -R",
    "-u -n 1M -b 20M -l 1400 --bidir",
    "-u -n 1M -b 20M -l 1400 -P 4",
    "-u -n 1M -b 20M -l 1400 -P 4 -R",
    "-u -n 1M -b 10M -l 1400 -P 4 --bidir",
    "-u -k 200 -b 20M -l 1400",
    "-u -k 200 -b 20M -l 1400 -R",
    "-u -k 200 -b 20M -l 1400 --bidir",
    "-u -k 200 -b 10M -l 1400 -P 4",
    "-u -k 200 -b 10M -l 1400 -P 4 -R",
    "-u -k 200 -b 10M -l 1400 -P 4 --bidir",
];

const OPTIONS: &[&str] = &[
    "-t 1 -O 1 -b 100M",
    "-t 1 -O 1 -b 100M -R",
    "-u -t 1 -O 1 -b 20M -l 1400",
    "-u -t 1 -O 1 -b 20M -l 1400 -R",
    "-t 1 -l 128 -b 10M",
    "-t 1 -l 1M",
    "-t 1 -w 256K",
    "-t 1 -w 256K -R",
    "-t 1 -b 100M",
    "-u -t 1 -b 100M -l 1400",
    "-u -t 1 -b 1M -l 16",
    "-t 1 -N -b 100M",
];

const IPV6: &[&str] = &["-6 -t 1", "-6 -t 1 -R -P 4 -b 50M", "-6 -u -t 1 -b 20M -l 1400 --bidir"];

const SERVER_OUTPUT: &[&str] = &[
    "-t 1 -b 100M --get-server-output",
    "-t 1 -b 100M -R --get-server-output",
    "-u -t 1 -b 20M -l 1400 --bidir --get-server-output",
];

macro_rules! pairs {
    ($($pair:ident: $client:expr => $server:expr;)*) => { $(
        mod $pair {
            use super::*;

            #[test]
            fn tcp_by_time() {
                run(TCP_BY_TIME, $client, $server);
            }

            #[test]
            fn tcp_by_amount() {
                run(TCP_BY_AMOUNT, $client, $server);
            }

            #[test]
            fn udp_by_time() {
                run(UDP_BY_TIME, $client, $server);
            }

            #[test]
            fn udp_by_amount() {
                run(UDP_BY_AMOUNT, $client, $server);
            }

            #[test]
            fn options() {
                run(OPTIONS, $client, $server);
            }

            #[test]
            fn ipv6() {
                if std::net::TcpListener::bind("[::1]:0").is_ok() {
                    run(IPV6, $client, $server);
                } else {
                    skipped("the loopback has no IPv6");
                }
            }

            #[test]
            fn server_output() {
                run(SERVER_OUTPUT, $client, $server);
            }
        }
    )* };
}

pairs! {
    linerate_to_iperf3: Tool::Linerate => Tool::Iperf3;
    iperf3_to_linerate: Tool::Iperf3 => Tool::Linerate;
    linerate_to_linerate: Tool::Linerate => Tool::Linerate;
    iperf3_to_iperf3: Tool::Iperf3 => Tool::Iperf3;
}

fn run(lines: &[&'static str], client: Tool, server: Tool) {
    if client.is_here() && server.is_here() {
        run_all(lines, |line| pair::run(&Case::new(line), client, server));
    }
}
