"""List the texts that can reach a user: `python -m tests.docs.strings [--avoided] [ROOM]...`.

A line is `FILE:LINE: TEXT`; with `--avoided`, only texts that hold a phrase that the project avoids, with what to write
instead.  The texts are all string constants of the program that read as words, with `…` for a value: errors, notes,
hints, labels and sections of pages, options; the help of each command; the live page's words; comments in exported
code; and the guide, the README and the samples, without what commands print there.  Docstrings, annotations and
regular expressions are left out.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "gradcli"

# What is avoided, as a regular expression, and what to write instead.
AVOIDED = {
    r"mends?\b|mended\b|mending\b": "fix",
    r"part(?:s|ed) (?:by|from|with)\b|parting\b|keeps? .{1,20} apart\b": "separate",
    r"whole numbers?\b|truth values?\b": "integer, boolean",
    r"(?<!there )(?:is|are) no (?!longer\b|larger\b|more than\b)": "is not a …; unknown; must be",
    r"says? nothing\b": "is inconclusive; has no effect",
    r"st(?:and|ands|ood|anding) (?:in for|for|behind|in place of|in the place of)\b": "follows; means; represents",
    r"told\b(?! apart)|(?<!cannot )tells?\b(?! apart)|telling\b(?! apart)": "shows, names, describes, means",
    r"lacks?\b|lacking\b|lacked\b": "does not have; does not support; missing",
    r"handed\b|hands? (?:on|over|back|in|it|what)\b": "passed, given",
    r"alike\b": "the same, equal, similar",
    r"go(?:es)? by\b|went by\b": "uses, follows, depends on",
    r"turned\b|turns? (?:it|them|the other)\b": "transposed, rotated, becomes",
    r"is forgotten\b": "is missing",
    r"what (?:is|was|are|were) (?:given|passed|made|asked|said|told|found|taken|read|shown|used|computed|written)\b":
        "a noun: the value, the argument, the result",
    r"refuse[sd]?\b|refusal\b|refusing\b": "raises an error; does not accept; is an error",
    r"the thread\b|thread (?:is|was) lost\b": "cut off from the graph",
    r"dies\b|dying\b": "fails, is killed, becomes 0",
    r"holds? the above\b|of the above\b": "the values above",
    r"by (?:that|this|its|their|which) name is\b|goes under\b": "is called",
    r"comes? about\b|came about\b": "is computed, is the result of",
    r"nobody\b|nothing (?:else )?(?:is|was) (?:said|asked)\b": "a sentence with a subject",
    r"it alone\b|that alone\b|\w+ alone is\b": "only",
    r"so (?:are|is|does|do) (?:they|it|those|these)\b": "a sentence of its own",
}  # fmt: skip
_AVOIDED = {re.compile(rf"\b(?:{pattern})", re.IGNORECASE): instead for pattern, instead in AVOIDED.items()}

# Strings that may hold such a phrase, with the reason: a part of the file's name, and a part of the text.
ALLOWED: dict[tuple[str, str], str] = {}

_WORDS = re.compile(r"[^\W\d_]{2,}[,;:]? [^\W\d_]{2,}|^ [^\W\d_]{2,}|[^\W\d_]{2,} $")
_FENCED = re.compile(r"^(`{3,})(\w*).*?^\1$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_CODE = re.compile(r"(?<!`)`[^`\n]*`(?!`)")


class Text(NamedTuple):
    """A text that can reach a user, and where it stands."""

    path: str
    line: int
    text: str

    @property
    def room(self) -> str:
        """The room of the program whose text it is, or `docs`."""
        parts = Path(self.path).parts
        if parts[0] != "gradcli" or (parts[1] == "guide" and not self.path.endswith(".py")):
            return "docs"
        return parts[1] if len(parts) > 2 else "core"

    @property
    def avoided(self) -> dict[str, str]:
        """The phrases in it that are avoided, each with what to write instead; code in backquotes does not count."""
        if any(part in self.path and words in self.text for part, words in ALLOWED):
            return {}
        prose = _CODE.sub("`…`", self.text)
        return {match[0]: instead for phrase, instead in _AVOIDED.items() for match in phrase.finditer(prose)}


def texts() -> Iterator[Text]:
    """Yield all texts, room by room."""
    for path in sorted(PROGRAM.rglob("*.py")):
        yield from of_python(path)
    for path in [PROGRAM / "report/live/words.json", *sorted((PROGRAM / "report/live").glob("*.js"))]:
        yield from _of_script(path)
    for name in ("script/errors/answers.txt", "codegen/helpers.c", "codegen/helpers.js"):
        yield from _of_lines(PROGRAM / name)
    for path in [ROOT / "README.md", *sorted((PROGRAM / "guide").glob("*.md"))]:
        yield from _of_page(path)
    for path in sorted((ROOT / "samples").glob("*")):
        if path.suffix in (".grad", ".py", ".sh"):
            yield from _of_comments(path)


def _placed(path: Path, line: int, text: str) -> Text:
    return Text(path.relative_to(ROOT).as_posix(), line, " ".join(text.split()))


def of_python(path: Path) -> Iterator[Text]:
    """Yield the string constants of a module that read as words."""
    tree = ast.parse(path.read_text("utf-8"))
    unseen = {id(node) for node in _unseen(tree)}
    keys = _keys() if path.is_relative_to(PROGRAM / "pytorch") else frozenset()
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if id(node) in unseen:
            continue
        text = _constant(node)
        if text is None:
            waiting += reversed([*ast.iter_child_nodes(node)])
        elif _WORDS.search(text) and text not in keys:
            yield _placed(path, getattr(node, "lineno", 0), text)
        if isinstance(node, ast.JoinedStr):  # strings inside its values
            waiting += [part.value for part in node.values if isinstance(part, ast.FormattedValue)]


@cache
def _keys() -> frozenset[str]:
    """Return the names of PyTorch's messages, by which the program finds them."""
    paragraphs = (PROGRAM / "pytorch" / "messages.txt").read_text("utf-8").rstrip().split("\n\n")
    heads = (p.partition("\n")[0].rpartition(": ")[0] for p in paragraphs)
    own = (p.partition("\n")[2].replace("\n", " ").split("; ") for p in paragraphs if p.startswith("own texts: "))
    return frozenset([*heads, *(key for keys in own for key in keys)])


def _constant(node: ast.AST) -> str | None:
    """Return the text of a string, with `…` for the values in it; None for any other node."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else "…" for part in node.values)
    return None


def _unseen(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes whose strings no user sees: docstrings, annotations, regular expressions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and _constant(first.value) is not None and not _is_command(node):
                yield first.value
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from filter(None, [node.returns, *(a.annotation for a in _arguments(node.args))])
        elif isinstance(node, ast.AnnAssign):
            yield node.annotation
        elif isinstance(node, ast.Call) and ast.unparse(node.func).startswith(("re.", "cast")):
            yield from node.args[:1]


def _arguments(arguments: ast.arguments) -> list[ast.arg]:
    rest = [a for a in (arguments.vararg, arguments.kwarg) if a is not None]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *rest]


def _is_command(node: ast.AST) -> bool:
    """Whether this is a function whose docstring is the help of a command."""
    decorators = getattr(node, "decorator_list", [])
    return any(re.match(r"click\.(?:command|group)\b|asking\b", ast.unparse(d)) for d in decorators)


def _of_script(path: Path) -> Iterator[Text]:
    """Yield the quoted texts of JavaScript or JSON that read as words."""
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if line.lstrip().startswith(("//", "*", "/*")):
            continue
        for quoted in re.findall(r'"((?:[^"\\]|\\.)*)"|`((?:[^`\\]|\\.)*)`', line):
            text = re.sub(r"\$\{[^}]*\}", "…", "".join(quoted))
            if _WORDS.search(text):
                yield _placed(path, number, text)


def _of_lines(path: Path) -> Iterator[Text]:
    """Yield the paragraphs of a file of sentences."""
    line = 1
    for paragraph in path.read_text("utf-8").split("\n\n"):
        words = re.sub(r"^(?:error|tell): .*$", "", paragraph, flags=re.MULTILINE)  # names of errors and functions
        if _WORDS.search(words):
            yield _placed(path, line, words)
        line += paragraph.count("\n") + 2


def _of_page(path: Path) -> Iterator[Text]:
    """Yield the sentences of a page in Markdown, and the comments in its code, but not what commands print."""
    text = _COMMENT.sub(_blank, _FENCED.sub(_comments_of, path.read_text("utf-8")))
    line = 1
    for paragraph in text.split("\n\n"):
        if _WORDS.search(paragraph):
            yield _placed(path, line + len(paragraph) - len(paragraph.lstrip("\n")), paragraph)
        line += paragraph.count("\n") + 2


def _blank(match: re.Match[str]) -> str:
    return "\n" * match[0].count("\n")


def _comments_of(block: re.Match[str]) -> str:
    """Return the comments of a block of code, each in its line; nothing of a console."""
    shown = block[2] in ("python", "sh", "grad", "")
    return "\n".join(line.partition("# ")[2] if shown else "" for line in block[0].splitlines())


def _of_comments(path: Path) -> Iterator[Text]:
    """Yield the comments of a sample, but not the output that one promises."""
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        said = re.match(r"(?:|.* )# (?![ $])(.*)", line)
        if said and _WORDS.search(said[1]):
            yield _placed(path, number, said[1])


def main(arguments: list[str]) -> None:
    """Print the texts of the rooms, or of all."""
    rooms = {word for word in arguments if not word.startswith("-")}
    for text in texts():
        if rooms and text.room not in rooms:
            continue
        if "--avoided" not in arguments:
            print(f"{text.path}:{text.line}: {text.text}")
        elif text.avoided:
            phrases = "; ".join(f"{phrase!r} → {instead}" for phrase, instead in text.avoided.items())
            print(f"{text.path}:{text.line}: {phrases}\n    {text.text}")


if __name__ == "__main__":
    main(sys.argv[1:])
