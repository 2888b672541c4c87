//! What a client asks for: any bytes as the parameters document.

use linerate_core::protocol::json::DocumentError;
use linerate_core::protocol::parameters::{
    ClientText, OutgoingParameters, ParametersReader, ReceivedParameters, ReceivedText,
};
use linerate_core::test::{
    MAX_BURST, MAX_MSS, MAX_OMIT_SECS, MAX_PARALLEL, MAX_SECONDS, MAX_TCP_BLOCK, MAX_UDP_BLOCK,
    MAX_WINDOW, MIN_UDP_BLOCK, Offload, Protocol, TestSettings,
};

use super::documents::{fed, written};
use super::input::Chunks;

/// All bytes are one document.
pub fn parameters(data: &[u8]) {
    if data.is_empty() {
        return;
    }
    let [whole, others @ ..] = Chunks::of(data).map(|chunks| read::<ROOM>(data, chunks));
    for other in &others {
        assert_same(&whole, other);
    }
    let narrow = read::<16>(data, Chunks::Whole);
    let Ok(received) = whole else { return };
    check_ranges(&received.settings);
    let narrow = narrow.expect("texts that do not fit are left out");
    assert_eq!(narrow.settings, received.settings, "room for texts is all that differs");
    check_texts(&received.text, &narrow.text);
    check_again(&received);
}

/// More than any input has.
const ROOM: usize = 8192;

fn read<const T: usize>(
    body: &[u8],
    chunks: Chunks,
) -> Result<ReceivedParameters<T>, DocumentError> {
    let mut reader = ParametersReader::<T>::new();
    fed(&mut reader, body, chunks)?;
    reader.finish()
}

fn assert_same(
    one: &Result<ReceivedParameters<ROOM>, DocumentError>,
    other: &Result<ReceivedParameters<ROOM>, DocumentError>,
) {
    match (one, other) {
        (Ok(one), Ok(other)) => {
            assert_eq!(one.settings, other.settings);
            assert_eq!(one.extension, other.extension);
            assert_eq!(texts(&one.text), texts(&other.text));
        }
        (Err(one), Err(other)) => assert_eq!(one, other),
        _ => panic!("{one:?} differs from {other:?}"),
    }
}

fn texts<const T: usize>(text: &ReceivedText<T>) -> [Option<&str>; 5] {
    [text.title(), text.extra_data(), text.congestion(), text.auth_token(), text.client_version()]
}

/// What may be in the settings of a test, as `TestSettings` documents it.
fn check_ranges(settings: &TestSettings) {
    let within = |value: Option<u32>, min: u32, max: u32| {
        assert!(value.is_none_or(|value| (min..=max).contains(&value)), "{settings:?}");
    };
    within(Some(settings.parallel.into()), 1, MAX_PARALLEL.into());
    within(Some(settings.omit_secs), 0, MAX_OMIT_SECS);
    within(settings.limits.seconds, 1, MAX_SECONDS);
    match settings.protocol {
        Protocol::Tcp | Protocol::Sctp => within(Some(settings.block_bytes), 1, MAX_TCP_BLOCK),
        Protocol::Udp => within(Some(settings.block_bytes), MIN_UDP_BLOCK, MAX_UDP_BLOCK),
    }
    within(settings.burst.map(u32::from), 1, MAX_BURST.into());
    within(settings.window_bytes, 1, MAX_WINDOW);
    within(settings.mss_bytes, 1, MAX_MSS);
    within(settings.flow_label, 1, (1 << 20) - 1);
    within(settings.server_affinity.map(u32::from), 0, 1024);
    for rate in [settings.bitrate, settings.fq_rate].into_iter().flatten() {
        assert!(rate.0 > 0, "no rate is none, not zero");
    }
    for limit in [settings.limits.bytes, settings.limits.blocks].into_iter().flatten() {
        assert!(limit > 0, "no limit is none, not zero");
    }
}

fn check_texts(all: &ReceivedText<ROOM>, some: &ReceivedText<16>) {
    assert!(!all.did_not_fit());
    let left_out = texts(all).iter().zip(texts(some)).filter(|(all, some)| *all != some).count();
    assert_eq!(left_out > 0, some.did_not_fit());
    assert!(texts(some).iter().flatten().map(|text| text.len()).sum::<usize>() <= 16);
    assert!(texts(some).iter().zip(texts(all)).all(|(some, all)| some.is_none() || *some == all));
}

/// Sent on as a client would, the same test is asked for.
fn check_again(received: &ReceivedParameters<ROOM>) {
    let text = ClientText {
        title: received.text.title(),
        extra_data: received.text.extra_data(),
        congestion: received.text.congestion(),
        auth_token: received.text.auth_token(),
    };
    let client_version = received.text.client_version().unwrap_or_default();
    let extension = received.extension;
    let settings = &received.settings;
    let body =
        written(&OutgoingParameters { settings, text: &text, client_version, extension }, b"");
    let again = read::<ROOM>(&body, Chunks::Whole).expect("what was accepted is accepted again");
    assert_eq!(again.settings, as_sent(*settings));
    assert_eq!(again.extension, extension);
    let sent = ReceivedText::<ROOM>::clone(&received.text);
    let [sent @ .., _] = texts(&sent);
    let [came @ .., version] = texts(&again.text);
    assert_eq!((came, version), (sent, Some(client_version)));
}

/// What a client cannot say: a pacing timer of zero, which is the default for it, and offload of
/// TCP, which has none.
fn as_sent(settings: TestSettings) -> TestSettings {
    let defaults = TestSettings::new(settings.protocol);
    let pacing_timer_us = match settings.pacing_timer_us {
        0 => defaults.pacing_timer_us,
        some => some,
    };
    let offload = match settings.protocol {
        Protocol::Tcp | Protocol::Sctp => Offload::default(),
        Protocol::Udp => settings.offload,
    };
    TestSettings { pacing_timer_us, offload, ..settings }
}
