//! it

mod session;
