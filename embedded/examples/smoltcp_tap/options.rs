//! What was typed.

use linerate_embedded::engine::test::{Direction, Limits, Protocol, TestSettings};
use linerate_embedded::engine::units::{parse_rate, parse_size};
use smoltcp::wire::{IpAddress, IpCidr, IpEndpoint};

/// A device, the address on it, and for a client what to measure with whom.
pub(crate) struct Options {
    pub(crate) tap: String,
    pub(crate) address: IpCidr,
    pub(crate) order: Option<(IpEndpoint, TestSettings)>,
}

impl Options {
    pub(crate) fn parse(mut args: impl Iterator<Item = String>) -> Result<Self, String> {
        let tap = args.next().ok_or("which TAP device?")?;
        let address = args.next().ok_or("which address on it?")?;
        let address = address.parse().map_err(|()| format!("{address} is no ADDRESS/PREFIX"))?;
        let words: Vec<String> = args.collect();
        let order = if words.is_empty() { None } else { Some(parse_order(&words)?) };
        Ok(Self { tap, address, order })
    }
}

fn parse_order(words: &[String]) -> Result<(IpEndpoint, TestSettings), String> {
    let is_udp = words.iter().any(|word| word == "-u");
    let protocol = if is_udp { Protocol::Udp } else { Protocol::Tcp };
    let mut settings = TestSettings::new(protocol);
    let (mut host, mut port, mut block_bytes) = (None, 5201, None);
    let mut words = words.iter();
    while let Some(option) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{option} needs a value"));
        match option.as_str() {
            "-u" => {}
            "-R" => settings.direction = Direction::Reverse,
            "--bidir" => settings.direction = Direction::Bidirectional,
            "-c" => host = Some(number::<IpAddress>(option, value()?)?),
            "-p" => port = number(option, value()?)?,
            "-P" => settings.parallel = number(option, value()?)?,
            "-O" => settings.omit_secs = number(option, value()?)?,
            "-t" => settings.limits.seconds = Some(number(option, value()?)?),
            "-n" => {
                let bytes = Some(size(option, value()?)?);
                settings.limits = Limits { bytes, ..Limits::default() };
            }
            "-l" => block_bytes = u32::try_from(size(option, value()?)?).ok(),
            "-b" => {
                let rate = parse_rate(value()?).map_err(|why| format!("{option}: {why}"))?;
                settings.bitrate = (rate.0 > 0).then_some(rate);
            }
            _ => return Err(format!("{option} is not known")),
        }
    }
    let host = host.ok_or("-c says with whom")?;
    settings.block_bytes = block_bytes.unwrap_or(match (protocol, host) {
        // An IPv6 packet of 1500 bytes less the headers: 40 + 8.
        (Protocol::Udp, IpAddress::Ipv6(_)) => 1452,
        _ => settings.block_bytes,
    });
    Ok((IpEndpoint::new(host, port), settings))
}

fn number<T: std::str::FromStr>(option: &str, text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{option} cannot be {text}"))
}

fn size(option: &str, text: &str) -> Result<u64, String> {
    parse_size(text).map_err(|why| format!("{option}: {why}"))
}
