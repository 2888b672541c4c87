//! The server and the client on two embassy-net stacks with a cable between them, in virtual time: every
//! way of moving data, and every way of not ending well.

mod support;

use linerate_embedded::engine::test::TestSettings;
use support::cases::{assert_measures, every_way, in_world};
use support::stacks::World;

in_world!(World, cases:
    every_way_of_moving_data_is_measured_by_both_ends
    two_streams_one_way_share_all_there_is
    an_omitted_start_is_left_out_at_both_ends
    a_limit_of_bytes_is_received_to_the_last_byte
    a_rate_is_kept_by_a_sending_server
    frames_that_are_lost_only_cost_time
    a_client_says_what_it_has_no_room_for
    a_server_that_is_not_there_is_told_apart_from_one_that_is_silent
    an_interrupted_client_tells_its_server
    an_interrupted_server_tells_its_client_and_goes_on
    a_client_whose_cable_is_cut_gives_up_and_can_start_again
    wherever_a_client_breaks_off_the_next_one_is_served
);

in_world!(World, random_peer:
    an_honest_script_does_well
    a_silent_connection_is_turned_away_while_another_may_be_a_stream
    a_silent_connection_holds_its_place_no_longer_than_its_patience
    a_refused_client_that_stays_keeps_the_next_one_out_for_a_moment_only
    refused_clients_in_the_places_of_streams_make_room_for_the_next_test
    after_any_peer_the_next_client_is_served
    whatever_a_server_does_its_client_comes_to_an_end
);

#[test]
fn every_way_is_measured_over_ipv6() {
    // An IPv6 packet of 1500 bytes less the headers: 40 + 8.
    let shorter = |it: TestSettings| TestSettings { block_bytes: it.block_bytes.min(1452), ..it };
    assert_measures(&mut World::over_ipv6(), every_way().map(shorter));
}
