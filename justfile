# Tasks of this repository; `just --list` shows them.

# Run all tests.
test *args:
    cargo test --release {{args}}

# Kill the program at every step of a large rename, and do everything at once for a while; takes half an hour.
soak:
    cargo test --release -- --ignored --nocapture

# Feed a parser or rewriter with random input: note, rewrite, frontmatter, query, journal; needs cargo-fuzz and nightly.
fuzz target runs="10000000":
    mkdir -p fuzz/corpus/{{target}}
    cargo +nightly fuzz run -s none {{target}} fuzz/corpus/{{target}} fuzz/seeds/{{target}} -- -runs={{runs}} -max_len=256

# Check formatting and lints.
lint:
    cargo fmt --check
    cargo clippy --all-targets -- -D warnings

# Format the code.
fmt:
    cargo fmt

# Measure; for instance: just bench --notes 1000 --only bm25
bench *args:
    cargo bench -- {{args}}

# Run the official conformance suite, both revisions of the protocol; installs it (PyPI, npm) in a temporary folder.
conformance:
    cargo build --release --features conformance
    tests/clients/conformance.sh target/release/sidenote

# Let real clients call every tool; installs them (PyPI, npm) in a temporary folder.
clients:
    cargo build --release
    tests/clients/run.sh target/release/sidenote

# Take over changed snapshots, to be read in the diff; needs cargo-insta.
accept-snapshots:
    cargo insta test --release --accept

# Write THIRD-PARTY.md anew: the licenses of what goes into the binary.
licenses:
    python3 assets/licenses.py

# Make an MCP bundle of the release binary, and the registry's description of it, in target/bundle.
bundle:
    cargo build --release
    python3 assets/mcp/bundle.py target/release/sidenote target/bundle
