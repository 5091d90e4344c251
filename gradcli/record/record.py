"""The record of a run, and the recorder that writes it.

>>> import numpy as np
>>> recorder = Recorder()
>>> x = recorder.quantity(Numbers.of(np.array(3.0)), "leaf", requires=True, names=["x"])
>>> y = recorder.quantity(Numbers.of(np.array(9.0)), "result", requires=True, names=["y"])
>>> _ = recorder.operation("mul", (), (x, x), (y,))
>>> record = recorder.record()
>>> record.operations[0].operands, record.quantities[y].name
((0, 0), 'y')
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

from gradcli.record.definition import Definition
from gradcli.record.numbers import Array, Numbers

Span = tuple[int | None, int | None, int | None, int | None]  # first and last line, first and last column
Operand = int | Numbers  # the id of a quantity, or a constant


@dataclass(frozen=True)
class CallSite:
    """Where the program calls something: its file, its line, the span of the expression, and the code of the line.

    `function` is the function that the line is in, `instruction` its position in that function's code, `frame` the call
    of the function that runs; together they tell the statements of a line, and the rounds of it, apart.  `is_module` is
    whether what is called is a module, within which the operation is.
    """

    file: str
    line: int
    span: Span | None = None
    code: str = ""
    function: str = ""
    instruction: int = 0
    frame: int = 0
    is_module: bool = False

    def __hash__(self) -> int:
        """Return a hash of two of the fields, which tell most sites apart: each step of a training has some."""
        return hash((self.line, self.instruction))


NOWHERE = CallSite("", 0)
# Of more leaves or operations, the page of a backward has no formulas: large intermediates are summarised.
FORMULAS = 24
OPERATIONS = 3_000


@dataclass(frozen=True)
class Quantity:
    """A value, not a tensor: what is changed in place is a new quantity on the same storage, a version later.

    `role` is leaf, parameter, buffer, mask, data or result.  `why_not` says why it requires no gradient: detached,
    no_grad, integers, frozen, data; "" where it requires one.  `names` are the names that the program gave it, each
    with the clock at which it did; `module` is that of which it is the output, where no operation made it.
    """

    id: int
    shape: tuple[int, ...]
    dtype: str
    role: str
    numbers: Numbers
    requires: bool = False
    why_not: str = ""
    site: CallSite = NOWHERE
    names: tuple[tuple[int, str], ...] = ()
    storage: int = 0
    version: int = 0
    module: str = ""
    changed: bool = False  # whether its tensor has other numbers now
    retains: bool = False  # whether its tensor keeps its gradient, as no leaf does by itself

    @property
    def name(self) -> str:
        """The first name; "" without one."""
        return self.names[0][1] if self.names else ""


@dataclass(frozen=True)
class Operation:
    """A call as the program wrote it: the row of the table of operations, or an opaque name, with its operands.

    `settings` are the row's, as plain data.  `module` is the path of the innermost module whose call it is.
    `definitions` say what each result is in operations of the table.
    """

    id: int
    clock: int
    row: str
    settings: Any
    operands: tuple[Operand, ...]
    results: tuple[int, ...]
    site: CallSite = NOWHERE
    module: str = ""
    definitions: tuple[Definition, ...] = ()
    grad_fn: str = ""  # what PyTorch calls its backward
    numbers: int = 0  # how many of the last operands are indices, positions and factors

    @property
    def is_opaque(self) -> bool:
        """Whether it has numbers, and no formula."""
        return not self.definitions


@dataclass(frozen=True)
class Hook:
    """A gradient that a hook has changed: of a quantity, or, with `operation` and `operand`, what is sent there."""

    quantity: int
    name: str
    before: Numbers
    after: Numbers
    site: CallSite = NOWHERE  # where the hook is defined
    operation: int | None = None
    operand: int | None = None
    module: str = ""  # of a hook of a module


@dataclass(frozen=True)
class Contribution:
    """The `.grad` of a quantity before a backward, what is added, and after; of one that returns, `after` is None.

    `origin` is what left it as it was before: an earlier backward, or what cleared it.
    """

    quantity: int
    before: Numbers | None
    added: Numbers
    after: Numbers | None
    origin: CallSite = NOWHERE


class Left(NamedTuple):
    """What a call that is not recorded has left in the `.grad` of a leaf, and the version of the leaf's own numbers.

    `leaf` is the leaf's identity, and both arrays may be changed later.
    """

    leaf: int
    before: Array | None
    after: Array | None
    version: int


@dataclass(frozen=True)
class Backward:
    """A call of `backward` or `grad`: v of each root, and the gradients that arrive and are sent.

    `received` is the gradient of each result of an operation, after hooks, by the operation's id and the result's
    position; `sent` is what an operation adds to the adjoint of an operand, by the operand's position.  `leaves` are
    what the call leaves in `.grad` or returns, `retained` the intermediates that keep their gradient.  `arose` has, by
    operation, the finite gradients of its results of which it makes others, and what it makes of them.
    """

    id: int
    clock: int
    site: CallSite
    roots: tuple[int, ...]
    v: tuple[Numbers, ...]
    function: str = "backward"  # or grad, or what a script asks for by name: jacobian, hvp
    inputs: tuple[int, ...] | None = None  # whose gradients are requested; None: those of all leaves
    implicit: bool = False  # the program gave no v
    create_graph: bool = False
    received: Mapping[tuple[int, int], Numbers] = field(default_factory=dict)
    sent: Mapping[tuple[int, int], Numbers] = field(default_factory=dict)
    hooks: tuple[Hook, ...] = ()
    leaves: tuple[Contribution, ...] = ()
    retained: tuple[Contribution, ...] = ()
    freed: bool = True
    arose: Mapping[int, tuple[tuple[Numbers, ...], tuple[Numbers, ...]]] = field(default_factory=dict)
    tangents: tuple[Numbers, ...] = ()  # of the inputs, where a script asks for a product by name
    answer: Any = None  # what it gets then: numbers, in sequences alike
    scale: float = 1.0  # by which a `GradScaler` has multiplied the roots

    @property
    def returns(self) -> bool:
        """Whether the gradients are returned, and no `.grad` has them."""
        return self.function != "backward"


@dataclass(frozen=True, kw_only=True)
class Event:
    """Something that changes what later operations or backwards mean."""

    clock: int = 0
    site: CallSite = NOWHERE


_COMPARISONS = ("gt", "lt", "ge", "le", "eq", "ne")
_SENTENCES = {
    "DETACHED": "{} returns a tensor without a graph",
    "NUMBER": "{} returns a plain number",
    "LIST": "{} returns plain numbers",
    "ARRAY": "{} returns a NumPy array",
    "COPIED": "{} copies numbers alone",
    "DISCRETE": "{} has no gradient",
    "INDICES": "the indices of {} have no gradient",
    "UNRECORDED": "{} records nothing",
    "FORWARD": "what {} computes is a constant for backward",
}


@dataclass(frozen=True, kw_only=True)
class Cut(Event):
    """A quantity is cut from the graph: `kind` says how (detached, number, copied, …), `code` is the script's function.

    `call` is the same with its arguments where they are known: torch.tensor([…]).  `leaves` are what the numbers came
    from.  A cut without a result is that of its line, whose results may be numbers, or gone.

    >>> Cut(kind="NUMBER", code=".item()").how, Cut(kind="DISCRETE", code="gt").how
    ('.item() returns a plain number', 'a comparison has no gradient')
    """

    kind: str
    code: str
    call: str = ""
    source: int | None = None
    result: int | None = None
    leaves: tuple[int, ...] = ()

    @property
    def is_cast(self) -> bool:
        """Whether it is a conversion to a dtype of integers."""
        return self.kind == "DISCRETE" and self.code == "cast"

    @property
    def how(self) -> str:
        """The sentence about it."""
        is_compared = self.kind == "DISCRETE" and self.code in _COMPARISONS
        code = "a comparison" if is_compared else "a conversion to integers" if self.is_cast else self.call or self.code
        return _SENTENCES.get(self.kind, "{} cuts numbers off").format(code)


@dataclass(frozen=True, kw_only=True)
class Changed(Event):
    """A storage is changed in place; `operations` are those whose backward reads the new numbers.

    Each has the position of what it reads: of an operand, or behind them of a result.
    """

    storage: int | None
    operations: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Assignment:
    """A line of an optimizer's rule, for one entry: the name gets the value of a formula of the names that it `reads`.

    They have the values that they have then: the rule is read from its first line on.  `stays` is whether the name is
    that of the parameter, p, or of what the optimizer keeps for it.
    """

    name: str
    reads: tuple[str, ...]
    formula: Definition
    stays: bool


@dataclass(frozen=True)
class Update:
    """One parameter in an optimizer's step: the numbers of the names of the rule before the step, and of what stays.

    p is the parameter, p.grad its gradient.  Of a large parameter they are those of the first entry.
    """

    name: str
    shape: tuple[int, ...]
    before: Mapping[str, Numbers]
    after: Mapping[str, Numbers]


@dataclass(frozen=True, kw_only=True)
class OptimizerStep(Event):
    """A step of an optimizer, for parameters with one rule and equal settings.

    `kept` has what the optimizer calls the names of the rule, `meanings` what they mean, where {g} is the name of the
    gradient and {p} that of the parameter.  L-BFGS has no rule of single entries.
    """

    optimizer: str
    rule: tuple[Assignment, ...]
    updates: tuple[Update, ...]
    kept: Mapping[str, str] = field(default_factory=dict)
    meanings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Altered(Event):
    """Gradients that are not as `backward` left them: of which parameters, and by which factor; None where by several.

    `numbers` are those before and after, of one parameter of few elements.
    """

    names: tuple[str, ...]
    factor: float | None
    numbers: tuple[Numbers, ...] = ()


@dataclass(frozen=True)
class Stepped:
    """A call of an optimizer's `step`: its events, one for each rule, and the parameters that have none.

    `changes` is how many parameters have a gradient, `cleared` where one was cleared, and where a backward had reached
    it before; `missing` the parameters without a gradient, each with where it was frozen.  `unlisted` are leaves with a
    gradient that no optimizer has, and `why` and `held` why, where modules show that: the first of them is in a Python
    list of that name ("parameters", "modules" or "lists"), or "later" than all optimizers.
    """

    changes: int
    steps: tuple[OptimizerStep, ...]
    altered: Altered | None
    cleared: tuple[CallSite, CallSite] | None
    has_swept: bool  # whether any backward has run
    missing: tuple[tuple[str, CallSite], ...]
    unlisted: tuple[str, ...]
    why: str
    held: str


@dataclass(frozen=True, kw_only=True)
class ModeEntered(Event):
    """A mode holds from now on: no_grad, enable_grad, inference_mode, autocast, anomaly, train, eval."""

    mode: str
    enabled: bool = True


@dataclass(frozen=True)
class Source:
    """Where a round of a loop takes an operand from: the result of a statement of this round, or of one before.

    `quantity` is that of a constant of all rounds.  Else `statement` and `result` are positions in the round that is
    `lag` rounds earlier; before the first rounds it is the operand that the first round has.
    """

    quantity: int | None = None
    statement: int = 0
    result: int = 0
    lag: int = 0


@dataclass(frozen=True)
class Loop:
    """Rounds in which the same statements made the same operations: the ids of each round's operations.

    `sources` has, for each statement, one for each operand; None for one that differs without such a rule, as data of
    each round does.
    """

    rounds: tuple[tuple[int, ...], ...]
    sources: tuple[tuple[Source | None, ...], ...]


@dataclass(frozen=True)
class Record:
    """What happened, in the order of one clock: ids are positions in these tuples."""

    quantities: tuple[Quantity, ...] = ()
    operations: tuple[Operation, ...] = ()
    events: tuple[Event, ...] = ()
    backwards: tuple[Backward, ...] = ()

    @cached_property
    def producers(self) -> Mapping[int, Operation]:
        """The operation of each quantity that is a result."""
        return {q: o for o in self.operations for q in o.results}

    def behind(self, quantities: Iterable[int], cut: Collection[int] = ()) -> list[Operation]:
        """Return the operations that lead to quantities, in their order, as far as gradients flow to them.

        None of them leads to the quantities in `cut`.
        """
        result: dict[int, Operation] = {}
        waiting = [*quantities]
        while waiting:
            q = waiting.pop()
            operation = self.producers.get(q)
            if operation is not None and operation.id not in result and q not in cut:
                result[operation.id] = operation
                waiting += [x for x in operation.operands if isinstance(x, int) and self.quantities[x].requires]
        return [result[k] for k in sorted(result)]


class Recorder:
    """Writes a record: each method adds one item, and returns its id.

    The clock ticks once for each operation, event and backward; a writer that records later than it ran gives the
    clock of each, in order.
    """

    def __init__(self) -> None:
        self._quantities: list[Quantity] = []
        self._operations: list[Operation] = []
        self._events: list[Event] = []
        self._backwards: list[Backward] = []
        self.clock = 0

    def tick(self, clock: int | None = None) -> int:
        """Return the next time of the clock, or set it to a later one."""
        self.clock = max(self.clock + 1, clock or 0)
        return self.clock

    def quantity(
        self,
        numbers: Numbers,
        role: str,
        *,
        requires: bool = False,
        why_not: str = "",
        site: CallSite = NOWHERE,
        names: Iterable[str] = (),
        storage: int | None = None,
        version: int = 0,
        module: str = "",
        changed: bool = False,
        retains: bool = False,
    ) -> int:
        """Add a value; without a `storage` it has one of its own."""
        new = len(self._quantities)
        named = tuple((self.clock, name) for name in names)
        own = new if storage is None else storage
        head = new, numbers.shape, numbers.dtype, role, numbers, requires, why_not
        self._quantities.append(Quantity(*head, site, named, own, version, module, changed, retains))
        return new

    def name(self, quantity: int, name: str) -> None:
        """Give a quantity a name from now on."""
        known = self._quantities[quantity]
        if not known.names or known.names[-1][1] != name:
            self._quantities[quantity] = replace(known, names=(*known.names, (self.clock, name)))

    def operation(
        self,
        row: str,
        settings: Any,
        operands: Sequence[Operand],
        results: Sequence[int],
        *,
        site: CallSite = NOWHERE,
        module: str = "",
        definitions: Sequence[Definition] = (),
        clock: int | None = None,
        grad_fn: str = "",
        numbers: int = 0,
    ) -> int:
        """Add an operation, whose operands and results are recorded."""
        new = len(self._operations)
        head = new, self.tick(clock), row, settings, tuple(operands), tuple(results)
        self._operations.append(Operation(*head, site, module, tuple(definitions), grad_fn, numbers))
        return new

    def event(self, event: Event, clock: int | None = None) -> int:
        """Add an event, which gets its clock here."""
        self._events.append(replace(event, clock=self.tick(clock)))
        return len(self._events) - 1

    def begin_backward(
        self, roots: Sequence[int], v: Sequence[Numbers], *, site: CallSite = NOWHERE, **options: Any
    ) -> int:
        """Add a backward that begins; `options` are the fields of `Backward` that are known then."""
        new = len(self._backwards)
        self._backwards.append(Backward(new, self.tick(), site, tuple(roots), tuple(v), **options))
        return new

    def end_backward(
        self,
        backward: int,
        received: Mapping[tuple[int, int], Numbers],
        sent: Mapping[tuple[int, int], Numbers],
        hooks: Iterable[Hook] = (),
        leaves: Iterable[Contribution] = (),
        retained: Iterable[Contribution] = (),
        freed: bool = True,
        arose: Mapping[int, tuple[tuple[Numbers, ...], tuple[Numbers, ...]]] = MappingProxyType({}),
    ) -> None:
        """Complete a backward with what its sweep has done."""
        self._backwards[backward] = replace(
            self._backwards[backward],
            received=dict(received),
            sent=dict(sent),
            hooks=tuple(hooks),
            leaves=tuple(leaves),
            retained=tuple(retained),
            freed=freed,
            arose=dict(arose),
        )

    def record(self) -> Record:
        """Return the record so far."""
        return Record(
            tuple(self._quantities),
            tuple(self._operations),
            tuple(self._events),
            tuple(self._backwards),
        )
