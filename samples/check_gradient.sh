#!/bin/sh
# Check a derivative that you found by hand, at points of your choice.
# Exit status: 0 right at every point, 1 wrong at one, 2 a mistake in what was asked.
#
# usage: sh check_gradient.sh FUNCTION INPUT DERIVATIVE POINT...      (needs jq)
#   sh check_gradient.sh "x*sin(a*x)" x "sin(a*x) + a*x*cos(a*x)" x=0.5,a=2 x=-1,a=3
set -eu
[ $# -ge 4 ] || { echo "usage: sh check_gradient.sh FUNCTION INPUT DERIVATIVE POINT..." >&2; exit 2; }
function=$1 input=$2 derivative=$3
shift 3

# Both are outputs of one system: the row of `f` in its Jacobian is compared with the value of `hand`.
compare='.jacobian[0][0] as $true | .value.hand as $hand
    | if ($true - $hand | fabs) <= 1e-9*(1 + ($true | fabs)) then "right" else "wrong: \($hand), not \($true)" end'
status=0
for point in "$@"; do
    result=$(gradcli jacobian "f = $function" "hand = $derivative" --outputs f,hand --wrt "$input" --at "$point" -f json)
    verdict=$(printf '%s\n' "$result" | jq -r "$compare") || exit 2
    echo "$point: $verdict"
    [ "$verdict" = right ] || status=1
done
exit $status
