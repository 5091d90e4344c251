"""PyTorch scripts, run without PyTorch: its tensors and its autograd, recorded as graphs while they run.

A script's `import torch.nn.functional` finds `nn/functional.py` here, and so on; `session` knows the modules.  Who
reads on may begin with

- `tensor`, `record`, `recipes`: a tensor, the step that made it, and what a step computes and passes on;
- `backward`, `autograd`, `autograd/function`: the sweep over the steps, how it is called, and a script's own steps;
- `names`, `calls`: how a name finds its row in the vocabulary, or what is in `operations`, and how that is called.

`operations` has what is more than a row; `autograd`, `func`, `nn`, `optim`, `utils`, `linalg` are PyTorch's modules of
these names.  Facts about PyTorch stand in tables: what it calls each step and keeps for it in `facts.txt`, what it says
in `messages.txt`, which names it has in `names.txt`, what a layer calls, takes and shows in `nn/modules.txt`.  What it
prints is in `printing`.  What was recorded is read back and explained in the room `script`.
"""
