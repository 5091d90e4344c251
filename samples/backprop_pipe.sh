#!/bin/sh
# Backpropagate through two systems in a pipe, as a network does from layer to layer.
# Forward: the first layer's output h is the second layer's input. Back: the second layer's h.grad is the first's v.
#
# usage: sh backprop_pipe.sh      (needs jq)
set -eu
samples=$(dirname "$0")

h=$(gradcli backward -F "$samples/layer1.grad" --v ones -f json | jq -c .value.h)
echo "two layers, one after the other"
gradcli backward -F "$samples/layer2.grad" --at "h=$h" --v 1,1 -f json |
    gradcli backward -F "$samples/layer1.grad" --v - -f json | jq -c .grad

echo "both layers at once"
gradcli backward -F "$samples/layers.grad" --v 1,1 -f json | jq -c .grad
