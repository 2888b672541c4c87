//! The protocol engine of linerate: everything that iperf3 compatibility and honest measurement
//! need, and nothing that depends on a machine.
//!
//! Bytes, events and time go in; bytes, actions and deadlines come out. The engine never asks what
//! time it is, never sleeps, never opens a socket, never allocates. That is what lets the same code
//! run on a 128-core server and on a Cortex-M3, and lets a test run ten simulated seconds in a
//! millisecond.
//!
//! | module | holds |
//! |---|---|
//! | [`time`], [`units`] | instants; bytes and rates, the K/M/G rules in one place |
//! | [`test`](mod@test) | what is measured: protocol, direction, streams, limits |
//! | [`protocol`] | what goes over the wire: codes, cookie, frames, documents, datagrams |
//! | [`accept`] | what a fresh connection is: control, data of which test, or something else |
//! | [`session`] | the two ends of a control connection, with every legal order of events |
//! | [`flow`] | what one data stream does next: send, wait, stop; what it received |
//! | [`stats`] | tallies, sequence tracking, jitter, intervals, omit, summaries |
//! | [`report`] | the plain records that every output format is written from |
#![no_std]
#![forbid(unsafe_code)]

pub mod accept;
pub mod flow;
mod on_host;
pub mod protocol;
pub mod report;
pub mod session;
pub mod stats;
pub mod test;
pub mod time;
pub mod units;

/// The iperf3 release whose behaviour this engine equals, as sent in `client_version`.
pub const IPERF3_EQUIVALENT: &str = "3.21";
