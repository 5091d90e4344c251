#!/bin/sh
# Gradient descent in ten lines: each step goes against the gradient. The inputs of the loss are scalars.
# usage: sh gradient_descent.sh [LOSS POINT RATE]      (needs jq)
set -eu
loss=${1:-(x0 - 3)**2 + 2*(x1 + 1)**2} point=${2:-x0=0,x1=0} rate=${3:-0.25}
step='.grad as $grad | [.at | to_entries[] | "\(.key)=\(.value - $rate*$grad[.key])"] | join(",")'
for k in 1 2 3 4 5 6 7 8; do
    point=$(gradcli backward "loss = $loss" --at "$point" -f json | jq -r --argjson rate "$rate" "$step")
    echo "step $k: $point"
done
