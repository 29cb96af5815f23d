#!/bin/sh
# Builds the bench of another commit in a worktree and runs it in turns with that of this tree: compare.sh BASE [--only NAME] …
set -eu
base=$1
shift
cd "$(dirname "$0")/../.."
# Both share a target folder, so that dependencies are compiled once.
target=$(cargo metadata --format-version 1 --no-deps | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
commit=$(git rev-parse --verify "$base^{commit}")
tree=$target/bench-compare/$commit
[ -e "$tree/.git" ] || git worktree add --detach "$tree" "$commit"

# Prints the path of the bench of the tree in the current folder.
build() {
    CARGO_TARGET_DIR=$target cargo bench --no-run --bench bench --message-format json |
        sed -n 's/.*"kind":\["bench"\].*"executable":"\([^"]*\)".*/\1/p' | tail -n 1
}

built=$(cd "$tree" && build)
other=$target/bench-compare/bench-$commit
cp "$built" "$other"
exec "$(build)" --against "$other" "$@"
