//! Peers that break the rules, at every point of the exchange. A server ends such a connection and
//! goes on serving honest clients; a client ends with a non-zero code, one clear line, and in time.

mod hostile {
    mod client_against_server;
    mod crowds;
    mod parameters;
    mod results;
    mod server_against_client;
}
