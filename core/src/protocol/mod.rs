//! What goes over the wire, as iperf3 defines it (3.0 to 3.21; no RFC does): one-byte control
//! codes, the cookie, length-prefixed JSON documents, the UDP greeting and datagram header, and the
//! extension handshake between two linerate ends with what it allows. Who says what when is `session`'s business.

pub mod code;
pub mod cookie;
pub mod datagram;
pub mod error_text;
pub mod explanation;
pub mod extension;
pub mod frame;
pub mod greeting;
pub mod json;
pub mod parameters;
pub mod results;

#[cfg(test)]
mod recorded;
#[cfg(test)]
mod testing;
