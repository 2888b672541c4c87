//! Adapters that run the linerate engine on microcontrollers: one for smoltcp, which is polled, and
//! one for embassy-net, which is async. They only move bytes; every decision is the engine's.
//!
//! What is there: the engine, re-exported as [`engine`], and the features `smoltcp`,
//! `embassy-net` and `defmt`, which bring in the stacks in versions that build together. What is not
//! there yet: the adapters themselves, the firmware and the examples for boards.
#![no_std]
#![forbid(unsafe_code)]

pub use linerate_core as engine;
