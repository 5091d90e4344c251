#!/bin/sh
# Write a handout as a complete LaTeX document on standard output. Options of `gradcli backward` may follow the system.
#
# usage: sh handout.sh [SYSTEM.grad [OPTION...]] > handout.tex && pdflatex handout.tex
set -eu
system=${1:-$(dirname "$0")/vector_to_vector.grad}
if [ $# -gt 0 ]; then shift; else set -- --v 1,10,100; fi
formulas=$(gradcli backward -F "$system" "$@" -f latex)  # first: where this fails, nothing is written

cat <<'END'
\documentclass{article}
\usepackage{amsmath}
\begin{document}
\section*{The vector--Jacobian product}
The Jacobian is $J_{ij} = \partial y_i / \partial x_j$. A call \verb|y.backward(v)| leaves $v^{\top} J$ in \verb|.grad|.
END
printf '%s\n' "$formulas" '\end{document}'
