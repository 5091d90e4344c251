#!/bin/sh
# Build the Jacobian row by row, with one backward call for each output: v is one-hot, and vᵀJ is one row of J.
# PyTorch can build a Jacobian in no other way than this, as backward gives vᵀJ and never J itself.
#
# usage: sh jacobian_rows.sh [SYSTEM.grad]      (needs jq)
set -eu
system=${1:-$(dirname "$0")/vector_to_vector.grad}

names=$(gradcli jacobian -F "$system" -f json)
printf '%s\n' "$names" | jq -r '"columns: " + (.columns | join(" "))'
printf '%s\n' "$names" | jq -r '.rows[]' | while read -r row; do
    gradcli backward -F "$system" --v "onehot:$row" -f json |
        jq -r --arg row "$row" '"\($row): " + ([.grad | .. | numbers + 0 | tostring] | join(" "))'
done
