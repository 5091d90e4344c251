#!/bin/sh
# How much does a small change of the inputs change the outputs? J·u, in forward mode, for changes of one percent each.
#
# usage: sh sensitivity.sh
set -eu
system='T = 2*pi*sqrt(l/g); f = 1/T'
echo "a pendulum that is 1 % longer:"
gradcli jvp "$system" --at l=1,g=9.81 --u l=0.01,g=0 --outputs T,f --only jvp
echo "a place where things weigh 1 % more:"
gradcli jvp "$system" --at l=1,g=9.81 --u l=0,g=0.0981 --outputs T,f --only jvp
