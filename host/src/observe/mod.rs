//! What a job tells of itself: logs, progress, signs of life. Names and numbers, never a value.

pub mod heartbeat;
pub mod log;
pub mod progress;
