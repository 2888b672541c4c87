//! What the system knows of a TCP connection, as it writes it (`SIO_TCP_INFO` and `TCP_INFO_v0`,
//! `TCP_INFO_v1` of `mstcpip.h`), and what a sender waited for by it (after RFC 4898). Nothing here
//! calls the system.

use linerate_core::report::SenderWaits;
use linerate_core::stats::{TcpStats, TcpView};

use crate::bytes::array;

/// One record. The versions grow at the end: what an older one lacks is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpInfo {
    mss: u32,
    rtt_us: u32,
    min_rtt_us: u32,
    in_flight_bytes: u32,
    cwnd_bytes: u32,
    window_bytes: u32,
    resent_bytes: u32,
    limits: Option<Limits>,
}

/// For how long the receiver's window, the congestion window and the sender itself were what the
/// connection waited for, milliseconds. It is one of them at any time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Limits {
    window_ms: u32,
    congestion_ms: u32,
    sender_ms: u32,
}

impl TcpInfo {
    /// Reads the bytes that the system wrote, of whatever version they are.
    pub(crate) fn read(record: &[u8]) -> Option<Self> {
        let number = |at| array(record, at).map(u32::from_ne_bytes);
        let limits = || {
            Some(Limits {
                window_ms: number(SND_LIM_TIME_RWIN)?,
                congestion_ms: number(SND_LIM_TIME_CWND)?,
                sender_ms: number(SND_LIM_TIME_SND)?,
            })
        };
        Some(Self {
            mss: number(MSS)?,
            rtt_us: number(RTT_US)?,
            min_rtt_us: number(MIN_RTT_US)?,
            in_flight_bytes: number(BYTES_IN_FLIGHT)?,
            cwnd_bytes: number(CWND)?,
            window_bytes: number(SND_WND)?,
            resent_bytes: number(BYTES_RETRANS)?,
            limits: limits(),
        })
    }

    /// The record as every system's is told. Windows counts the bytes that were sent again, not the
    /// segments: they are as many as would hold these bytes.
    pub fn stats(&self) -> TcpStats {
        let segments = self.mss().map(|mss| self.resent_bytes.div_ceil(mss));
        TcpStats {
            retransmits: segments.map(u64::from),
            cwnd_bytes: Some(self.cwnd_bytes.into()),
            snd_wnd_bytes: Some(self.window_bytes.into()),
            rtt_us: Some(self.rtt_us),
            rttvar_us: None,
            pmtu_bytes: None,
            reordering: None,
        }
    }

    /// Bytes that were sent and not acknowledged. What the socket holds and TCP has not sent is not
    /// in it.
    pub fn in_flight_bytes(&self) -> u64 {
        self.in_flight_bytes.into()
    }

    /// Segment size; none before there is a connection.
    pub fn mss(&self) -> Option<u32> {
        Some(self.mss).filter(|&mss| mss > 0)
    }

    /// A queue on the path has not made the round trip much longer than it was at its best.
    fn finds_no_queue(&self) -> bool {
        self.min_rtt_us > 0 && self.rtt_us / 2 < self.min_rtt_us
    }
}

/// Repeated looks at one sending connection.
#[derive(Debug, Default)]
pub struct SenderLooks {
    last_sender_ms: u32,
    kept_busy_ms: u64,
    starved_ms: u64,
}

impl SenderLooks {
    /// What the sender waits for, from the newest record.
    ///
    /// For Windows a sender waits for itself whenever it has sent all it was given, whether that is on
    /// its way or arrived long ago. It has been busy since the last look if something is in flight
    /// now. If that finds no queue on the path, there was room for more than the socket held.
    pub fn view(&mut self, info: &TcpInfo) -> TcpView {
        TcpView {
            rtt_us: Some(info.rtt_us),
            waits: info.limits.map(|limits| self.waits(info, limits)),
            resent_bytes: Some(info.resent_bytes.into()),
            delivery_bytes_per_sec: None,
            window_bytes: Some(info.window_bytes.into()),
        }
    }

    fn waits(&mut self, info: &TcpInfo, limits: Limits) -> SenderWaits {
        let sender_ms = u64::from(limits.sender_ms.wrapping_sub(self.last_sender_ms));
        self.last_sender_ms = limits.sender_ms;
        if info.in_flight_bytes > 0 {
            self.kept_busy_ms += sender_ms;
            if info.finds_no_queue() {
                self.starved_ms += sender_ms;
            }
        }
        let [window_ms, congestion_ms] = [limits.window_ms, limits.congestion_ms].map(u64::from);
        SenderWaits {
            busy_us: (window_ms + congestion_ms + self.kept_busy_ms) * 1000,
            receive_window_us: window_ms * 1000,
            send_buffer_us: self.starved_ms * 1000,
        }
    }
}

/// Where the fields are, in both versions.
const MSS: usize = 4;
const RTT_US: usize = 20;
const MIN_RTT_US: usize = 24;
const BYTES_IN_FLIGHT: usize = 28;
const CWND: usize = 32;
const SND_WND: usize = 36;
const BYTES_RETRANS: usize = 68;
/// Only in version 1.
const SND_LIM_TIME_RWIN: usize = 92;
const SND_LIM_TIME_CWND: usize = 108;
const SND_LIM_TIME_SND: usize = 124;

#[cfg(windows)]
const _: () = {
    use std::mem::offset_of;

    use windows_sys::Win32::Networking::WinSock::{TCP_INFO_v0, TCP_INFO_v1};

    assert!(offset_of!(TCP_INFO_v0, Mss) == MSS);
    assert!(offset_of!(TCP_INFO_v0, RttUs) == RTT_US);
    assert!(offset_of!(TCP_INFO_v0, MinRttUs) == MIN_RTT_US);
    assert!(offset_of!(TCP_INFO_v0, BytesInFlight) == BYTES_IN_FLIGHT);
    assert!(offset_of!(TCP_INFO_v0, Cwnd) == CWND);
    assert!(offset_of!(TCP_INFO_v0, SndWnd) == SND_WND);
    assert!(offset_of!(TCP_INFO_v0, BytesRetrans) == BYTES_RETRANS);
    assert!(offset_of!(TCP_INFO_v1, BytesRetrans) == BYTES_RETRANS);
    assert!(offset_of!(TCP_INFO_v1, SndLimTimeRwin) == SND_LIM_TIME_RWIN);
    assert!(offset_of!(TCP_INFO_v1, SndLimTimeCwnd) == SND_LIM_TIME_CWND);
    assert!(offset_of!(TCP_INFO_v1, SndLimTimeSnd) == SND_LIM_TIME_SND);
    assert!(size_of::<TCP_INFO_v1>() == RECORD_BYTES);
};

/// Bytes of version 1.
#[cfg(any(windows, test))]
pub(crate) const RECORD_BYTES: usize = 136;

#[cfg(test)]
mod tests {
    use super::*;

    const V0_BYTES: usize = 88;

    /// A record with a value of its own in each field of 32 bits.
    fn record(len: usize) -> Vec<u8> {
        let mut bytes = vec![0xff; len];
        let fields = [
            (MSS, 1460),
            (RTT_US, 20_300),
            (MIN_RTT_US, 20_000),
            (BYTES_IN_FLIGHT, 100_000),
            (CWND, 146_000),
            (SND_WND, 262_144),
            (BYTES_RETRANS, 2921),
            (SND_LIM_TIME_RWIN, 100),
            (SND_LIM_TIME_CWND, 700),
            (SND_LIM_TIME_SND, 200),
        ];
        for (at, value) in fields {
            if let Some(place) = bytes.get_mut(at..at + 4) {
                place.copy_from_slice(&u32::to_ne_bytes(value));
            }
        }
        bytes
    }

    fn info(len: usize) -> TcpInfo {
        TcpInfo::read(&record(len)).unwrap()
    }

    #[test]
    fn both_versions_have_the_common_fields() {
        for len in [V0_BYTES, RECORD_BYTES] {
            let info = info(len);
            let stats = TcpStats {
                retransmits: Some(3), // 2921 / 1460, rounded up
                cwnd_bytes: Some(146_000),
                snd_wnd_bytes: Some(262_144),
                rtt_us: Some(20_300),
                rttvar_us: None,
                pmtu_bytes: None,
                reordering: None,
            };
            assert_eq!(info.stats(), stats, "{len} bytes");
            assert_eq!((info.in_flight_bytes(), info.mss()), (100_000, Some(1460)));
        }
    }

    #[test]
    fn a_short_record_is_none_and_one_between_the_versions_is_the_older() {
        for len in 0..BYTES_RETRANS + 4 {
            assert_eq!(TcpInfo::read(&record(len)), None, "{len} bytes");
        }
        for len in V0_BYTES..SND_LIM_TIME_SND + 4 {
            assert_eq!(info(len), info(V0_BYTES), "{len} bytes");
        }
    }

    #[test]
    fn without_a_segment_size_nothing_is_said_of_segments() {
        let info = TcpInfo { mss: 0, ..info(V0_BYTES) };
        assert_eq!((info.mss(), info.stats().retransmits), (None, None));
        let nothing_resent = TcpInfo { resent_bytes: 0, mss: 1460, ..info };
        assert_eq!(nothing_resent.stats().retransmits, Some(0));
    }

    #[test]
    fn the_older_version_tells_nothing_of_waits() {
        let expected = TcpView {
            rtt_us: Some(20_300),
            waits: None,
            resent_bytes: Some(2921),
            delivery_bytes_per_sec: None,
            window_bytes: Some(262_144),
        };
        assert_eq!(SenderLooks::default().view(&info(V0_BYTES)), expected);
    }

    /// What is told of a second, of which the connection waited 100 ms for the window and 700 ms for
    /// the congestion window: 200 ms are the sender's.
    #[test]
    fn own_time_of_a_sender_is_told_by_what_is_in_flight_and_by_the_queue() {
        let own = info(RECORD_BYTES);
        for (name, info, busy_us, send_buffer_us) in [
            ("nothing to send", TcpInfo { in_flight_bytes: 0, ..own }, 800_000, 0),
            ("a path with room", own, 1_000_000, 200_000),
            ("a path with a queue", TcpInfo { rtt_us: 40_000, ..own }, 1_000_000, 0),
            ("an unknown path", TcpInfo { min_rtt_us: 0, ..own }, 1_000_000, 0),
        ] {
            let waits = SenderLooks::default().view(&info).waits;
            let expected = SenderWaits { busy_us, receive_window_us: 100_000, send_buffer_us };
            assert_eq!(waits, Some(expected), "{name}");
        }
    }

    #[test]
    fn each_look_judges_what_is_new_since_the_last() {
        let own = info(RECORD_BYTES);
        let at = |in_flight_bytes, sender_ms| {
            let limits = own.limits.map(|limits| Limits { sender_ms, ..limits });
            TcpInfo { in_flight_bytes, limits, ..own }
        };
        let mut looks = SenderLooks::default();
        let busy_us =
            [at(0, 1000), at(5000, 1040), at(0, 1070), at(1, 1072)].map(|info| looks.view(&info));
        let busy_us = busy_us.map(|view| view.waits.unwrap().busy_us);
        // 100 + 700, and of the sender's own time first 40 and at the end 2.
        assert_eq!(busy_us, [800_000, 840_000, 840_000, 842_000]);
    }
}
