//! linerate as a library: run a client or a server, watch it, cancel it. Nothing here exits the
//! process or keeps global state. A server and a client in one program:
//!
//! ```
//! use std::sync::Arc;
//!
//! use linerate::client::run_client;
//! use linerate::config::{ClientConfig, ServerConfig};
//! use linerate::observe::{Cancel, Observer};
//! use linerate::report::Progress;
//! use linerate::server::{ObserveTests, Server};
//! use linerate_core::test::Protocol;
//!
//! struct Quiet;
//!
//! impl ObserveTests for Quiet {
//!     fn observe(&self, _test_number: u64) -> Box<dyn Observer> {
//!         Box::new(|_: Progress| ())
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = Server::bind(ServerConfig::loopback()).await?;
//! let mut config = ClientConfig::new("127.0.0.1", Protocol::Tcp);
//! config.port = server.port();
//! config.settings.limits.seconds = None;
//! config.settings.limits.bytes = Some(1_000_000);
//!
//! let cancel = Cancel::new();
//! let serving = tokio::spawn({
//!     let cancel = cancel.clone();
//!     async move { server.run(Arc::new(Quiet), &cancel).await }
//! });
//! let report = run_client(&config, &mut |_: Progress| (), &cancel).await?;
//! cancel.cancel();
//! serving.await?;
//!
//! let stream = &report.end.streams[0];
//! assert_eq!(stream.sent().map(|side| side.bytes), Some(1_000_000));
//! assert_eq!(stream.received().map(|side| side.bytes), Some(1_000_000));
//! # Ok(())
//! # }
//! ```

pub mod auth;
pub mod cli;
pub mod client;
mod clock;
pub mod config;
mod connect;
mod control;
mod device;
mod dial;
mod errno;
pub mod error;
pub mod limits;
pub mod observe;
pub mod process;
mod reach;
pub mod report;
pub mod server;
pub mod service;
mod small_file;
mod stream;
mod sys;
pub mod system_info;
