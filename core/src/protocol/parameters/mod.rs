//! The parameters document: what the client asks the server for. Keys, order, defaults and ranges
//! are iperf3's (3.0 to 3.21, and the range checks of the releases after it).

mod incoming;
mod outgoing;
mod text;

pub use incoming::{ParametersReader, ReceivedParameters};
pub use outgoing::{ClientText, OutgoingParameters};
pub use text::ReceivedText;

#[cfg(test)]
mod tests;
