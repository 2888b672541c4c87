//! One-byte control codes, and the error numbers that follow a server error. Defined by iperf3's
//! `iperf_api.h`; numbers stable since 3.0.1.

use core::fmt;

/// What one end tells the other on the control connection: one signed byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(i8)]
pub enum ControlCode {
    /// Server: all streams are there; timers start.
    TestStart = 1,
    /// Server: both ends send; practically always in the same segment as the one before.
    TestRunning = 2,
    /// Client: its end condition is met and its senders have stopped.
    TestEnd = 4,
    /// Server: cookie taken; the client sends its parameters.
    ParamExchange = 9,
    /// Server: parameters taken and ready to accept; the client opens its streams.
    CreateStreams = 10,
    /// Server: stopped by its operator.
    ServerTerminate = 11,
    /// Client: stopped by its user.
    ClientTerminate = 12,
    /// Server: answer to the end; the client sends its results, then the server.
    ExchangeResults = 13,
    /// Server: its results are sent.
    DisplayResults = 14,
    /// Client: all done, or giving up.
    IperfDone = 16,
    /// Server: accepts the client's offer of the extension; a framed document follows. Ours: iperf3
    /// never sends it and would abort on it, so it goes only to a client that offered.
    ExtensionAccepted = 0x4c,
    /// Server: busy with another test, or a data connection with a stranger's cookie.
    AccessDenied = -1,
    /// Server: an error; eight bytes follow, see [`ServerError`].
    ServerError = -2,
}

impl ControlCode {
    /// The code of this byte, if any.
    pub const fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte as i8 {
            1 => Self::TestStart,
            2 => Self::TestRunning,
            4 => Self::TestEnd,
            9 => Self::ParamExchange,
            10 => Self::CreateStreams,
            11 => Self::ServerTerminate,
            12 => Self::ClientTerminate,
            13 => Self::ExchangeResults,
            14 => Self::DisplayResults,
            16 => Self::IperfDone,
            0x4c => Self::ExtensionAccepted,
            -1 => Self::AccessDenied,
            -2 => Self::ServerError,
            _ => return None,
        })
    }

    /// The byte on the wire.
    pub const fn byte(self) -> u8 {
        self as i8 as u8
    }
}

impl fmt::Display for ControlCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TestStart => "TEST_START",
            Self::TestRunning => "TEST_RUNNING",
            Self::TestEnd => "TEST_END",
            Self::ParamExchange => "PARAM_EXCHANGE",
            Self::CreateStreams => "CREATE_STREAMS",
            Self::ServerTerminate => "SERVER_TERMINATE",
            Self::ClientTerminate => "CLIENT_TERMINATE",
            Self::ExchangeResults => "EXCHANGE_RESULTS",
            Self::DisplayResults => "DISPLAY_RESULTS",
            Self::IperfDone => "IPERF_DONE",
            Self::ExtensionAccepted => "EXTENSION_ACCEPTED",
            Self::AccessDenied => "ACCESS_DENIED",
            Self::ServerError => "SERVER_ERROR",
        })
    }
}

/// What follows [`ControlCode::ServerError`]: two signed 32-bit numbers, big-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct ServerError {
    /// iperf3's error number.
    pub number: i32,
    /// The server's `errno`, in its own platform's numbering; zero for none.
    pub errno: i32,
}

impl ServerError {
    /// Bytes after the code.
    pub const LEN: usize = 8;

    /// An error without an errno.
    pub const fn new(number: i32) -> Self {
        Self { number, errno: 0 }
    }

    /// Reads the bytes that follow the code.
    pub fn from_bytes(bytes: [u8; Self::LEN]) -> Self {
        let [a, b, c, d, e, f, g, h] = bytes;
        Self { number: i32::from_be_bytes([a, b, c, d]), errno: i32::from_be_bytes([e, f, g, h]) }
    }

    /// The bytes that follow the code.
    pub fn to_bytes(self) -> [u8; Self::LEN] {
        let [a, b, c, d] = self.number.to_be_bytes();
        let [e, f, g, h] = self.errno.to_be_bytes();
        [a, b, c, d, e, f, g, h]
    }
}

/// iperf3's error numbers as far as an engine sends or explains them.
pub mod error_number {
    /// Duration out of range.
    pub const DURATION: i32 = 5;
    /// Number of streams out of range.
    pub const STREAM_COUNT: i32 = 6;
    /// TCP block size out of range.
    pub const BLOCK_SIZE: i32 = 7;
    /// Socket buffer size out of range.
    pub const WINDOW: i32 = 8;
    /// Segment size out of range.
    pub const MSS: i32 = 10;
    /// Omitted start out of range.
    pub const OMIT: i32 = 12;
    /// Something that is not to be had here.
    pub const NOT_OFFERED: i32 = 13;
    /// The file to send or to store in cannot be used.
    pub const FILE: i32 = 14;
    /// Burst out of range.
    pub const BURST: i32 = 15;
    /// No SCTP here.
    pub const NO_SCTP: i32 = 18;
    /// Datagram size out of range.
    pub const UDP_BLOCK_SIZE: i32 = 20;
    /// Type of service out of range.
    pub const TOS: i32 = 21;
    /// More bandwidth asked for than the server allows.
    pub const TOTAL_RATE: i32 = 27;
    /// A file cannot be moved by UDP.
    pub const UDP_FILE: i32 = 34;
    /// A server cannot read its users file; iperf3 since 3.16.
    pub const USERS_FILE: i32 = 35;
    /// Longer test asked for than the server allows.
    pub const MAX_DURATION: i32 = 37;
    /// The cookie did not come.
    pub const RECV_COOKIE: i32 = 106;
    /// An unknown control code.
    pub const MESSAGE: i32 = 110;
    /// The parameters cannot be read.
    pub const RECV_PARAMS: i32 = 114;
    /// The results cannot be read.
    pub const RECV_RESULTS: i32 = 117;
    /// The client ended the test.
    pub const CLIENT_TERMINATED: i32 = 119;
    /// CPU number out of range.
    pub const AFFINITY: i32 = 132;
    /// A segment size that the system does not take.
    pub const SET_MSS: i32 = 123;
    /// IPv6 flow label out of range, or without IPv6.
    pub const FLOW_LABEL: i32 = 127;
    /// Busy with another test.
    pub const BUSY: i32 = 121;
    /// A congestion control that the system does not have.
    pub const SET_CONGESTION: i32 = 134;
    /// The token was refused.
    pub const AUTH: i32 = 142;
    /// No data for too long.
    pub const NO_DATA: i32 = 144;
    /// The test ran longer than agreed.
    pub const DURATION_EXPIRED: i32 = 160;
    /// A stream could not be created.
    pub const CREATE_STREAM: i32 = 200;
    /// A stream number that nobody has.
    pub const STREAM_ID: i32 = 208;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_survives_the_wire() {
        let known = (0..=255u8).filter_map(|byte| ControlCode::from_byte(byte).map(|c| (byte, c)));
        let mut count = 0;
        for (byte, code) in known {
            assert_eq!(code.byte(), byte);
            count += 1;
        }
        assert_eq!(count, 13);
    }

    #[test]
    fn server_error_is_two_big_endian_numbers() {
        let error = ServerError { number: 142, errno: 11 };
        assert_eq!(error.to_bytes(), [0, 0, 0, 142, 0, 0, 0, 11]);
        assert_eq!(ServerError::from_bytes(error.to_bytes()), error);
    }
}
