#!/bin/sh
# Find a minimum of f(x) by Newton's method: each step is x - f'(x)/f''(x), both from one call of `gradcli hessian`.
#
# usage: sh newton.sh [FUNCTION-OF-x START STEPS]      (needs jq)
set -eu
function=${1:-x**4 - 3*x**2 + x} x=${2:-2} steps=${3:-5}
for _ in $(seq "$steps"); do
    x=$(gradcli hessian "f = $function" --at "x=$x" -f json | jq '.at.x - .gradient[0]/.hessian[0][0]')
    echo "x = $x"
done
