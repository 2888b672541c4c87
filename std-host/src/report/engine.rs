//! How this end moved the data: what each stream's thread used, joined to one account a direction, and
//! its words. Counts are the most that were seen, so they tell what happened and not what could have.

use serde_json::{Value, json};

/// How the data of all streams in one direction went through this end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Engine {
    /// Datagrams to the network.
    DatagramsSent {
        /// Most that left as one row, which the kernel cuts; one where none did.
        row: u32,
        /// Most of a call.
        call: u32,
        /// The kernel or the device refused longer rows in the middle of the test.
        is_reduced: bool,
    },
    /// Datagrams from the network.
    DatagramsReceived {
        /// Most that the kernel had joined; one where none were.
        row: u32,
        /// Most of a call.
        call: u32,
        /// Only headers were copied.
        only_headers: bool,
        /// The rate is so high that datagrams may share a time of arrival: those of a row, or where the
        /// kernel tells no times those of a call.
        shares_arrivals: bool,
        /// The kernel told when each message came.
        kernel_times: bool,
    },
    /// A byte stream to the network.
    BytesSent {
        /// Through this process.
        is_copied: bool,
    },
    /// A byte stream from the network.
    BytesReceived {
        /// Out of the kernel.
        is_copied: bool,
    },
}

impl Engine {
    /// The account of both, if they are of one kind: the most of each, and what either needed.
    pub(crate) fn joined(self, other: Self) -> Option<Self> {
        Some(match (self, other) {
            (
                Self::DatagramsSent { row, call, is_reduced },
                Self::DatagramsSent { row: row2, call: call2, is_reduced: reduced2 },
            ) => Self::DatagramsSent {
                row: row.max(row2),
                call: call.max(call2),
                is_reduced: is_reduced | reduced2,
            },
            (
                Self::DatagramsReceived { row, call, only_headers, shares_arrivals, kernel_times },
                Self::DatagramsReceived {
                    row: row2,
                    call: call2,
                    only_headers: headers2,
                    shares_arrivals: shares2,
                    kernel_times: times2,
                },
            ) => Self::DatagramsReceived {
                row: row.max(row2),
                call: call.max(call2),
                only_headers: only_headers & headers2,
                shares_arrivals: shares_arrivals | shares2,
                kernel_times: kernel_times & times2,
            },
            (Self::BytesSent { is_copied }, Self::BytesSent { is_copied: other }) => {
                Self::BytesSent { is_copied: is_copied | other }
            }
            (Self::BytesReceived { is_copied }, Self::BytesReceived { is_copied: other }) => {
                Self::BytesReceived { is_copied: is_copied | other }
            }
            _ => return None,
        })
    }

    /// Jitter tells of the times between batches, and not between datagrams.
    pub fn has_batch_jitter(&self) -> bool {
        match self {
            Self::DatagramsReceived { row, kernel_times: true, .. } => *row > 1,
            Self::DatagramsReceived { call, shares_arrivals, .. } => *call > 1 && *shares_arrivals,
            _ => false,
        }
    }

    /// The line for people.
    pub(super) fn words(&self) -> String {
        match *self {
            Self::DatagramsSent { row, call, is_reduced } => {
                let how = datagrams(row, call, "cut by the kernel (GSO)", "sendmmsg");
                let why = if is_reduced { ", since longer rows were refused" } else { "" };
                format!("Datagrams sent: {how}{why}")
            }
            Self::DatagramsReceived { row, call, only_headers, kernel_times, .. } => {
                let how = datagrams(row, call, "joined by the kernel (GRO)", "recvmmsg");
                let what = if only_headers { ", headers alone" } else { "" };
                let jitter = if self.has_batch_jitter() {
                    ", one time of arrival for each batch: jitter is that of batches"
                } else {
                    ""
                };
                let times = if kernel_times { ", timed by the kernel" } else { "" };
                format!("Datagrams received: {how}{what}{times}{jitter}")
            }
            Self::BytesSent { is_copied: true } => "Bytes sent: copied into the kernel".into(),
            Self::BytesSent { is_copied: false } => {
                "Bytes sent: by the kernel, without a copy (sendfile)".into()
            }
            Self::BytesReceived { is_copied: true } => {
                "Bytes received: copied out of the kernel".into()
            }
            Self::BytesReceived { is_copied: false } => {
                "Bytes received: thrown away in the kernel".into()
            }
        }
    }

    /// Its direction's key in the document, and what stands there.
    pub(super) fn member(&self) -> (&'static str, Value) {
        match *self {
            Self::DatagramsSent { row, call, is_reduced } => {
                let value = json!({
                    "method": method(row, call, ["gso", "sendmmsg", "send"]),
                    "datagrams_a_row": row.max(1),
                    "datagrams_a_call": call.max(1),
                    "rows_refused": is_reduced,
                });
                ("sent", value)
            }
            Self::DatagramsReceived { row, call, only_headers, kernel_times, .. } => {
                let value = json!({
                    "method": method(row, call, ["gro", "recvmmsg", "recv"]),
                    "datagrams_a_row": row.max(1),
                    "datagrams_a_call": call.max(1),
                    "headers_only": only_headers,
                    "arrival_times": if kernel_times { "kernel" } else { "process" },
                    "jitter_of_batches": self.has_batch_jitter(),
                });
                ("received", value)
            }
            Self::BytesSent { is_copied } => {
                ("sent", json!({ "method": if is_copied { "copy" } else { "sendfile" } }))
            }
            Self::BytesReceived { is_copied } => {
                ("received", json!({ "method": if is_copied { "copy" } else { "discard" } }))
            }
        }
    }
}

fn datagrams(row: u32, call: u32, by_kernel: &str, by_call: &str) -> String {
    match (row, call) {
        (2.., _) if call > row => format!("up to {row} in a row, {by_kernel}, up to {call} a call"),
        (2.., _) => format!("up to {row} in a row, {by_kernel}"),
        (_, 2..) => format!("up to {call} a call ({by_call})"),
        _ => "one a call".into(),
    }
}

fn method(row: u32, call: u32, [rows, several, one]: [&'static str; 3]) -> &'static str {
    match (row, call) {
        (2.., _) => rows,
        (_, 2..) => several,
        _ => one,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(row: u32, call: u32, is_reduced: bool) -> Engine {
        Engine::DatagramsSent { row, call, is_reduced }
    }

    fn received(row: u32, call: u32, only_headers: bool, shares_arrivals: bool) -> Engine {
        Engine::DatagramsReceived { row, call, only_headers, shares_arrivals, kernel_times: false }
    }

    #[test]
    fn each_step_of_the_ladder_has_its_words() {
        let batches = ", one time of arrival for each batch: jitter is that of batches";
        for (engine, method, words) in [
            (sent(46, 46, false), "gso", "sent: up to 46 in a row, cut by the kernel (GSO)"),
            (
                sent(128, 1023, false),
                "gso",
                "sent: up to 128 in a row, cut by the kernel (GSO), up to 1023 a call",
            ),
            (
                sent(1, 16, true),
                "sendmmsg",
                "sent: up to 16 a call (sendmmsg), since longer rows were refused",
            ),
            (sent(1, 1, false), "send", "sent: one a call"),
            (sent(0, 0, false), "send", "sent: one a call"),
            (
                received(46, 736, false, true),
                "gro",
                &format!(
                    "received: up to 46 in a row, joined by the kernel (GRO), up to 736 a \
                     call{batches}"
                ),
            ),
            (
                received(1, 4, false, true),
                "recvmmsg",
                &format!("received: up to 4 a call (recvmmsg){batches}"),
            ),
            (received(1, 4, false, false), "recvmmsg", "received: up to 4 a call (recvmmsg)"),
            (
                received(1, 4, true, false),
                "recvmmsg",
                "received: up to 4 a call (recvmmsg), headers alone",
            ),
            (received(1, 1, false, true), "recv", "received: one a call"),
        ] {
            assert_eq!(engine.words(), format!("Datagrams {words}"));
            let (key, value) = engine.member();
            assert_eq!(value["method"], method, "{words}");
            assert!(words.starts_with(key), "{words}");
            let is_of_batches = words.ends_with("jitter is that of batches");
            let told = value.get("jitter_of_batches").and_then(Value::as_bool);
            assert_eq!(told, (key == "received").then_some(is_of_batches), "{words}");
        }
    }

    #[test]
    fn a_direction_has_the_most_of_its_streams() {
        assert_eq!(sent(46, 46, false).joined(sent(1, 16, true)), Some(sent(46, 46, true)));
        assert_eq!(
            received(1, 3, true, false).joined(received(7, 2, false, true)),
            Some(received(7, 3, false, true))
        );
        let bytes = |is_copied| Engine::BytesSent { is_copied };
        assert_eq!(bytes(false).joined(bytes(true)), Some(bytes(true)));
        assert_eq!(bytes(false).joined(sent(1, 1, false)), None);
    }
}
