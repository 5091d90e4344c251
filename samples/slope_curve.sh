#!/bin/sh
# Write a function and its slope at many points as CSV, ready to plot. All points go into one call of gradcli.
#
# usage: sh slope_curve.sh [FUNCTION-OF-x FIRST STEP LAST]
set -eu
function=${1:-x**3 - 3*x}
points=$(seq "${2:--2}" "${3:-0.5}" "${4:-2}")
set --
for x in $points; do
    set -- "$@" --at "x=$x"
done
gradcli backward "y = $function" "$@" -f csv
