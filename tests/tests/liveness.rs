//! Clients that are killed, silent, stuck or unplugged: the server lets go of each within the time that
//! `docs/server.md` states, and says who it was and why; and it lets go of none that is only quiet.

mod liveness {
    mod killed;
    #[cfg(target_os = "linux")]
    mod outages;
    mod silent;
}
