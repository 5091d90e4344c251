"""A live page as HTML: what it shows before its script runs, and the data that this reads."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

from gradcli.files import printable
from gradcli.graph.names import AdjointName, element_names
from gradcli.graph.shapes import Shape
from gradcli.pages.live import LiveNode, LivePage
from gradcli.report.live.drawing import drawn, insides
from gradcli.report.live.numbers import DIGITS_SHOWN, GRID, exact, packed, shown
from gradcli.report.text_math import TextWriter

_NOTHING = "base-uri 'none'; form-action 'none'"
_DATA = re.compile(r"[xXyYtT]|inputs?|images?|data|targets?|labels?")  # arrays that are no parameters, beside others
_ROW = 8  # entries of a vector side by side
_PARTS = (
    "numbers", "tape", "state", "steps", "paths", "drawing", "opening", "alarms", "focus", "curve", "descent",
    "fields", "scrub", "large", "view", "links", "start",
)  # fmt: skip


@cache
def file_text(name: str) -> str:
    """Return a file of this folder."""
    return Path(__file__).with_name(name).read_text("utf-8")


@cache
def script() -> str:
    """Return the script of the page: a file for each of its subjects."""
    return "\n".join(file_text(f"{part}.js") for part in _PARTS)


@cache
def words() -> Mapping[str, str]:
    """Return the strings of the page, by their keys."""
    table: dict[str, str] = json.loads(file_text("words.json"))
    return table


def document(title: str, body: str, program: str, more: str = "") -> str:
    """Return a file of pages: their style, and `more` of it, their script, and a policy that allows nothing else."""
    style = _dense(file_text("live.css") + more)
    code = _dense(f"const WORDS = {_json(words())};\n{program}{script()}")
    policy = f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(code)}'; {_NOTHING}"
    return filled("page.html", policy=policy, title=text(title[:200]), style=style, body=body, code=code)


def filled(template: str, **parts: str) -> str:
    """Return a template of this folder with its parts, and with the words of the table, buttons and switches."""
    makers: dict[str, Callable[..., str]] = {"word": word, "button": button, "switch": switch}

    def part(match: re.Match[str]) -> str:
        return makers[match[1]](*filter(None, match.groups()[1:])) if match[1] else parts[match[2]]

    return re.sub(r"\{(?:(word|button|switch) )?([\w-]+)(?:=(\w+))?\}", part, file_text(template))


def live_document(page: LivePage, program: str, horizontal: bool = False, notes: Sequence[str] = ()) -> str:
    """Return the file of one page; its graph leads to the right if it is horizontal."""
    title = f"{page.title}: live"
    heading = f'<header class="top"><h1>{text(page.title[:200])}</h1></header>'
    heading += "".join(f'<p class="quiet">{text(note)}</p>' for note in notes)
    return document(title, f"<main>\n{heading}\n{live_section(page, 0, horizontal=horizontal)}\n</main>", program)


def live_section(page: LivePage, number: int, lean: bool = False, horizontal: bool = False) -> str:
    """Return one page, for a document that has several, each with a number.

    A `lean` one leaves attributes of its many numbers to the script.
    """
    key = f"live-{number}"
    return filled("section.html", **_Section(page, key, lean, horizontal).parts(), data=_json(data(page, key)))


def data(page: LivePage, key: str) -> dict[str, Any]:
    """Return the JSON object that the script reads."""
    return {
        "id": key,
        "scalar": page.scalar,
        **_tape(page),
        "v": [[k, name, packed(page.v[name])] for name, k in page.outputs.items()],
        "jacobian": page.jacobian,
        "corners": [
            [c.node, c.argument, printable(c.name), printable(c.expression), c.taken, _call(c.call)]
            for c in page.corners
        ],
        "command": page.command,
        "pytorch": None if page.pytorch is None else {"names": page.pytorch[0], "body": page.pytorch[1]},
        "insides": {
            key: {**_tape(inside.page, is_inner=True), "call": inside.call, "args": list(inside.args)}
            for key, inside in insides(page)
            if inside.page is not None
        },
    }


def _tape(page: LivePage, is_inner: bool = False) -> dict[str, Any]:
    """Return what computes the values and the adjoints; an inner one gets the values of its inputs from outside."""
    nodes, given = [], {*page.inputs.values()} if is_inner else set()
    for k, n in enumerate(page.nodes):
        row: dict[str, Any] = {"n": printable(n.name), "b": printable(n.bar), "k": n.kind, "s": list(n.shape)}
        if n.single:
            row["o"] = 1
        if n.within >= 0:
            row["w"] = n.within
        if n.fix:
            row["x"] = printable(n.fix)
        if n.call is not None:
            row |= {"f": printable(n.formula), "a": list(n.args), "c": [n.call.function, list(n.call.reads)]}
        elif k not in given:
            row["v"] = packed(n.value)
        nodes.append(row)
    passes = [
        [p.node, p.position, printable(p.rule), _call(p.pull.contribution), _call(p.pull.slope)] for p in page.passes
    ]
    return {"nodes": nodes, "passes": passes, "inputs": list(page.inputs.values()), "wrt": list(page.wrt)}


def _call(call: Any) -> Any:
    return None if call is None else [call.function, list(call.reads)]


class _Section:
    def __init__(self, page: LivePage, key: str, lean: bool, horizontal: bool) -> None:
        self.page = page
        self.horizontal = horizontal
        self.key = key
        self.lean = lean  # whether the script adds the attributes that follow from others
        self.images = {box.name for box in page.drawing.boxes if box.image}
        self.fields = 0

    def parts(self) -> dict[str, str]:
        """Return the parts of the template."""
        page, nodes = self.page, self.page.nodes
        first = next((nodes[k] for k in page.wrt if nodes[k].bar), None)
        says = say("headlineSays", first.bar, page.scalar, first.name) if first else ""
        says = says.removeprefix(f"{first.bar} = ") if first and not page.drawing.barred else says
        leaves = [nodes[k] for k in page.wrt] or [n for n in nodes if n.bar]
        barred = next((n for n in leaves if isinstance(n.bar, AdjointName) and n.bar.barred), None)
        kinds = {n.kind for n in nodes if n.name}
        looks = [kind for kind in ("leaf", "intermediate", "output") if kind in kinds]
        data = {k for k in page.wrt if nodes[k].shape and _DATA.fullmatch(nodes[k].name)}
        fixed = data if len(data) < len(page.wrt) else set()
        box = '<label><input type="checkbox" data-moves="{}"{}> {}</label>'
        matrix = (
            f'<section class="card matrix"><h2>{word("matrix")}</h2>\n<div class="scroll" data-part="jacobian" '
            f'tabindex="0" role="group" aria-label="{word("matrix")}"></div>\n</section>\n'
        )
        return {
            "key": self.key,
            "title": text(page.title[:200]),
            "inputs": "\n".join(self.inputs()),
            "system": "\n".join(self.system()),
            "drawing": drawn(page, self.horizontal),
            "says": text(says),
            "copying": "".join(button(name) for name in ("command", "pytorch") if getattr(page, name)),
            "matrix": matrix if page.jacobian is not None else "",
            "looks": "".join(f'<span class="key {kind}">{word(kind)}</span>' for kind in looks),
            "meaning": text(say("adjointIs", barred.bar, page.scalar, barred.name)) if barred else "",
            "moves": "\n".join(box.format(k, "" if k in fixed else " checked", text(nodes[k].name)) for k in page.wrt),
        }

    # Inputs

    def inputs(self) -> Iterator[str]:
        for k in self.page.inputs.values():
            n = self.page.nodes[k]
            yield f'<div class="leaf" data-row="{k}">'
            if not n.shape:
                yield self.scalar(k, n)
            elif n.value.size <= GRID and n.name not in self.images:
                yield self.heading(k, n) + self.table(k, n, n.value, "input", n.name)
            else:
                yield self.heading(k, n) + self.large(k, n, "input")
            yield "</div>"

    def heading(self, k: int, n: LiveNode) -> str:
        """Return the line above an array: its name and its shape."""
        sizes = "×".join(map(str, n.shape)) + (f", {word('notRequired')}" if k not in self.page.wrt else "")
        return f'<p class="name"><code>{text(n.name)}</code> <small>{sizes}</small></p>'

    def scalar(self, k: int, n: LiveNode) -> str:
        field = self.field(k, 0, "input", n.name, float(n.value), n.name)
        slider = f'<input type="range" data-slider="{k}" aria-label="{text(say("slider", n.name))}" class="screen">'
        return f'<div class="line">{field}{slider}{self.grad(k, n, None)}</div>'

    def grad(self, k: int, n: LiveNode, entry: int | None) -> str:
        """Return the gradient of a leaf, or of one of its elements."""
        if k not in self.page.wrt:
            return "" if n.shape else f'<span class="grad quiet">{word("notRequired")}</span>'
        name = n.name if entry is None else element_names(n.name, n.shape)[entry]
        value = None if n.adjoint is None else float(n.adjoint.reshape(-1)[entry or 0])
        label = f"<span>{text(n.name)}.grad = </span>" if entry is None else ""
        return f'<span class="grad">{label}{self.mark("grad", k, entry or 0, name, value)}</span>'

    def field(self, k: int, entry: int, kind: str, name: str, value: float, label: str) -> str:
        """Return a field with its label: of an input, or of a cotangent."""
        self.fields += 1
        key = f"{self.key}-{self.fields}"
        said = say("cotangent", name) if kind == "cotangent" else name
        written = exact(value).replace("Infinity", "inf").replace("NaN", "nan")
        attributes = f'data-{kind}="{text(name)}" data-node="{k}" data-entry="{entry}"'
        if self.lean:
            return f'<label for="{key}">{text(label)}</label><input id="{key}" {attributes} value="{shown(value)}">'
        return (
            f'<label for="{key}" title="{text(said)}">{text(label)}</label>'
            f'<input id="{key}" class="field" type="text" inputmode="decimal" autocomplete="off" spellcheck="false" '
            f'{attributes} aria-label="{text(said)}" value="{written}">'
        )

    def mark(self, kind: str, k: int, entry: int, name: str, value: float | None) -> str:
        """Return the element of a number that changes."""
        said = words()["none"] if value is None else shown(value)
        attributes = f'data-{kind}="{k}" data-entry="{entry}"'
        if self.lean:
            return f"<span {attributes}>{said}</span>"
        number = "" if value is None else f' data-number="{exact(value)}"'
        return f'<span class="number {kind}" {attributes} data-{kind}-of="{text(name)}"{number}>{said}</span>'

    def table(self, k: int, n: LiveNode, values: Any, kind: str, name: str) -> str:
        """Return a grid of fields."""
        names, flat = element_names(name, n.shape), values.reshape(-1)

        def cell(i: int) -> str:
            index = names[i][len(name) :]
            below = self.grad(k, n, i) if kind == "input" else ""
            return f"{self.field(k, i, kind, names[i], float(flat[i]), index)}{below}"

        return grid(n.shape, cell)

    def large(self, k: int, n: LiveNode, kind: str) -> str:
        """Return an array of many entries: statistics, an image where it is one, and the entry in focus."""
        names = element_names(n.name, n.shape)
        key = f"{self.key}-index-{k}-{kind}"
        canvas = (
            f'<div class="images"><canvas tabindex="0" role="img" aria-label="{text(say("image", n.name))}"></canvas>'
            f'<canvas data-gradient role="img" aria-label="{text(n.name)}.grad"></canvas></div>'
            if n.name in self.images and kind == "input"
            else ""
        )
        values = n.value if kind == "input" else self.page.v[n.name]
        first = names[0][len(n.name) + 1 : -1]
        gradient = self.grad(k, n, 0) if kind == "input" else ""
        return (
            f'<div class="large" data-large="{k}"><p class="quiet" data-statistics></p>{canvas}'
            f'<p class="line"><label for="{key}">{text(say("entry", n.name))}</label>'
            f'<input id="{key}" class="field index" data-index type="text" value="{first}" spellcheck="false">'
            f"{self.field(k, 0, kind, names[0], float(values.reshape(-1)[0]), '=')}{gradient}</p></div>"
        )

    # The system

    def system(self) -> Iterator[str]:
        writer = TextWriter(self.page.drawing.style, 6)
        for sides in self.page.recurrences:
            yield f'<p class="recurrence"><code>{text(" = ".join(writer.sides(sides)))}</code></p>'
        for k in self.page.statements:
            n = self.page.nodes[k]
            outputs = [name for name, j in self.page.outputs.items() if j == k]
            name = outputs[0] if outputs and n.name not in outputs else n.name  # of an input that is an output, too
            written = n.written or n.name
            formula = f" = {text(written)}" if written != name else ""
            yield f'<div class="statement {n.kind}" data-row="{k}">'
            yield f'<button type="button" class="show" data-show="{k}"><code>{text(name)}{formula}</code></button>'
            for output in outputs[:1]:  # several names of one value have their v together
                yield self.cotangent(k, n, output)
            yield self.results(k, n, name)
            yield "</div>"

    def cotangent(self, k: int, n: LiveNode, name: str) -> str:
        v = self.page.v[name]
        if not n.shape:
            return f'<span class="v">{self.field(k, 0, "cotangent", name, float(v), "v")}</span>'
        if v.size <= GRID:
            return f'<div class="v"><p class="name">v</p>{self.table(k, n, v, "cotangent", name)}</div>'
        return f'<div class="v"><p class="name">v</p>{self.large(k, n, "cotangent")}</div>'

    def results(self, k: int, n: LiveNode, name: str) -> str:
        """Return the value of a node, and its adjoint, under a name."""
        if not n.shape:
            value = f'<span class="equals">= {self.mark("value", k, 0, name, float(n.value))}</span>'
            if n.adjoint is None:
                return value
            bar = f'<span class="bar-name">{text(n.bar)}</span>'
            return f'{value}<span class="adjoint">{bar} = {self.mark("adjoint", k, 0, name, float(n.adjoint))}</span>'
        if n.value.size > DIGITS_SHOWN:
            value = f'<span class="equals">= <span data-value="{k}"></span>{heat("value", k, n.name)}</span>'
            bar = f'{text(n.bar)} = <span data-adjoint="{k}"></span>{heat("adjoint", k, n.bar)}'
            return value + (f'<span class="adjoint">{bar}</span>' if n.adjoint is not None else "")
        names, values = element_names(name, n.shape), n.value.reshape(-1)
        adjoints = None if n.adjoint is None else n.adjoint.reshape(-1)

        def cell(i: int) -> str:
            value = self.mark("value", k, i, names[i], float(values[i]))
            return value + ("" if adjoints is None else self.mark("adjoint", k, i, names[i], float(adjoints[i])))

        return grid(n.shape, cell)


def grid(shape: Shape, cell: Callable[[int], str]) -> str:
    """Return the cells of an array as tables: rows of the last axis, a table for each index before the last two."""
    columns = shape[-1] if len(shape) > 1 else min(shape[0], _ROW)
    size = 1
    for n in shape:
        size *= n
    rows = [[cell(i) for i in range(k, min(k + columns, size))] for k in range(0, size, max(columns, 1))]
    block = max(shape[-2] if len(shape) > 2 else len(rows), 1)
    tables = []
    for k in range(0, len(rows), block):
        inner = "".join(f"<tr>{''.join(f'<td>{c}</td>' for c in row)}</tr>" for row in rows[k : k + block])
        tables.append(f'<table class="grid">{inner}</table>')
    return f'<div class="scroll">{"".join(tables)}</div>'


def heat(kind: str, k: int, name: str) -> str:
    """Return the cells of an array in colours, which the script draws."""
    return f'<canvas class="heat" data-heat="{kind} {k}" role="img" aria-label="{text(say("heat", name))}"></canvas>'


def button(action: str, label: str = "") -> str:
    """Return a button; one that shows a sign is called what it does."""
    title, shown_label = words().get(f"{action}Title"), word(label or action)
    more = f' title="{escape(title)}"' if title else ""
    more += f' aria-label="{escape(title)}"' if title and not re.search(r"\w", shown_label) else ""
    return f'<button type="button" data-action="{action}"{more}>{shown_label}</button>'


def switch(action: str) -> str:
    """Return a button that is pressed or not."""
    return button(action).replace(">", ' aria-pressed="false">', 1)


def word(key: str) -> str:
    """Return a string of the table, as HTML."""
    return escape(words()[key])


def say(key: str, *values: str) -> str:
    """Return a string of the table with values in it."""
    return words()[key].format(*values)


def text(value: str) -> str:
    """Return a text of the user's as HTML: never markup."""
    return escape(printable(value), quote=True)


def _json(value: Any) -> str:
    """Return JSON in which nothing ends the script around it."""
    dense = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return re.sub("[<>&\u2028\u2029]", lambda m: f"\\u{ord(m[0]):04x}", dense)


def _dense(code: str) -> str:
    """Return code without the indentation of its lines, and without lines of comments alone."""
    lines = (line.strip() for line in code.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("//"))


def _hash(content: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}"
