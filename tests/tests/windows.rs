//! The Windows build against stock iperf3 in both roles, under Wine, which shares the host's loopback.
//! `cargo xtask windows` builds it, sets up Wine and runs these.

use linerate_tests::case::Case;
use linerate_tests::pair;
use linerate_tests::rows::run_all;
use linerate_tests::tool::Tool;

/// Limited where the end is a matter of time: without a limit a slow reader's socket holds more at
/// the end than the check allows.
const TCP: &[&str] =
    &["-t 1 -b 500M", "-t 1 -R -b 500M", "-t 1 -P 2 --bidir -b 50M", "-n 64M", "-n 64M -R"];

const UDP: &[&str] = &[
    "-u -t 1 -b 20M -l 1400",
    "-u -t 1 -b 20M -l 1400 -R",
    "-u -t 1 -b 5M -l 1400 -P 2 --bidir",
    "-u -k 200 -b 20M -l 1400",
];

macro_rules! pairs {
    ($($pair:ident: $client:expr => $server:expr;)*) => { $(
        mod $pair {
            use super::*;

            #[test]
            #[ignore = "needs Wine; `cargo xtask windows` runs it"]
            fn tcp() {
                run_all(TCP, |line| pair::run(&Case::new(line), $client, $server));
            }

            #[test]
            #[ignore = "needs Wine; `cargo xtask windows` runs it"]
            fn udp() {
                run_all(UDP, |line| pair::run(&Case::new(line), $client, $server));
            }
        }
    )* };
}

pairs! {
    windows_to_iperf3: Tool::LinerateWindows => Tool::Iperf3;
    iperf3_to_windows: Tool::Iperf3 => Tool::LinerateWindows;
}
