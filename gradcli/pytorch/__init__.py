"""PyTorch scripts, run without PyTorch: its tensors and its autograd, recorded as graphs while they run.

A script's `import torch.nn.functional` finds `nn/functional.py` here, and so on; `session` knows the modules.  Who
reads on may begin with

- `tensor`, `record`, `recipes`: a tensor, the step that made it, and what a step computes and passes on;
- `backward`, `autograd`, `autograd/function`: the sweep over the steps, how it is called, and a script's own steps;
- `schema`, `binding`, `dispatch`: the schema of a function, and how the arguments of a call are bound by it;
- `names`, `calls`: how a name finds its row in the vocabulary, or what is in `operations`, and how that is called.

`operations` has what is more than a row; `autograd`, `func`, `nn`, `optim`, `utils`, `linalg` are PyTorch's modules of
these names.  Facts about PyTorch are in tables: the schemas of its functions, with the names of their steps and what
these save, in `functions.txt`; messages in `messages.txt`; names in `names.txt`; what a layer calls, takes and shows in
`nn/modules.txt`.  `printing` writes tensors as PyTorch prints them.  The room `script` explains what was recorded.
"""
