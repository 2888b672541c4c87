//! The Windows build under Wine, which shares the host's loopback: every mode of a test towards stock
//! iperf3 and linerate for Linux in both roles, tests that end early, what is said of bad input, and what
//! the program needs of a Windows. `cargo xtask windows` builds it, sets up Wine and runs these; it also
//! lets suites of linerate for Linux run with the Windows build in its place.

mod windows {
    mod endings;
    mod imports;
    mod matrix;
    mod messages;
    mod options;
}
