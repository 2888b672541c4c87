//! The UDP greeting: one datagram of four bytes from the client for each stream, one back from the
//! server. Values since iperf3 3.12; older ends use others, and servers of every version take
//! anything. The greeting is sent once: a copy would be glued to the first data datagram by a stock
//! server.

/// From the client, for each stream it opens.
pub const HELLO: [u8; 4] = *b"9876";

/// From the server, on the socket that will carry the stream.
pub const REPLY: [u8; 4] = *b"6789";

/// Whether `datagram` answers the greeting; servers up to 3.11 say it in their own way.
pub fn is_reply(datagram: &[u8]) -> bool {
    datagram == REPLY || datagram == REPLY_BEFORE_3_12
}

/// Whether `datagram` is a greeting rather than data: no data datagram is that short.
pub fn is_hello(datagram: &[u8]) -> bool {
    datagram.len() <= HELLO.len()
}

/// 987654321 in little-endian order, as servers up to 3.11 answer.
const REPLY_BEFORE_3_12: [u8; 4] = 987_654_321_u32.to_le_bytes();

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_of_old_and_new_servers_are_known() {
        assert!(is_reply(&[0x36, 0x37, 0x38, 0x39]));
        assert!(is_reply(&[0xb1, 0x68, 0xde, 0x3a]));
        assert!(!is_reply(&[0xde, 0x3a, 0x68, 0xb1]));
        assert!(!is_reply(b"6789 "));
    }
}
