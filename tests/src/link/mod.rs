//! One model of what a network does to packets, and a real network made of it: the pair in virtual
//! time uses the model alone, and on Linux a program in user space applies it to every frame that
//! goes between two network namespaces.
//!
//! | module | holds |
//! |---|---|
//! | [`model`] | when packets arrive, or that they never do |
//! | [`tap`] | two namespaces, a TAP device in each, and the link between them |
//! | [`trace`] | the truth about the data that went over it |
//! | [`told`] | what receivers tell of it, beside that truth |
//! | [`noise`] | what the link adds on its own |
//! | [`words`] | models as people type them |

pub mod model;
#[cfg(target_os = "linux")]
pub mod noise;
#[cfg(target_os = "linux")]
mod shovel;
#[cfg(target_os = "linux")]
pub mod tap;
pub mod told;
pub mod trace;
pub mod words;
