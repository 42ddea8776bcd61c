//! Measures pgveil beside PostgreSQL's own subscription.

fn main() {}
