#!/bin/sh
# Check a derivative that you found by hand, at points of your choice.
# Exit status: 0 right at every point; 1 wrong at one; 2 a mistake in what was asked, or a point that decides nothing.
#
# usage: sh check_gradient.sh FUNCTION INPUT DERIVATIVE POINT...      (needs jq)
#   sh check_gradient.sh "x*sin(a*x)" x "sin(a*x) + a*x*cos(a*x)" x=0.5,a=2 x=-1,a=3
#   sh check_gradient.sh "sum(x**2)" x "2*x" "x=[1,2,3]"
set -eu
[ $# -ge 4 ] || { echo "usage: sh check_gradient.sh FUNCTION INPUT DERIVATIVE POINT..." >&2; exit 2; }
function=$1 input=$2 derivative=$3
shift 3

# Both are outputs of one system: the rows of `f` in its Jacobian are compared with the value of `hand`, element by
# element. What is not finite is a string in JSON.
compare='([.rows, .jacobian] | transpose | map(select(.[0] | split("[")[0] == "f") | .[1]) | flatten) as $true
    | ([.value.hand] | flatten) as $hand
    | if any([.value.f] | flatten | .[]; type == "string") then "undecided: the function is not finite"
      elif any($true[]; . == "NaN") then "undecided: the derivative is not a number"
      elif ($hand | length) != ($true | length) then "wrong: size \($hand | length), not \($true | length)"
      else first([$hand, $true] | transpose | .[]
          | select(.[0] != .[1] and (any(.[]; type == "string") or (.[0] - .[1] | fabs) > 1e-9*(1 + (.[1] | fabs))))
          | "wrong: \(.[0]), not \(.[1])") // "right" end'
status=0
for point in "$@"; do
    result=$(gradcli jacobian "f = $function" "hand = $derivative" --outputs f,hand --wrt "$input" --at "$point" -f json)
    verdict=$(printf '%s\n' "$result" | jq -r "$compare") || exit 2
    echo "$point: $verdict"
    case $verdict in
        right) ;;
        wrong*) status=1 ;;
        *) [ $status -eq 1 ] || status=2 ;;
    esac
done
exit $status
