"""Names, numbers, nodes and formulas, as text in the language of gradcli and as LaTeX."""
