//! A running server answers who reaches it by its handle.

use std::sync::Arc;

use linerate::client::run_client;
use linerate::config::{ClientConfig, ServerConfig};
use linerate::error::Error;
use linerate::observe::{Cancel, Observer};
use linerate::report::Progress;
use linerate::server::{ObserveTests, Server};
use linerate_core::test::Protocol;

struct Quiet;

impl ObserveTests for Quiet {
    fn observe(&self, _test_number: u64) -> Box<dyn Observer> {
        Box::new(|_: Progress| ())
    }
}

/// Control tasks of debug builds take more stack than the default threads have.
fn runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).thread_stack_size(4 << 20).enable_all();
    builder.build().expect("a runtime")
}

#[test]
fn a_server_gives_signs_of_life_until_it_has_ended() {
    runtime().block_on(async {
        let server = Server::bind(ServerConfig::loopback()).await.expect("a free port");
        let (port, handle, cancel) = (server.port(), server.handle(), Cancel::new());
        let serving = tokio::spawn({
            let cancel = cancel.clone();
            async move { server.run(Arc::new(Quiet), &cancel).await }
        });
        assert!(handle.gives_sign().await);
        assert!(test(port).await.is_ok());

        assert!(handle.gives_sign().await);

        cancel.cancel();
        serving.await.expect("it ends");
        assert!(!handle.gives_sign().await);
    });
}

async fn test(port: u16) -> Result<(), Error> {
    let mut config = ClientConfig::new("127.0.0.1", Protocol::Tcp);
    config.port = port;
    config.settings.limits.seconds = None;
    config.settings.limits.bytes = Some(100_000);
    let report =
        tokio::spawn(
            async move { run_client(&config, &mut |_: Progress| (), &Cancel::new()).await },
        );
    let report = report.await.expect("a task of its own").map_err(|failure| failure.error)?;
    report.end.error.clone().map_or(Ok(()), Err)
}
