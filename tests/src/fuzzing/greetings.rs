//! The first bytes of a fresh connection, and the first datagram of a UDP stream.

use linerate_core::accept::{Greeting, GreetingReader};
use linerate_core::protocol::cookie::Cookie;
use linerate_core::protocol::datagram::Header;
use linerate_core::protocol::greeting::{self, NamedGreeting};

use super::input::Chunks;

/// All bytes are what a stranger says first.
pub fn greetings(data: &[u8]) {
    let bytes = &data[..data.len().min(Cookie::LEN)];
    for chunks in Chunks::of(data) {
        assert_eq!(read(data, chunks), (bytes.len(), Greeting::of(bytes)), "{chunks:?}");
    }
    assert_eq!(Greeting::of(data), Greeting::of(bytes), "what follows is not looked at");
    let mut foreign = false;
    for end in 0..=bytes.len() {
        let greeting = Greeting::of(&bytes[..end]);
        let is_foreign = matches!(greeting, Greeting::Foreign(_));
        assert!(is_foreign || !foreign, "a stranger stays one: {end}");
        foreign = is_foreign;
        match greeting {
            Greeting::Incomplete => assert!(end < Cookie::LEN),
            Greeting::Cookie(cookie) => check_cookie(cookie, bytes),
            Greeting::Foreign(_) => assert!(end > 0),
        }
    }
    if greeting::is_reply(data) {
        assert!(greeting::is_hello(data), "a reply is as short as a greeting");
    }
    check_named(data);
}

/// A greeting that names its test is read as it is written, and as nothing else.
fn check_named(data: &[u8]) {
    let (hello, reply) = (NamedGreeting::of_hello(data), NamedGreeting::of_reply(data));
    assert!(hello.is_none() || reply.is_none(), "one kind only");
    for (greeting, written) in
        [(hello, hello.map(|hello| hello.hello())), (reply, reply.map(|reply| reply.reply()))]
    {
        let (Some(greeting), Some(written)) = (greeting, written) else { continue };
        assert_eq!(written[..], *data, "{greeting:?} keeps every byte");
        assert!(greeting::is_no_data(data) && !greeting::is_hello(data));
    }
    if data.len() >= Header::len(false) && greeting::is_no_data(data) {
        let micros = u32::from_be_bytes(data[4..8].try_into().expect("four bytes"));
        assert!(micros >= 1_000_000, "no sender stamps its data like that");
    }
}

fn read(mut rest: &[u8], mut chunks: Chunks) -> (usize, Greeting) {
    let mut reader = GreetingReader::new();
    let (mut taken, mut greeting) = (0, Greeting::Incomplete);
    while !rest.is_empty() {
        let (consumed, said) = reader.read(chunks.next(&mut rest));
        taken += consumed;
        greeting = said;
    }
    (taken, greeting)
}

fn check_cookie(cookie: Cookie, bytes: &[u8]) {
    assert_eq!(cookie.as_bytes()[..], *bytes, "the bytes are kept as they came");
    let shown = cookie.to_string();
    assert!(shown.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' '), "{shown:?}");
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    assert_eq!(shown.len(), end, "a cookie ends at its first NUL");
    let mut cut = [0; Cookie::LEN];
    cut[..end].copy_from_slice(&bytes[..end]);
    assert_eq!(Cookie::from_bytes(cut), cookie, "what follows the NUL does not count");
}
