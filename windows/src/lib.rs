//! The native Windows data plane of linerate. On every other system the crate is empty, so that
//! `--workspace` builds everywhere.
//!
//! What is there: the crate and its place in the workspace. What is not there yet: overlapped
//! Winsock sending and receiving, UDP segmentation and coalescing offload, and the socket facts
//! (`SIO_TCP_INFO`). Until they are, linerate on Windows uses the portable sockets of `std-host`.
#![cfg(windows)]
