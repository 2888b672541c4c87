//! What a client is to do: the options of an iperf3 client as words. They come from QEMU's command line
//! (`-semihosting-config arg=NAME,arg=WORD,...`), else from the build's setting `LINERATE_CLIENT`, where
//! a real board would have them.

use core::net::{IpAddr, SocketAddr};

use linerate_embedded::engine::protocol::cookie::Cookie;
use linerate_embedded::engine::test::{Direction, Limits, Protocol, TestSettings};
use linerate_embedded::engine::units::{parse_rate, parse_size};
use semihosting::experimental::env;

use crate::{clock, network};

/// A test with a server.
#[derive(Debug, Clone, Copy)]
pub struct Order {
    /// Where the server is.
    pub server: SocketAddr,
    /// What is measured.
    pub settings: TestSettings,
}

impl Order {
    /// What this start is for. Words that cannot be read end the machine.
    pub fn read() -> Self {
        let arguments = env::args::<ARGUMENTS_BYTES>();
        let words = arguments.iter().flatten().skip(1).map(Result::unwrap_or_default);
        let mut words = words.peekable();
        let order = match words.peek() {
            Some(_) => Self::of(words),
            None => Self::of(BUILT_IN.split(' ')),
        };
        order.unwrap_or_else(|| {
            defmt::error!("the order cannot be read");
            semihosting::process::exit(2)
        })
    }

    /// `-u` changes the defaults, and so stands before what differs from them.
    fn of<'w>(mut words: impl Iterator<Item = &'w str>) -> Option<Self> {
        let mut settings = TestSettings::new(Protocol::Tcp);
        let (mut address, mut port) = (IpAddr::V4(network::GATEWAY), network::PORT);
        while let Some(word) = words.next() {
            let mut value = || words.next();
            match word {
                "-c" => address = value()?.parse().ok()?,
                "-p" => port = value()?.parse().ok()?,
                "-u" => settings = TestSettings::new(Protocol::Udp),
                "-R" => settings.direction = Direction::Reverse,
                "--bidir" => settings.direction = Direction::Bidirectional,
                "-P" => settings.parallel = value()?.parse().ok()?,
                "-O" => settings.omit_secs = value()?.parse().ok()?,
                "-b" => {
                    settings.bitrate = Some(parse_rate(value()?).ok()?).filter(|rate| rate.0 > 0)
                }
                "-l" => settings.block_bytes = parse_size(value()?).ok()?.try_into().ok()?,
                "-t" => settings.limits.seconds = Some(value()?.parse().ok()?),
                "-n" => {
                    let bytes = Some(parse_size(value()?).ok()?);
                    settings.limits = Limits { seconds: None, bytes, blocks: None };
                }
                _ => return None,
            }
        }
        Some(Self { server: SocketAddr::new(address, port), settings })
    }
}

/// The name of the next test. A real board asks its source of random numbers; here the moment of the
/// question has to do.
pub fn cookie() -> Cookie {
    let mut state = clock::ticks() | 1;
    Cookie::from_random(core::array::from_fn(|_| {
        // Marsaglia's xorshift with 32 bits.
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state.to_le_bytes()[3]
    }))
}

/// Used where the command line says nothing.
const BUILT_IN: &str = match option_env!("LINERATE_CLIENT") {
    Some(words) => words,
    None => "-c 10.0.2.2 -t 10",
};
const ARGUMENTS_BYTES: usize = 256;
