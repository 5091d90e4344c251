"""PyTorch scripts, run without PyTorch: its tensors and its autograd, recorded as graphs while they run.

A script's `import torch` finds the modules that `session` lists.  Who reads on may begin with

- `tensor`, `record`, `recipes`: a tensor, the step that made it, and what a step computes and passes on;
- `backward`, `autograd`, `functions`: the sweep over the steps, how it is called, and a script's own steps;
- `calls`, `registry`, `lookup`: how a name finds its row in the vocabulary, or in `definitions` and `compositions`.

Operations: `operators`, `reductions`, `products`, `linalg`, `order`; `views`, `indexing`, `gathering`, `joining`;
`creation`, `conversion`, `random` with its `generator`; `inplace`.  Derivatives of functions: `func`, `gradcheck`,
`autograd_functional`.  `torch.nn`: `module`, `containers`, `layers`, `convolutions`, `weightless`; `functional`,
`losses`, `init`; and what trains it: `optim`, `schedules`, `data`, `saving`.

Facts about PyTorch stand in tables: what it calls each step in `gradnames` and `twice`, what it says in `messages.txt`,
which names it has in `names.txt`.  What it prints, to the character, is in `printing`; to the last digit, in `digits`,
`rounding`, `kernels`, `own_rules` and the files named after an order.  `cuts`, `naming`, `written`, `trace`, `replay`
read back what was recorded, for who explains it.
"""
