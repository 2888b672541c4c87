//! Adapters that run the linerate engine on microcontrollers. They only move bytes; every decision
//! is the engine's.
//!
//! What is there: the engine, re-exported as [`engine`], and with the feature `smoltcp` an iperf3
//! server on that stack, in the module `smoltcp`. With the feature `defmt` everything that it tells
//! can be logged. What is not there: a client, and the adapter for embassy-net.
#![no_std]
#![forbid(unsafe_code)]

pub use linerate_core as engine;

#[cfg(feature = "smoltcp")]
pub mod smoltcp;
