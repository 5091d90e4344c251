#!/bin/sh
# Check a file of claims, as a CI job does: silent if all are right, and else each wrong one with its reason.
#
# usage: sh check_model.sh [FILE]      (needs jq)
set -eu
folder=$(dirname "$0")
gradcli check -F "${1:-$folder/logistic_regression.grad}" -f json |
    jq -er 'select(.verdict != "right") | "\(.claim): \(.why)"' && exit 1
echo "all claims are right"
