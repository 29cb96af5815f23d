#!/usr/bin/env bash
# The smoke test: smoke.sh [RUNNER] PROGRAM. In a temporary copy of the example vault it indexes, searches, moves a note
# with links, takes that back and serves MCP, and checks what comes out. RUNNER starts a program of another system.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
(($# == 1 || $# == 2)) || { echo "usage: smoke.sh [RUNNER] PROGRAM" >&2; exit 2; }
command=()
for part in "$@"; do
  command+=("$(cd "$(dirname "$part")" && pwd)/$(basename "$part")")
done
# A test must fail where the program hangs; an emulated one is slow.
limit=(timeout "${SIDENOTE_SMOKE_SECONDS:-300}")
# macOS has no such program; there, a workflow's own limit ends the test.
command -v timeout >/dev/null || limit=(env)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r "$here/../example-vault" "$work/vault"
rm -rf "$work/vault/.sidenote"
cp -r "$work/vault" "$work/before"
mkdir "$work/home"
cd "$work/vault"
export SIDENOTE_NOW=2026-11-21

note="How links survive a rename"
moved="Links after a move"

fail() {
  echo "smoke test failed: $1" >&2
  sed 's/^/  | /' "$work/out" "$work/err" >&2
  exit 1
}

# Runs the program on the vault; its output is in $work/out. The path of the vault is relative, so that it needs no
# translation for a program of Windows.
run() {
  "${limit[@]}" env HOME="$work/home" "${command[@]}" --vault . "$@" >"$work/out" 2>"$work/err" ||
    fail "\`sidenote $*\` ended with $?"
}

# Requires a text in the last output: $1, called $2 where it fails.
expect() {
  grep -qF -- "$1" "$work/out" || fail "$step: the output has no ${2:-$1}"
}

# Lists the notes and canvases that name the text in $1, without the index.
naming() {
  grep -rlF --include='*.md' --include='*.canvas' -- "[[$1" . | sort
}

passed() {
  echo "ok: $step"
}

step=index
run index
expect "55 notes"
passed

step=search
run search "how do links survive a rename" --limit 1
expect "Tour/$note.md"
passed

step="move a note with links"
linking=$(naming "$note")
[[ $(wc -l <<<"$linking") -ge 3 ]] || fail "$step: the example vault has fewer than three notes with links to it"
run move "$note" "Reference/$moved.md"
[[ -e Reference/$moved.md && ! -e Tour/$note.md ]] || fail "$step: the note is not where it should be"
[[ $(naming "$moved") == "$linking" ]] || fail "$step: other notes have links to it than before: $(naming "$moved")"
[[ -z $(naming "$note") ]] || fail "$step: old links are left: $(naming "$note")"
run search "how do links survive a rename" --limit 5
expect "Reference/$moved.md"
passed

step="undo, byte for byte"
run undo
diff -r --exclude=.sidenote "$work/before" . >"$work/out" || fail "$step: files differ"
passed

step="MCP over standard input and output"
printf '%s\n' \
  '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"smoke","version":"1"}}}' \
  '{"jsonrpc":"2.0","method":"notifications/initialized"}' \
  '{"jsonrpc":"2.0","id":2,"method":"tools/list"}' \
  '{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"search_notes","arguments":{"query":"links rename","limit":1}}}' \
  >"$work/requests"
# The server ends when its input is closed, and answers what it was asked before that.
run mcp <"$work/requests"
expect '"serverInfo":{"name":"sidenote"' "answer to initialize"
expect '"name":"search_notes"' "tool search_notes"
grep -F '"id":3' "$work/out" | grep -qF "Tour/$note.md" || fail "$step: search_notes does not find the note"
[[ $(grep -c '^{"jsonrpc":"2.0","id":[123],"result":' "$work/out") -eq 3 ]] || fail "$step: there are not three results"
passed
