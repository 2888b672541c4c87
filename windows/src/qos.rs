//! Marking the packets of a socket through flows of qWAVE, since Windows passes over `IP_TOS`: which
//! values a class makes, in which order the calls go, and what a refusal means. Source: the reference
//! of `qos2.h`. The calls themselves are `qwave`'s.

use std::io;

/// The calls, on one handle; its end ends what it did.
pub(crate) trait Subsystem {
    /// `QOSAddSocketToFlow`: a new flow of this type for the connected socket.
    fn add_flow(&mut self, traffic_type: i32) -> io::Result<u32>;
    /// `QOSSetFlow` with `QOSSetOutgoingDSCPValue`.
    fn set_dscp(&mut self, flow: u32, dscp: u32) -> io::Result<()>;
}

/// A connected socket's packets have a class as long as this lives.
#[derive(Debug)]
pub(crate) struct Flow<S>(#[allow(dead_code, reason = "kept for its drop")] S);

impl<S: Subsystem> Flow<S> {
    /// Marks with the upper six bits of a TOS or traffic class byte.
    ///
    /// # Errors
    /// Of kind `Unsupported` where Windows does not let this program have it; nothing is marked then.
    pub(crate) fn marked(class: u8, subsystem: impl FnOnce() -> io::Result<S>) -> io::Result<Self> {
        let (dscp, ecn) = (class >> 2, class & 3);
        if ecn != 0 {
            let nearest = class - ecn;
            let message = format!(
                "Windows sets the two lowest bits (ECN) itself; --tos {nearest} has none of them"
            );
            return Err(unsupported(message));
        }
        let mut subsystem = subsystem()?;
        let traffic_type = traffic_type(dscp);
        let flow = subsystem.add_flow(traffic_type).map_err(refused)?;
        match subsystem.set_dscp(flow, dscp.into()) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                if own_dscp(traffic_type) == dscp {
                    return Ok(Self(subsystem));
                }
                let message = "Windows lets only administrators and network operators choose any \
                               class; others can have --dscp 8, 40 and 56";
                return Err(unsupported(message.into()));
            }
            result => result.map_err(refused)?,
        }
        Ok(Self(subsystem))
    }
}

/// A flow's type says how to treat it where marks are not looked at: the one whose own mark it is, or
/// the one of the same class.
fn traffic_type(dscp: u8) -> i32 {
    match dscp {
        0..8 => BEST_EFFORT,
        8..16 => BACKGROUND,
        16..32 => EXCELLENT_EFFORT,
        32..48 => AUDIO_VIDEO,
        48..56 => VOICE,
        _ => CONTROL,
    }
}

/// The mark that a type has without being asked.
fn own_dscp(traffic_type: i32) -> u8 {
    match traffic_type {
        BACKGROUND => 8,
        EXCELLENT_EFFORT | AUDIO_VIDEO => 40,
        VOICE | CONTROL => 56,
        _ => 0,
    }
}

fn refused(error: io::Error) -> io::Error {
    unsupported(format!("Windows does not mark this connection: {error}"))
}

pub(crate) fn unsupported(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, message)
}

/// `QOS_TRAFFIC_TYPE`.
const BEST_EFFORT: i32 = 0;
const BACKGROUND: i32 = 1;
const EXCELLENT_EFFORT: i32 = 2;
const AUDIO_VIDEO: i32 = 3;
const VOICE: i32 = 4;
const CONTROL: i32 = 5;

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// Writes down what is done with it, and refuses what it is told to.
    struct Recorder<'a> {
        calls: &'a RefCell<Vec<String>>,
        add: io::Result<u32>,
        set: Option<io::ErrorKind>,
    }

    impl Subsystem for Recorder<'_> {
        fn add_flow(&mut self, traffic_type: i32) -> io::Result<u32> {
            self.calls.borrow_mut().push(format!("add {traffic_type}"));
            std::mem::replace(&mut self.add, Ok(0))
        }

        fn set_dscp(&mut self, flow: u32, dscp: u32) -> io::Result<()> {
            self.calls.borrow_mut().push(format!("set {flow} {dscp}"));
            self.set.map_or(Ok(()), |kind| Err(kind.into()))
        }
    }

    impl Drop for Recorder<'_> {
        fn drop(&mut self) {
            self.calls.borrow_mut().push("close".into());
        }
    }

    /// What was called until it was marked or refused, how that ended, and what was called in all.
    fn mark(
        class: u8,
        add: io::Result<u32>,
        set: Option<io::ErrorKind>,
    ) -> (String, Result<(), String>, String) {
        let calls = RefCell::default();
        let subsystem = || Ok(Recorder { calls: &calls, add, set });
        let joined = || calls.borrow().join(", ");
        let flow = Flow::marked(class, subsystem);
        let so_far = joined();
        let ended = match &flow {
            Ok(_) => Ok(()),
            Err(error) => {
                assert_eq!(error.kind(), io::ErrorKind::Unsupported);
                Err(error.to_string())
            }
        };
        drop(flow);
        (so_far, ended, joined())
    }

    #[test]
    fn a_flow_is_added_then_marked_and_closed_with_its_owner() {
        let (so_far, ended, in_all) = mark(46 << 2, Ok(7), None);
        assert_eq!(ended, Ok(()));
        assert_eq!((&*so_far, &*in_all), ("add 3, set 7 46", "add 3, set 7 46, close"));
    }

    #[test]
    fn without_rights_a_type_whose_own_mark_was_asked_for_is_enough() {
        let denied = Some(io::ErrorKind::PermissionDenied);
        for (dscp, traffic_type) in [(8, 1), (40, 3), (56, 5)] {
            let (so_far, ended, _) = mark(dscp << 2, Ok(7), denied);
            assert_eq!(so_far, format!("add {traffic_type}, set 7 {dscp}"));
            assert_eq!(ended, Ok(()), "{dscp}");
        }
        for dscp in [1, 10, 26, 46, 48, 63] {
            let (so_far, ended, _) = mark(dscp << 2, Ok(7), denied);
            assert!(ended.unwrap_err().contains("only administrators"), "{dscp}");
            assert!(so_far.ends_with(", close"), "{so_far}: nothing is marked otherwise");
        }
    }

    #[test]
    fn refusals_close_the_handle_and_say_why() {
        let (calls, ended, _) = mark(46 << 2, Err(io::Error::other("off the link")), None);
        assert_eq!(calls, "add 3, close");
        assert_eq!(ended.unwrap_err(), "Windows does not mark this connection: off the link");
        let (calls, ended, _) = mark(46 << 2, Ok(1), Some(io::ErrorKind::NotFound));
        assert_eq!(calls, "add 3, set 1 46, close");
        assert!(ended.is_err());
    }

    #[test]
    fn bits_of_ecn_are_refused_before_anything_is_called() {
        let (calls, ended, _) = mark(0xb9, Ok(7), None);
        assert_eq!(calls, "");
        assert!(ended.unwrap_err().ends_with("--tos 184 has none of them"));
    }

    #[test]
    fn every_class_has_a_type_that_is_treated_alike() {
        let types = |dscps: &[u8]| dscps.iter().map(|&dscp| traffic_type(dscp)).collect::<Vec<_>>();
        let named = [0, 8, 10, 18, 26, 34, 40, 46, 48, 56, 63];
        assert_eq!(types(&named), [0, 1, 1, 2, 2, 3, 3, 3, 4, 5, 5]);
    }
}
