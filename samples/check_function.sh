#!/bin/sh
# A function in NumPy: the gradient that gradcli derives, and whether the one that was written by hand is right.
#
# usage: sh check_function.sh
set -eu
file=$(dirname "$0")/functions/pendulum.py
gradcli backward -F "$file:energy" --at theta=0.3,omega=1 --wrt theta,omega --only system,grad 2>/dev/null
echo
gradcli check "$file:energy" --gradient "$file:gradient" || echo "one is wrong"
