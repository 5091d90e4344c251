"""Make random programs and record what PyTorch prints for them: `python tests/pytorch/record_random.py [COUNT [SEED]]`.

A program is made a line at a time, each tried with PyTorch as it is made: nearly all lines run, and where one fails the
program ends with PyTorch's error.  Programs use operations, shapes, dtypes, views, changes in place, `retain_grad`,
accumulation and gradients of gradients, and print all that they make.
"""

from __future__ import annotations

import contextlib
import io
import json
import random
import sys
import warnings

import torch
import torch.nn.functional
from random_programs import HEAD, RECORDED
from record_outputs import forked

_SHAPES = ("3", "2, 3", "3, 2", "1, 3", "2, 1", "2, 2, 3", "4", "1", "2, 2", "3, 3", "0", "2, 0", "5")
_NUMBERS = ("2", "3", "0.5", "-1", "1.5", "0.1", "-2.5", "1", "0", "10", "1e-3", "100.0")
_METHODS = (
    *("abs", "exp", "sin", "cos", "tan", "tanh", "sigmoid", "relu", "square", "neg", "sqrt", "log", "log1p", "expm1"),
    *("erf", "sinh", "cosh", "atan", "floor", "ceil", "round", "trunc", "sign", "reciprocal", "rsqrt", "isnan"),
    *("logical_not", "clone", "detach", "contiguous", "t", "squeeze", "flatten", "trace", "tril"),
)
_FUNCTIONS = ("softplus", "elu", "gelu", "silu", "leaky_relu", "selu", "softsign", "logsigmoid", "hardtanh", "relu6")
_REDUCTIONS = (
    *("sum", "mean", "prod", "std", "var", "max", "min", "logsumexp", "median", "amax", "argmax", "cumsum", "cumprod"),
    *("softmax", "log_softmax", "sort"),
)
_CALLS = (
    *("{a} @ {b}", "torch.outer({a}, {b})", "F.linear({a}, {b})", "{a}.t() @ {b}", "torch.cat([{a}, {b}])"),
    *("torch.stack([{a}, {b}])", "torch.where({a} > 0, {a}, {b})", "torch.maximum({a}, {b})", "{a}.clamp({n}, {m})"),
    *("{a}.clamp(min={n})", "{a}.masked_fill({a} > 0, {n})", "torch.atan2({a}, {b})", "{a}.unbind()", "{a}.split(2)"),
    *("{a}.gather({d}, torch.zeros_like({a}, dtype=torch.int64))", "torch.add({a}, {b}, alpha=2)", "{a}.pow({n})"),
    *("{a} < {b}", "{a} == {n}", "F.mse_loss({a}, {b})", "F.l1_loss({a}, {b}, reduction='sum')", "{a}.double()"),
    *(
        "F.binary_cross_entropy_with_logits({a}, {b})",
        "F.cross_entropy({a}, {b})",
        "{a}.to(torch.float64)",
        "{a}.int()",
    ),
    *("{a}.view(-1)", "{a}.reshape(-1, 1)", "{a}.T", "{a}.unsqueeze({d})", "{a}.transpose(0, {d})", "{a}.data"),
    *("{a}.expand(2, *{a}.shape)", "{a}.view({s})", "{a}.reshape({s})", "{a}.flip({d})", "{a}.roll(1, {d})"),
    *(
        "{a}.repeat(2, 1)", "{a}.diagonal()", "torch.diag({a})", "{a}.item()", "{a}.is_leaf", "{a}.shape",
        "{a}._version",
    ),
)  # fmt: skip
_KEYS = ("0", "-1", "1:", "::2", ":, 0", "..., 0", "None", "0, 1", "[0, -1]", "{a} > 0", ":-1", "...", "5", "{b} > 0")
_CHANGES = (
    *("{a} += {b}", "{a} *= {n}", "{a} -= {b}", "{a} /= {n}", "{a}[0] = {n}", "{a}[1:] = {n}", "{a}[{a} > 0] = {n}"),
    *("{a}.add_({b})", "{a}.mul_({n})", "{a}.zero_()", "{a}.fill_({n})", "{a}.copy_({b})", "{a}.exp_()", "{a}.relu_()"),
    *("{a}.tanh_()", "{a}.clamp_({n}, {m})", "{a}.view(-1)[0] *= 2", "{a}.requires_grad_()", "{a}.detach_()"),
    *("{a}.pow_(2)", "{a}.unsqueeze_(0)", "{a} **= 2", "{a}.normal_()", "{a}.t_()"),
)
# What people do with autograd, a few lines each.
_FUNCTION = "class Own(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n        {}\n"
_FUNCTION += (
    "    @staticmethod\n    def backward(ctx, *g):\n        print('back', *g, torch.is_grad_enabled())\n        {}\n"
)
_SCENES = (
    _FUNCTION.format("ctx.save_for_backward(x)\n        return x.exp(), x * 2", "return g[0] + 2 * g[1]")
    + "u, v = Own.apply({a})\nprint(u, v, u.grad_fn is v.grad_fn, u.grad_fn)\n(u.sum() + v.mean()).backward()",
    _FUNCTION.format("return torch.from_numpy(x.numpy() ** 3)", "return g[0].double()")
    + "Own.apply({a}).sum().backward()\nprint({a}.grad)",
    _FUNCTION.format("ctx.mark_dirty(x)\n        return x.mul_(2)", "return g[0] * 2")
    + "u = Own.apply({a})\nprint(u is {a}, u, u._version)",
    _FUNCTION.format("return x.round()", "return g[0]")
    + "torch.autograd.gradcheck(Own.apply, (torch.ones(2, dtype=torch.float64, requires_grad=True),))",
    "with torch.no_grad():\n    part = {a}[:1]\nprint(part, part.is_leaf)\n(part * 2).sum().backward()",
    "with torch.no_grad():\n    print({a}.numpy() * 2)",
    "({a} * {b}).sum().backward(inputs=[{a}], retain_graph=True)\nprint({a}.grad, {a}.retains_grad)",
    "({a} ** 2).sum().backward(create_graph=True)\nprint({a}.grad)\n{a}.sum().backward()\nprint({a}.grad)",
    "{a}.sum().backward(create_graph=True)\n{a}.sum().backward()\nprint({a}.grad)",
    "{b}.register_hook(lambda g: print('hook', g))\nprint(torch.autograd.grad(({a} * {b}).sum(), {a}))",
    "print(torch.func.jacfwd(lambda x: x.log() * -2)({a}))",
    "print(torch.func.jacrev(lambda x: (x.sin(), {{'k': x ** 2}}))({a}))",
    "print(torch.func.hessian(lambda x, y: (x * y).sum(), argnums=(0, 1))({a}, {b}))",
    "print(torch.func.grad(lambda x: (x * {b}).sum())({a}))",
    "print(torch.func.grad(lambda x: torch.func.grad(lambda y: (x * y * y).sum())({b}).sum())({a}))",
    "print(torch.vmap(lambda x: x.sum())({a}), torch.vmap(torch.sin)({a}))",
    "print(torch.func.jvp(lambda x: (x.sin(), x ** 2), ({a},), (torch.ones_like({a}),)))",
    "print({a}[:].grad_fn, {a}[:9].grad_fn, {a}[:9, :].grad_fn)",
    "m = torch.nn.Linear(3, 2)\nm.register_full_backward_hook(lambda *g: print(g[1:]))\nm({b}.data).sum().backward()",
    "from copy import deepcopy\nprint(deepcopy({a}), deepcopy({a})._version)",
    "{a}.data.add_({a}.grad, alpha=-0.1)\nprint({a})",
    "print({a}.round(decimals=1), {a}.unique(), F.cosine_similarity({a}, {b}, dim=0))",
    "{a}.prod().backward()\nprint({a}.grad)",
    "x = torch.arange(6.).reshape(2, 3).requires_grad_()\nx.mul_(2)",
    "with torch.inference_mode():\n    w = {a} * 2\nwith torch.no_grad():\n    w[0] = 1",
    "net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))\n"
    "opt = torch.optim.Adam(net.parameters(), lr=0.1)\nfor _ in range(3):\n    opt.zero_grad()\n"
    "    loss = (net(torch.ones(2, 3)) - {n}).pow(2).mean()\n    loss.backward()\n    opt.step()\n    print(loss)\n"
    "p = {{k: v * 2 for k, v in net.named_parameters()}}\nprint(torch.func.functional_call(net, p, torch.ones(1, 3)))",
)


class Program:
    """A program as it grows, and what its names hold so far."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.held = {"torch": torch, "F": torch.nn.functional}
        self.lines: list[str] = []
        self.names: list[str] = []
        self.ended = False

    def tried(self, line: str) -> bool:
        """Add a line if it runs, or now and then one that fails, which is the last."""
        state = torch.random.get_rng_state()
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                exec(line, self.held)
            except (RuntimeError, IndexError, TypeError, ValueError):
                torch.random.set_rng_state(state)
                self.ended = self.random.random() < 0.08
                if not self.ended:
                    return False
        self.lines.append(line)
        return True

    def filled(self, template: str) -> str:
        """Return a line for names, numbers and shapes by chance."""
        a = self.random.choice(self.names[-4:])
        rank = self.held[a].dim()
        dim = self.random.randint(-rank, max(rank - 1, 0)) if rank else 0
        n, m, s = (self.random.choice(c) for c in (_NUMBERS, _NUMBERS, _SHAPES))
        return template.format(a=a, b=self.random.choice(self.names), n=n, m=m, s=s, d=dim)

    def assigned(self, expression: str) -> None:
        """Give what an expression gives a name, and print it."""
        name = chr(ord("a") + len(self.names))
        if self.tried(f"{name} = {expression}") and not self.ended:
            self.lines.append(f"print('{name}', {name})")
            if isinstance(self.held[name], torch.Tensor):
                self.names.append(name)

    def leaf(self) -> None:
        """Make a tensor."""
        shape, pick = self.random.choice(_SHAPES), self.random.choice
        wish = pick(("", ", requires_grad=True", ", requires_grad=True"))
        dtype = pick(("", "", "", ", dtype=torch.float64"))
        numbers = [pick((1.0, 2.0, 3.0, -1.0, 0.5, 0.0)) for _ in range(self.random.randint(1, 4))]
        made = (
            *(f"torch.randn({shape}{dtype}{wish})", f"torch.tensor({numbers}{dtype}{wish})"),
            *(f"torch.tensor({pick(numbers)}{dtype}{wish})", f"torch.ones({shape}{dtype}{wish})"),
            *(f"torch.arange({len(numbers)})", f"torch.randint(0, 5, ({shape},))", f"torch.rand({shape}{dtype}{wish})"),
        )
        self.assigned(pick(made))

    def step(self) -> None:
        """Add an operation, a change in place, another tensor, or a scene."""
        kind, pick = self.random.random(), self.random.choice
        if kind < 0.07:
            if self.tried(self.filled(pick(_SCENES))) and not self.ended:
                self.lines += [f"print('{n}', {n}, {n}.grad)" for n in self.names[:2]]
        elif kind < 0.25:
            self.assigned(self.filled("{a} " + pick("+-*/%") + pick((" {b}", " {n}"))))
        elif kind < 0.4:
            self.assigned(self.filled(pick(("{a}." + pick(_METHODS) + "()", "F." + pick(_FUNCTIONS) + "({a})"))))
        elif kind < 0.52:
            self.assigned(self.filled("{a}." + pick(_REDUCTIONS) + pick(("()", "({d})", "(dim={d})"))))
        elif kind < 0.6:
            self.assigned(self.filled("{a}[" + pick(_KEYS) + "]"))
        elif kind < 0.8:
            self.assigned(self.filled(pick(_CALLS)))
        elif kind < 0.92:
            line = self.filled(pick(_CHANGES))
            changed = line.partition(".")[0].partition("[")[0].partition(" ")[0]
            if self.tried(pick(("", "", "", "with torch.no_grad(): ")) + line) and not self.ended:
                self.lines.append(f"print('{changed}', {changed})")
        else:
            self.leaf()

    def backward(self) -> None:
        """Let a gradient flow, and print what it leaves."""
        wanted = [n for n in self.names if self.held[n].requires_grad]
        inner = [n for n in wanted if not self.held[n].is_leaf]
        leaves = [n for n in wanted if self.held[n].is_leaf]
        if not inner or not leaves:
            return
        y, x, pick = self.random.choice(inner[-3:]), self.random.choice(leaves), self.random.choice
        if pick((True, False, False)) and self.tried(f"{inner[0]}.retain_grad()"):
            leaves.append(inner[0])
        ways = (
            *(f"{y}.sum().backward({pick(('', 'retain_graph=True'))})", f"{y}.backward(torch.ones_like({y}))"),
            *(f"{y}.backward({pick(('', 'torch.tensor(2.)', 'torch.ones(3)'))})",),
            *(f"print(torch.autograd.grad({y}.sum(), {x}, {pick(('', 'allow_unused=True', 'retain_graph=True'))}))",),
            f"print(torch.autograd.grad(({y}**2).sum(), {x}, create_graph=True)[0])",
        )
        if not self.ended and self.tried(pick(ways)) and not self.ended:
            self.lines += [f"print('{n}.grad', {n}.grad)" for n in leaves]

    def whole(self) -> str:
        """Return a whole program."""
        torch.manual_seed(0)
        while not self.names:
            self.leaf()
        wanted = len(self.lines) + self.random.randint(8, 22)
        for _ in range(60):
            if len(self.lines) < wanted and not self.ended and len(self.names) < 20:
                self.step()
        for _ in range(2):
            if not self.ended:
                self.backward()
        return "\n".join(self.lines) + "\n"


def main() -> None:
    """Record programs."""
    count, seed = (*map(int, sys.argv[1:]), *(200, 0)[len(sys.argv) - 1 :])
    found = []
    for i in range(seed, seed + count):
        torch.set_warn_always(True)  # so that what PyTorch tells once is told when the program runs
        program = Program(i).whole()
        torch.set_warn_always(False)
        found.append({"program": program, **forked(str(i), HEAD + program)})
    RECORDED.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8")
    print(count, "programs")


if __name__ == "__main__":
    main()
