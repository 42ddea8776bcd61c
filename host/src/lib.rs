//! pgveil.
