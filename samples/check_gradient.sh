#!/bin/sh
# Check a derivative that you found by hand: what is wrong with it, if it is wrong.
# Exit status: 0 right; 1 wrong, or nothing decides; 2 a mistake in the arguments.
#
# usage: sh check_gradient.sh FUNCTION INPUT DERIVATIVE [OPTION]...      (options of `gradcli check`, such as --at)
#   sh check_gradient.sh "x*sin(a*x)" x "sin(a*x) + a*x*cos(a*x)"
#   sh check_gradient.sh "sum(x**2)" x "2*x" --at "x=[1,2,3]"
set -eu
[ $# -ge 3 ] || { echo "usage: sh check_gradient.sh FUNCTION INPUT DERIVATIVE [OPTION]..." >&2; exit 2; }
function=$1 input=$2 derivative=$3
shift 3
gradcli check "f = $function" "df/d$input = $derivative" "$@"
