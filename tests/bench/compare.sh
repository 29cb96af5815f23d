#!/bin/sh
# Builds the bench of another commit and runs it in turns with that of this tree: compare.sh BASE [--only NAME] …
set -eu
base=$1
shift
cd "$(dirname "$0")/../.."
target=$(cargo metadata --format-version 1 --no-deps | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
commit=$(git rev-parse --verify "$base^{commit}")
# One worktree for every commit: cargo sees by the times of files what a checkout changed. It has a target folder of its own,
# since cargo would take what this tree built for that of the other one, and measures start the program of their commit.
tree=$target/bench-compare/tree
if [ -e "$tree/.git" ]; then
    git -C "$tree" checkout --quiet --force --detach "$commit"
else
    git worktree add --quiet --detach "$tree" "$commit"
fi

# Builds the bench of the tree in the current folder into the target folder $1, and prints its path.
build() {
    CARGO_TARGET_DIR=$1 cargo bench --no-run --bench bench --message-format json |
        sed -n 's/.*"kind":\["bench"\].*"executable":"\([^"]*\)".*/\1/p' | tail -n 1
}

other=$(cd "$tree" && build "$target/bench-compare/target")
exec "$(build "$target")" --against "$other" "$@"
