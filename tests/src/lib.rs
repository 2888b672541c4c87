//! The harness of the suites that cross crates: it runs real processes of linerate and iperf3 against
//! each other over the loopback, reads what both ends report, and holds it against the laws that any
//! honest measurement obeys. Scripted peers play what no honest program would.
//!
//! | module | holds |
//! |---|---|
//! | [`tool`] | which program is meant, and where it is |
//! | [`process`] | a child that is always collected: output, time limit, signals by its id |
//! | [`server`], [`client`] | the two roles of a test |
//! | [`journal`] | a server whose log is read while it runs |
//! | [`case`] | a client's command line, and what it asks for |
//! | [`check`] | both documents of one test held against each other |
//! | [`pair`] | one case between two tools, checked |
//! | [`footprint`] | what a process holds of its system |
//! | [`json`], [`text`] | what both tools print, made comparable |
//! | [`scratch`] | a folder for the files of a test |
//! | `board` | the firmware in QEMU, and its log |
//! | [`both`] | the same test by each tool with itself |
//! | [`script`] | a peer that follows a list of steps, honest or not |
//! | [`folder`] | a scratch folder that goes with its test |
//! | [`rows`] | many cases at once, but not too many |
//! | [`link`] | what a network does to packets, in virtual time and between real programs |
//! | `namespace` | networks of their own, on Linux |
//! | `veth` | two of them with a cable between |
//! | `capture` | what programs put on such a cable |
//! | [`virtual_time`] | both engines over an emulated link, in virtual time |
//! | [`fuzzing`] | what random bytes must not do to the engine, and the corpus |
//! | [`stack`] | how much stack the calls into the engine take |

#[cfg(all(target_os = "linux", feature = "firmware"))]
pub mod board;
pub mod both;
#[cfg(target_os = "linux")]
pub mod capture;
pub mod case;
pub mod check;
pub mod client;
pub mod folder;
pub mod footprint;
pub mod fuzzing;
pub mod journal;
pub mod json;
pub mod link;
#[cfg(target_os = "linux")]
pub mod namespace;
pub mod pair;
pub mod process;
pub mod relay;
pub mod rows;
pub mod scratch;
pub mod script;
pub mod server;
pub mod stack;
pub mod text;
pub mod tool;
#[cfg(target_os = "linux")]
pub mod veth;
pub mod virtual_time;
