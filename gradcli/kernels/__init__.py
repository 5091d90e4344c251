"""Graph → numbers, to the last digit: the order in which PyTorch's kernels add, and where they round.

What a node gives is in `nodes`, what operations of several nodes give, and what they pass on, in `operations`.
They are made of `products`, `convolutions`, `normalizations`, `moments` and `activations`, all of which add as `sums`
tells and round as `rounding` does; of functions, as SLEEF has them, in `vector_functions`, and as MKL has them, in
`mkl`.  Which order PyTorch takes depends on the processor and on the number of threads, which `processor` knows:
products have another on Intel's, which is in `intel`.
"""
