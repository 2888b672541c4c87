//! One case between a client and a server of its own, both documents held against each other.

use std::time::Duration;

use serde_json::Value;

use crate::case::Case;
use crate::check::{Report, check};
use crate::client;
use crate::server::Server;
use crate::tool::Tool;

/// Runs a case on a server of its own, which ends with it.
///
/// # Errors
///
/// Every law that is broken, or why one of the two printed no document.
pub fn run(case: &Case, client_tool: Tool, server_tool: Tool) -> Result<(), String> {
    documents(case, client_tool, server_tool).map(drop)
}

/// The same for who has more to say of the client's and the server's document.
///
/// # Errors
///
/// As for [`run`].
pub fn documents(case: &Case, client_tool: Tool, server_tool: Tool) -> Result<[Value; 2], String> {
    let server = Server::start(server_tool, &["-1", "-J"]);
    let port = server.port();
    let client = client::run(client_tool, case.host(), port, &case.options(), TIME_LIMIT)?;
    let server = server.wait().map_err(|e| format!("`{}`: {e}\nclient: {client}", case.line))?;
    let both = || format!("`{}` from {client_tool} to {server_tool}:", case.line);
    let client_document = client.document().map_err(|e| format!("{} {e}", both()))?;
    let server_document = server.document().map_err(|e| format!("{} {e}", both()))?;
    let faults = check(
        case,
        &Report::new(client_tool, &client, &client_document),
        &Report::new(server_tool, &server, &server_document),
    );
    if faults.is_empty() {
        return Ok([client_document, server_document]);
    }
    Err(format!("{}\n  {}", both(), faults.join("\n  ")))
}

const TIME_LIMIT: Duration = Duration::from_secs(30);
