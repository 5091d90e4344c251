#!/bin/sh
# Write a table in Markdown: what different cotangents v leave in .grad for one system.
#
# usage: sh cotangents.sh [SYSTEM.grad [V...]]
set -eu
system=${1:-$(dirname "$0")/elementwise.grad}
if [ $# -gt 1 ]; then shift; else set -- ones onehot:0 onehot:1 1,10 5,7; fi

echo '| v | gradient |'
echo '|---|---|'
for v in "$@"; do
    # Between the gradient's name and its value stands the arithmetic.
    grad=$(gradcli backward -F "$system" --v "$v" --only grad | sed 's/ = .* = / = /' | paste -s -d ';' -)
    echo "| \`$v\` | $grad |"
done
