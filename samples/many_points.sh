#!/bin/sh
# One system at all points of a file: how far off each observation of a camera is, a few columns of the Jacobian, and
# the gradient of the whole loss, which is the sum of the points' gradients.
#
# usage: sh many_points.sh [OBSERVATIONS.csv]      (needs python3)
set -eu
samples=$(dirname "$0")
system=$samples/bundle_adjustment.grad points=${1:-$samples/observations.csv}

echo "pixels off, from JSON lines"
gradcli backward -F "$system" --points "$points" --v ones -f json |
    python3 -c 'import json, math, sys
for line in sys.stdin:
    result = json.loads(line)
    print("  X = {}: {:.2f}".format(result["at"]["X"], math.hypot(*result["value"]["e"])))'

echo "the Jacobian of e by the focal length and the lens, its first columns"
gradcli jacobian -F "$system" --points "$points" --wrt f,k --sparse | cut -d , -f 1-3

echo "the gradient of the whole loss"
gradcli backward -F "$system" "loss = sum(e**2)/2" --points "$points" --wrt r,C |
    awk -F , 'NR == 1 { n = split($0, name); next }
        { for (k = 1; k <= n; k++) sum[k] += $k }
        END { for (k = 1; k <= n; k++) printf "  %s = %.6g\n", name[k], sum[k] }'
