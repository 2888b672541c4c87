//! Every mode of a test between the Windows build and the others, in both roles.

use linerate_tests::case::Case;
use linerate_tests::pair;
use linerate_tests::rows::run_all;
use linerate_tests::tool::Tool;

/// Limited where the end is a matter of time: without a limit a slow reader's socket holds more at
/// the end than the check allows.
const TCP: &[&str] = &[
    "-t 1 -b 100M",
    "-t 1 -b 100M -R",
    "-t 1 -b 50M --bidir",
    "-t 1 -b 25M -P 4",
    "-t 1 -b 25M -P 4 -R",
    "-t 1 -b 10M -P 4 --bidir",
];

const UDP: &[&str] = &[
    "-u -t 1 -b 20M -l 1400",
    "-u -t 1 -b 20M -l 1400 -R",
    "-u -t 1 -b 10M -l 1400 --bidir",
    "-u -t 1 -b 5M -l 1400 -P 4",
    "-u -t 1 -b 5M -l 1400 -P 4 -R",
    "-u -t 1 -b 4M -l 1400 -P 4 --bidir",
];

const BY_AMOUNT: &[&str] = &[
    "-n 64M",
    "-n 64M -R",
    "-n 1000001 -P 4 -R",
    "-k 40 -P 4",
    "-k 40 -R -b 100M",
    "-u -n 1M -b 20M -l 1400 -R",
    "-u -k 200 -b 20M -l 1400 -P 4",
];

macro_rules! pairs {
    ($($pair:ident: $client:ident => $server:ident;)*) => { $(
        mod $pair {
            use super::*;

            #[test]
            #[ignore = "needs Wine; `cargo xtask windows` runs it"]
            fn tcp() {
                run(TCP, Tool::$client, Tool::$server);
            }

            #[test]
            #[ignore = "needs Wine; `cargo xtask windows` runs it"]
            fn udp() {
                run(UDP, Tool::$client, Tool::$server);
            }

            #[test]
            #[ignore = "needs Wine; `cargo xtask windows` runs it"]
            fn by_amount() {
                run(BY_AMOUNT, Tool::$client, Tool::$server);
            }
        }
    )* };
}

pairs! {
    windows_to_iperf3: LinerateWindows => Iperf3;
    iperf3_to_windows: Iperf3 => LinerateWindows;
    windows_to_linerate: LinerateWindows => Linerate;
    linerate_to_windows: Linerate => LinerateWindows;
}

#[test]
#[ignore = "needs Wine; `cargo xtask windows` runs it"]
fn windows_to_itself() {
    let lines = ["-t 1 -b 10M -P 4 --bidir", "-u -t 1 -b 4M -l 1400 -P 4 --bidir"];
    run(&lines, Tool::LinerateWindows, Tool::LinerateWindows);
}

fn run(lines: &[&'static str], client: Tool, server: Tool) {
    run_all(lines, |line| pair::run(&Case::new(line), client, server));
}
