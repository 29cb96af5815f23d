# Tasks of this repository; `just --list` shows them.

# Run all tests.
test *args:
    cargo test --release {{args}}

# Run what a pull request must pass: formatting, lints, compilation of everything, tests.
gate:
    .ci/run

# Kill the program at every step of a large rename, and do everything at once for a while; takes half an hour.
soak:
    cargo test --release -- --ignored --nocapture crash_recovery::five_hundred_kills_in_a_rename_that_touches_two_hundred_notes soak::an_editor_commands_and_a_killed_watcher_share_a_vault_for_minutes server_processes::two_servers_and_the_command_line_write_a_thousand_notes_each_at_once apply::a_crash_at_any_step_of_a_rename_that_touches_two_hundred_notes

# Kill two processes that append to the shared vectors, as many times.
kill-shared-vectors count="200":
    SIDENOTE_TEST_KILLS={{count}} cargo test --release -- --ignored --nocapture shared_vectors::two_hundred_kills_leave_right_vectors

# Test vaults of a team; needs PostgreSQL 15 or newer, on the PATH or in the folder that SIDENOTE_TEST_POSTGRES names.
team:
    cargo test --release -- --ignored --nocapture team:: --skip team::network::

# Cut the network between a server of a team and its database, in network namespaces; needs root, iproute2, openssl and PostgreSQL.
team-network:
    cargo test --release -- --ignored --nocapture team::network::

# Let real clients log in with a real identity provider and call every tool of a team's server; installs them (npm, PyPI) in a
# temporary folder, and needs Node.js and PostgreSQL.
team-login:
    cargo build --release
    python3 tests/team/login.py target/release/sidenote

# Run every command of the guide of a team on two machines that are overlays of this one; needs root, overlayfs, iproute2,
# openssl, Node.js, PostgreSQL in /usr/lib/postgresql, and the network for apt and npm.
team-guide:
    cargo build --release
    python3 tests/team/guide.py target/release/sidenote

# Kill a server of a team two hundred times beside another one that writes, and find a thousand notes at once; takes minutes.
team-kills:
    SIDENOTE_TEST_KILLS=200 SIDENOTE_TEST_TEAM_NOTES=1000 cargo test --release -- --ignored --nocapture team::a_killed_server_loses_nothing_that_was_acknowledged team::what_one_server_writes_another_one_finds_at_once

# Change one vault from two synchronised folders and by an agent, at random and with kills; ten minutes, or SIDENOTE_TEST_SYNC_SECONDS.
sync-soak:
    SIDENOTE_TEST_SYNC_SECONDS=${SIDENOTE_TEST_SYNC_SECONDS:-600} cargo test --release -- --ignored --nocapture team::syncing::random_changes_and_kills_lose_no_line team::syncing::watched_folders_lose_no_line_when_the_watching_processes_are_killed

# Measure two servers of a team under load beside one without; needs PostgreSQL. For instance: just team-load --vaults 20 --notes 5000
team-load *args:
    cargo build --release
    python3 tests/team/load.py target/release/sidenote {{args}}

# Test the encoder alone, and compare it with the same weights in floats.
encoder:
    cargo test --release --manifest-path crates/encoder/Cargo.toml

# Merge the branches of a thousand random repositories with and without the merge driver, and kill the driver at many moments; needs git.
random-merges:
    SIDENOTE_DRIVER_KILLS=400 cargo test --release -- --include-ignored --nocapture merge_driver::a_thousand_random_merges_lose_nothing merge_driver::a_killed_driver_leaves_no_half_file

# Commit operations over five hundred random states of git's index, and kill two hundred of them at random moments; needs git.
commits:
    cargo test --release -- --ignored --nocapture commits::index_states::what_others_staged_stays_staged_in_five_hundred_states commits::crashes::two_hundred_kills_in_an_operation_and_its_commit_lose_nothing

# Repair links after as many random histories of git; takes some seconds for each.
repair-histories count="200":
    SIDENOTE_TEST_HISTORIES={{count}} cargo test --release -- repair_histories

# Kill the program two hundred times in a repair, and in a search of a past revision; takes minutes and needs git.
repair-kills:
    cargo test --release -- --ignored --nocapture repair::two_hundred_killed_repairs_are_whole_or_nothing looking_back::two_hundred_killed_searches_at_a_revision_leave_a_whole_cache

# Compile the tests for Windows and run them under Wine; for instance: just wine parse:: search::
wine *tests:
    CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER="{{justfile_directory()}}/tests/wine/run.sh" cargo test --release --target x86_64-pc-windows-gnu --lib --test it -- {{tests}}

# Check licences, advisories and duplicates of dependencies; needs cargo-deny.
deny:
    cargo deny check

# Compile everything with the oldest toolchain that is supported.
msrv:
    rustup toolchain install 1.95 --profile minimal
    cargo +1.95 check --all-targets

# Check the links of the manual and build it; the building needs mdbook.
docs:
    cargo test --release -- manual_links
    mdbook build docs

# Compile the fuzz targets, what serves the conformance suite, and the core without the features on by default.
check-extras:
    cargo check --features conformance
    cargo clippy -p sidenote --no-default-features -- -D warnings
    cargo check --manifest-path fuzz/Cargo.toml --target-dir target

# Feed a parser or rewriter with random input: note, rewrite, frontmatter, query, journal; needs cargo-fuzz and nightly.
fuzz target runs="10000000":
    mkdir -p fuzz/corpus/{{target}}
    cargo +nightly fuzz run -s none {{target}} fuzz/corpus/{{target}} fuzz/seeds/{{target}} -- -runs={{runs}} -max_len=256

# Build the release binary with debug information in a file of its own, target/release-debug/sidenote.dwp.
release-debug:
    cargo build --profile release-debug

# Check formatting and lints.
lint:
    cargo fmt --all --check
    cargo clippy --all-targets -- -D warnings

# Format the code.
fmt:
    cargo fmt --all

# Measure; for instance: just bench --notes 1000 --only bm25
bench *args:
    cargo bench -- {{args}}

# Measure this commit and another one in turns, and print the ratios; for instance: just bench-compare main --only bm25 --rounds 7
bench-compare base *args:
    tests/bench/compare.sh {{base}} {{args}}

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

# Write the generated pages of docs/src/reference anew, to be read in the diff.
reference:
    SIDENOTE_ACCEPT=1 cargo test --release --test it -- reference::

# Write THIRD-PARTY.md anew: the licenses of what goes into the binary.
licenses:
    python3 packaging/licenses.py

# Get what the cross builds need, as far as that needs no rights of the administrator, in target/dist-tools.
dist-tools:
    python3 packaging/cross.py --fetch

# Build the program for every target that can be built here, and make every package of them, in target/dist.
dist *targets:
    python3 packaging/cross.py {{targets}}
    python3 packaging/dist.py target/programs

# Make every package of the programs in a folder (such as FOLDER/x86_64-unknown-linux-gnu/sidenote), in target/dist.
package binaries:
    python3 packaging/dist.py {{binaries}}

# Try the release binary on a copy of the example vault: index, search, move, undo, MCP.
smoke:
    cargo build --release
    tests/smoke.sh target/release/sidenote

# Install the packages of target/dist into clean environments and use them.
check-dist *args:
    python3 packaging/check.py {{args}}

# Make an MCP bundle of the release binary for this machine, and the registry's description of it, in target/bundle.
bundle:
    cargo build --release
    python3 packaging/mcpb/bundle.py target/bundle "$(rustc -vV | sed -n 's/^host: //p')=target/release/sidenote"
