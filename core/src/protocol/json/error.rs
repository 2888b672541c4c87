//! What can be wrong with a document from a peer.

use core::fmt;

use crate::protocol::code::ServerError;

/// What is wrong with a document, or with the frame around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum DocumentError {
    /// The frame announces no bytes, or more than this kind of document may have.
    Length {
        /// Bytes announced.
        announced: u32,
        /// Most that is accepted.
        limit: u32,
    },
    /// The text is no JSON from this byte on.
    Syntax {
        /// Offset of the byte.
        offset: u32,
    },
    /// Objects and arrays are nested deeper than any real document.
    Depth,
    /// A known key has a value of the wrong type.
    WrongType {
        /// The key.
        key: &'static str,
    },
    /// A key that must be there is not.
    Missing {
        /// The key.
        key: &'static str,
    },
    /// A value is outside what is allowed; `number` is iperf3's error number for it.
    OutOfRange {
        /// The key.
        key: &'static str,
        /// The whole part of the value, between `-i64::MAX` and `i64::MAX`.
        value: i64,
        /// iperf3's error number.
        number: i32,
    },
    /// More streams than this end has room for.
    TooManyStreams,
}

impl fmt::Display for DocumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length { announced, limit } => {
                write!(f, "a length of {announced} bytes, allowed: 1 to {limit}")
            }
            Self::Syntax { offset } => write!(f, "no JSON from byte {offset} on"),
            Self::Depth => f.write_str("values nested too deeply"),
            Self::WrongType { key } => write!(f, "a value of the wrong type for \"{key}\""),
            Self::Missing { key } => write!(f, "no \"{key}\""),
            Self::OutOfRange { key, value, number } => {
                let beyond = match *value {
                    i64::MAX => " or more",
                    value if value <= -i64::MAX => " or less",
                    _ => "",
                };
                write!(f, "{value}{beyond} for \"{key}\", {}", ServerError::new(*number))
            }
            Self::TooManyStreams => f.write_str("more streams than agreed"),
        }
    }
}

impl core::error::Error for DocumentError {}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::format;
    use std::string::ToString;

    use super::*;
    use crate::protocol::code::error_number;

    #[test]
    fn value_out_of_range_is_said_as_it_is_known() {
        for (value, said) in [
            (129, "129 for"),
            (-3, "-3 for"),
            (4_294_967_296, "4294967296 for"),
            (i64::MAX, "9223372036854775807 or more for"),
            (-i64::MAX, "-9223372036854775807 or less for"),
        ] {
            let number = error_number::STREAM_COUNT;
            let error = DocumentError::OutOfRange { key: "parallel", value, number };
            assert!(error.to_string().starts_with(&format!("{said} \"parallel\", ")), "{error}");
        }
    }
}
