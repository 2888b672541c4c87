//! The same test by each tool with itself, so that what they print can be compared: client and server
//! of one tool, with the same options, one of them perhaps stopped in the middle.

use std::time::Duration;

use crate::client;
use crate::process::Ended;
use crate::server::Server;
use crate::tool::Tool;

/// What is run, by either tool.
#[derive(Debug, Clone, Copy)]
pub struct Run<'a> {
    /// The client's options, in one line.
    pub client: &'a str,
    /// The server's.
    pub server: &'a str,
    /// Who is stopped by a signal, a second and a half after the start, and by which signal.
    pub stopped: Option<(End, &'a str)>,
}

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The client.
    Client,
    /// The server.
    Server,
}

/// What the two ends of a run printed.
#[derive(Debug)]
pub struct Outcome {
    /// The client.
    pub client: Ended,
    /// The server.
    pub server: Ended,
}

impl Outcome {
    /// One of them.
    pub const fn of(&self, end: End) -> &Ended {
        match end {
            End::Client => &self.client,
            End::Server => &self.server,
        }
    }
}

impl Run<'_> {
    /// Runs it with iperf3 and with linerate, at the same time.
    ///
    /// # Errors
    ///
    /// When one of the four does not end in time.
    pub fn both(&self, host: &str) -> Result<(Outcome, Outcome), String> {
        std::thread::scope(|scope| {
            let iperf3 = scope.spawn(|| self.by_iperf3(host));
            let linerate = self.by(Tool::Linerate, host)?;
            Ok((iperf3.join().map_err(|_| "the run with iperf3 panicked")??, linerate))
        })
    }

    /// iperf3 loses a UDP greeting now and then, and its server then waits for ever.
    fn by_iperf3(&self, host: &str) -> Result<Outcome, String> {
        let tries = (0..TRIES).map(|_| self.by(Tool::Iperf3, host));
        let first_good = tries.take(TRIES).find(|tried| {
            tried
                .as_ref()
                .is_ok_and(|outcome| self.stopped.is_some() || outcome.client.code == Some(0))
        });
        first_good.unwrap_or_else(|| Err(format!("iperf3 alone fails with {self:?}")))
    }

    /// Runs it with one tool.
    ///
    /// # Errors
    ///
    /// When one of the two does not end in time.
    pub fn by(&self, tool: Tool, host: &str) -> Result<Outcome, String> {
        let words = |line: &'_ str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let mut server_options = vec!["-1".to_owned()];
        server_options.extend(words(self.server));
        let server_options: Vec<&str> = server_options.iter().map(String::as_str).collect();
        let mut server = Server::start(tool, &server_options);
        let client_options = words(self.client);
        let client_options: Vec<&str> = client_options.iter().map(String::as_str).collect();
        let mut client = client::start(tool, host, server.port(), &client_options);
        if let Some((end, signal)) = self.stopped {
            // The middle of a test is a time, not an event that either tool tells of.
            std::thread::sleep(UNTIL_STOPPED);
            match end {
                End::Client => client.signal(signal),
                End::Server => server.signal(signal),
            }
        }
        let client = client.wait(LIMIT)?;
        let server = server.wait().map_err(|error| format!("{error}\nclient: {client}"))?;
        Ok(Outcome { client, server })
    }
}

const TRIES: usize = 3;
const UNTIL_STOPPED: Duration = Duration::from_millis(1500);
const LIMIT: Duration = Duration::from_secs(20);
