#!/bin/sh
# Builds the bench of another commit in a worktree and runs it in turns with that of this tree: compare.sh BASE [--only NAME] …
set -eu
base=$1
shift
cd "$(dirname "$0")/../.."
target=$(cargo metadata --format-version 1 --no-deps | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
commit=$(git rev-parse --verify "$base^{commit}")
tree=$target/bench-compare/$commit
[ -e "$tree/.git" ] || git worktree add --quiet --detach "$tree" "$commit"

# Prints the path of the bench of the tree in the current folder, built into the target folder $1. Both trees share a folder of
# intermediate files, so that dependencies are compiled once; each has programs of its own, since measures start them.
build() {
    CARGO_TARGET_DIR=$1 CARGO_BUILD_BUILD_DIR=$target cargo bench --no-run --bench bench --message-format json |
        sed -n 's/.*"kind":\["bench"\].*"executable":"\([^"]*\)".*/\1/p' | tail -n 1
}

# The order matters where both have one path: what was built first is copied before the second takes its place.
built=$(cd "$tree" && build "$target/bench-compare/programs-$commit")
other=$target/bench-compare/bench-$commit
cp "$built" "$other"
exec "$(build "$target")" --against "$other" "$@"
