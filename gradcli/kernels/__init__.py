"""Graph → numbers, to the last digit: the order in which PyTorch's kernels add, and where they round.

What a node gives is in `nodes`, what an operation of several nodes gives in `forward`, what it passes on in
`backward`.  They are made of `sums`, `products`, `convolutions`, `normalizations` and `activations`; of functions, as
SLEEF has them, in `vector_functions`, and as MKL has them, in `mkl`; and of `rounding`.  Which order PyTorch takes
depends on the processor and on the number of threads, which `processor` knows.
"""
