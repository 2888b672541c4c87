//! The server and the client on two embassy-net stacks with a cable between them, in virtual time: every
//! way of moving data, and every way of not ending well.

mod support;

use linerate_embedded::engine::test::TestSettings;
use support::cases::{assert_measures, every_case, every_way};
use support::stacks::World;

every_case!(World);

#[test]
fn every_way_is_measured_over_ipv6() {
    // An IPv6 packet of 1500 bytes less the headers: 40 + 8.
    let shorter = |it: TestSettings| TestSettings { block_bytes: it.block_bytes.min(1452), ..it };
    assert_measures(&mut World::over_ipv6(), every_way().map(shorter));
}
