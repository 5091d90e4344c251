#!/bin/sh
# Turn a system into C with its derivatives, compile it, and let it test itself against gradcli's numbers.
#
# usage: sh compiled_gradient.sh      (needs a C compiler)
set -eu
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
cd "$folder"
gradcli export "f = (1 - x)**2 + 100*(y - x**2)**2" --to c --name rosenbrock --at x=-1,y=2 \
    --what value,vjp,hessian --output rosenbrock.c
grep '^void' rosenbrock.c
cc -std=c99 -DROSENBROCK_TEST rosenbrock.c -lm -o rosenbrock
./rosenbrock
