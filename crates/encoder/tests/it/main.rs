//! Tests the encoder: its file, its tokenizer against a plain one, its vectors against floats.
#![allow(clippy::unwrap_used, reason = "tests")]

mod floats;
mod instructions;
mod tokenizer;
mod vectors;
