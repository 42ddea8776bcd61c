//! Guests built for the host and the tests.
