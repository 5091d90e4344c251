"""The elementwise operations as instructions of LLVM, on vectors of points."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from gradcli.engine.llvm.functions import FUNCTIONS, function
from gradcli.engine.llvm.writer import InstructionWriter, vector_function
from gradcli.graph.operations import OPERATIONS

Rule = Callable[..., str]

# Functions of C, with the number of their arguments.
_NAMES = {op: name for op, row in OPERATIONS.items() if (name := row.spelling_in("llvm"))}
LIBRARY = {name: OPERATIONS[op].arity for op, name in _NAMES.items() if not name.startswith("llvm.")}
LIBRARY |= {"fmod": 2}


def _instruction(name: str) -> Rule:
    return lambda w, *values: w.do(name, *map(w.numeric, values))


def _function(name: str) -> Rule:
    return lambda w, *values: w.call(name, *map(w.numeric, values))


def _comparison(how: str) -> Rule:
    return lambda w, a, b: w.compare(how, w.numeric(a), w.numeric(b))


def _joined(name: str) -> Rule:
    return lambda w, a, b: w.new(f"{name} {w.masks} {w.condition(a)}, {w.condition(b)}", "m")


def first(how: str) -> Rule:
    """Return a rule for the first of two values where a comparison holds or it is NaN, and the second elsewhere."""

    def write(w: InstructionWriter, a: str, b: str) -> str:
        # An ordered comparison does not hold where one of them is NaN: then it is the first if that is NaN.
        taken = w.select(w.compare(how, a, b), a, b)
        return w.select(w.compare("uno", a, a), a, taken)

    return write


def _softplus(w: InstructionWriter, x: str) -> str:
    # log(1 + exp(-|x|)) is right on both sides, and NaN where x is.
    small = w.call("log1p", w.call("exp", w.do("fneg", w.call("llvm.fabs", x))))
    return w.do("fadd", first("ogt")(w, x, w.number(0)), small)


def _remainder(w: InstructionWriter, a: str, b: str) -> tuple[str, str]:
    """Return the remainder, with the sign of `b`, and whether it differs from C's."""
    left, zero = w.call("fmod", a, b), w.number(0)
    signs = [w.compare("olt", v, zero) for v in (b, left)]
    other = w.new(f"xor {w.masks} {signs[0]}, {signs[1]}", "m")
    other = w.new(f"and {w.masks} {other}, {w.compare('une', left, zero)}", "m")
    moved = w.select(other, w.do("fadd", left, b), left)
    return w.select(w.compare("oeq", moved, zero), w.call("llvm.copysign", zero, b), moved), other


def _floor_divide(w: InstructionWriter, a: str, b: str) -> str:
    """Write the floor of a quotient as NumPy computes it: from the remainder, so that no quotient is rounded up."""
    zero, one = w.number(0), w.number(1)
    _, other = _remainder(w, a, b)
    quotient = w.do("fdiv", w.do("fsub", a, w.call("fmod", a, b)), b)
    quotient = w.select(other, w.do("fsub", quotient, one), quotient)
    floor = w.call("llvm.floor", quotient)
    far = w.compare("ogt", w.do("fsub", quotient, floor), w.number(0.5))
    floor = w.select(far, w.do("fadd", floor, one), floor)
    whole = w.do("fdiv", a, b)
    signed = w.call("llvm.copysign", zero, whole)
    return w.select(w.compare("oeq", b, zero), whole, w.select(w.compare("oeq", quotient, zero), signed, floor))


def _heaviside(w: InstructionWriter, x: str, middle: str) -> str:
    zero = w.number(0)
    result = w.select(w.compare("oeq", x, zero), middle, x)
    result = w.select(w.compare("ogt", x, zero), w.number(1), result)
    return w.select(w.compare("olt", x, zero), zero, result)


def _sign(w: InstructionWriter, x: str) -> str:
    zero = w.number(0)
    above = w.select(w.compare("ogt", x, zero), w.number(1), zero)
    return w.select(w.compare("olt", x, zero), w.number(-1), above)


EXPRESSIONS: dict[str, Rule] = {
    "add": _instruction("fadd"),
    "sub": _instruction("fsub"),
    "mul": _instruction("fmul"),
    "div": _instruction("fdiv"),
    "neg": _instruction("fneg"),
    "identity": lambda w, x: x,
    **{op: _function(name) for op, name in _NAMES.items()},
    "softplus": _softplus,
    "maximum": first("ogt"),
    "minimum": first("olt"),
    "clamp": lambda w, x, low, high: first("ole")(w, first("oge")(w, x, low), high),
    "where": lambda w, condition, a, b: w.select(w.condition(condition), w.numeric(a), w.numeric(b)),
    "mod": lambda w, a, b: _remainder(w, a, b)[0],
    "heaviside": _heaviside,
    "sign": _sign,
    "floor_divide": _floor_divide,
    "lt": _comparison("olt"),
    "le": _comparison("ole"),
    "gt": _comparison("ogt"),
    "ge": _comparison("oge"),
    "eq": _comparison("oeq"),
    "ne": _comparison("une"),
    "and": _joined("and"),
    "or": _joined("or"),
    "not": lambda w, a: w.compare("oeq", w.numeric(w.condition(a)), w.number(0)),
}


def _exceeds(better: str, w: InstructionWriter, x: str, best: str) -> str:
    """Write whether a value replaces the best one: NaN replaces every number, and nothing replaces NaN."""
    nan = w.new(f"and {w.masks} {w.compare('uno', x, x)}, {w.compare('ord', best, best)}", "m")
    return w.new(f"or {w.masks} {nan}, {w.compare(better, x, best)}", "m")


# The steps of the loops of reductions.
REDUCED: dict[str, Rule] = {
    "max": first("oge"),
    "min": first("ole"),
    "exceeds": partial(_exceeds, "ogt"),
    "undercuts": partial(_exceeds, "olt"),
}


def definitions(called: Iterable[str], lanes: int) -> list[str]:
    """Return the lines that define functions of vectors, or declare them."""
    vector, intrinsics = f"<{lanes} x double>", {name for name in called if name.startswith("llvm.")}
    lines = []
    for name in sorted({*called} - intrinsics):
        each = vector_function(name, lanes)
        if name in FUNCTIONS:
            body, more = function(name, lanes)
            lines += body
            intrinsics |= more
            each = f"each.{name}"
        lines += _by_element(each, name, lanes)
    for name in sorted(intrinsics):
        types = ", ".join([vector] * (2 if name == "llvm.copysign" else 1))
        lines.append(f"declare {vector} @{vector_function(name, lanes)}({types})")
    return [*lines, f"declare i1 @llvm.vector.reduce.or.v{lanes}i1(<{lanes} x i1>)"]


def _by_element(result: str, name: str, lanes: int) -> list[str]:
    """Return the lines of a function of vectors that calls one of C's for each element."""
    vector, count = f"<{lanes} x double>", LIBRARY[name]
    vectors = ", ".join(f"{vector} %x{j}" for j in range(count))
    lines = [
        f"declare double @{name}({', '.join(['double'] * count)}) nounwind willreturn memory(none)",
        f"define internal {vector} @{result}({vectors}) noinline nounwind {{",
    ]
    for i in range(lanes):
        lines += [f"  %a{i}.{j} = extractelement {vector} %x{j}, i64 {i}" for j in range(count)]
        lines.append(f"  %y{i} = call double @{name}({', '.join(f'double %a{i}.{j}' for j in range(count))})")
        before = f"%r{i - 1}" if i else "poison"
        lines.append(f"  %r{i} = insertelement {vector} {before}, double %y{i}, i64 {i}")
    return [*lines, f"  ret {vector} %r{lanes - 1}", "}"]
