"""Mistakes in a command line: where they are in it, and how a line that is nearly right is corrected."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from gradcli.errors import Fix, InputError, Source, Span
from gradcli.graph.names import NAME
from gradcli.process.platform import join, quote

_SHORT = len("-f")
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?:,.*)?", re.ASCII)
_ASSIGNED = re.compile(rf"({NAME})(?:\[[\d,\s]*\])?=(?!=)\s*[-+\d.\[@].*", re.ASCII)
# The options whose values are separated by commas, and what a further value of each looks like.
_LISTS = {"--v": (_NUMBER, _ASSIGNED), "--u": (_ASSIGNED,), "--at": (_ASSIGNED,), "--shape": (_ASSIGNED,)}
_OPTION = re.compile(rf"--?({NAME})(?:=(.*))?")
_VALUE = re.compile(r"[-+]?[\d.\[@]|pi\b|e\b|inf\b|nan\b")
_CLAIM = re.compile(rf"d\d*{NAME}\s*(?:\[[\d\s,]*\])?\s*/\s*d|{NAME}\.grad\s*=")


class _OptionValue(NamedTuple):
    """An option of the command line: its position among the arguments, its name there, and its value."""

    position: int
    name: str
    value: str


def locate(options: Sequence[str], text: str | None, arguments: Sequence[str]) -> Span | None:
    """Return the position of a text in the value of the last of the options, else of the option, else of an argument.

    >>> locate(["--wrt"], "q", ["jvp", "y=x", "--wrt", "x,q"]).text
    'q'
    >>> locate(["--nonsense"], None, ["jvp", "y=x", "--nonsense"])[1:]
    (16, 26)
    >>> locate([], "p.csv", ["jvp", "y=x", "--points", "p.csv"]).text
    'p.csv'
    """
    if (option := _last(options, arguments)) is not None:
        return _within(option.value, options[-1], text) or _word(arguments, option.position, option.name)
    for k, argument in reversed([*enumerate(arguments)]):
        if text and argument == text:
            return _word(arguments, k, text)
    return None


def value_of(options: Sequence[str], arguments: Sequence[str]) -> str | None:
    """Return the value that is typed behind the last of the options.

    >>> value_of(["-f", "--format"], ["jvp", "y=x", "--format=png"])
    'png'
    """
    option = _last(options, arguments)
    return option and option.value


def _last(options: Sequence[str], arguments: Sequence[str]) -> _OptionValue | None:
    """Return the last of the options in the command line."""
    for k, (argument, value) in reversed([*enumerate(zip(arguments, [*arguments[1:], ""], strict=True))]):
        name, equals, rest = argument.partition("=")
        if name in options:
            return _OptionValue(k, name, rest if equals else value)
    # An option of one letter may have its value, or another such option, right behind it: `-fpng`.
    short = [
        (k, option)
        for k, a in enumerate(arguments)
        for option in options
        if len(option) == _SHORT and a.startswith(option)
    ]
    return _OptionValue(*short[-1], arguments[short[-1][0]][_SHORT:]) if short else None


def _within(value: str, option: str, text: str | None) -> Span | None:
    """Return where an option's value has the text, as a word."""
    if text and (result := re.search(rf"(?<!\w){re.escape(text)}(?!\w)", value)):
        return Span(Source(value, option), *result.span())
    return None


def _word(arguments: Sequence[str], k: int, text: str) -> Span:
    """Return where the command line has a text that an argument begins with."""
    line = join(["gradcli", *arguments])
    start = line.find(text, len(join(["gradcli", *arguments[:k]])) + 1)
    return Span(Source(line), start, start + len(text)) if start >= 0 else Span(Source(line), len(line), len(line))


def command_line(arguments: Sequence[str]) -> Span:
    """Return the whole command line, as a shell takes it."""
    line = join(["gradcli", *arguments])
    return Span(Source(line), 0, len(line))


def _corrected(wrong: Sequence[str], right: Sequence[str]) -> Fix:
    return Fix(command_line(wrong), join(["gradcli", *right]))


def with_command(arguments: Sequence[str], commands: Mapping[str, Collection[str]]) -> Fix:
    """Return the command line with a command in front: the likeliest that has all options which are typed.

    A command that stands elsewhere in the line moves to the front.  `commands` holds the options of each.

    >>> with_command(["y=x**2", "--at", "x=3"], {"backward": ["--at", "--v"], "jacobian": ["--at"]}).text
    "gradcli backward 'y=x**2' --at x=3"
    """
    if named := next((argument for argument in arguments if argument in commands), None):
        position = arguments.index(named)
        return _corrected(arguments, [named, *arguments[:position], *arguments[position + 1 :]])
    typed = {argument.partition("=")[0] for argument in arguments if argument.startswith("--")}
    words = [  # those that are neither options nor, after one such as `--at`, its value
        word
        for before, word in zip(["", *arguments], arguments, strict=False)
        if not word.startswith("-") and (not before.startswith("-") or "=" in before)
    ]
    texts = [piece for word in words for piece in re.split("[;\n]", word) if piece.strip()]
    several = "--v" not in typed and len(texts) > 1
    first = "check" if any(map(_CLAIM.match, texts)) else "jacobian" if several else "backward"
    fitting = (name for name in (first, "jvp", *commands) if typed <= {*commands.get(name, ())})
    return _corrected(arguments, [next(fitting, first), *arguments])


def with_point(arguments: Sequence[str], known: Collection[str]) -> Fix | None:
    """Return the command line with `--at x=3` in place of `--x 3`, or None where an unknown option has no value.

    >>> with_point(["backward", "y=x*z", "--x", "3", "--z=4"], ["--at"]).text
    "gradcli backward 'y=x*z' --at x=3,z=4"
    """
    rest: list[str] = []
    values: list[str] = []
    waiting = [*reversed(arguments)]
    while waiting:
        argument = waiting.pop()
        option = _OPTION.fullmatch(argument)
        name = argument.partition("=")[0]
        if option is None or name in known:
            rest.append(argument)
            continue
        value = option[2] if option[2] is not None else waiting.pop() if waiting else ""
        if not _VALUE.match(value):
            return None
        values.append(f"{option[1]}={value}")
    if "--at" in rest[:-1]:
        position = rest.index("--at") + 1
        rest[position] = ",".join([rest[position], *values])
    else:
        rest += ["--at", ",".join(values)]
    return _corrected(arguments, rest)


def separated(error: InputError, arguments: Sequence[str]) -> InputError:
    """Return an error, or the one that explains it: `--v 1 2` gives --v one value, and 2 is taken for a statement.

    >>> wrong = InputError("…", Span(Source("2"), 0, 1))
    >>> separated(wrong, ["backward", "y=[x,x]", "--v", "1", "2"]).fix.corrected
    "gradcli backward 'y=[x,x]' --v 1,2"
    """
    for k, option in enumerate(arguments[:-2]):
        kinds = _LISTS.get(option, ())
        more = 0
        while k + 2 + more < len(arguments) and any(kind.fullmatch(arguments[k + 2 + more]) for kind in kinds):
            more += 1
        if more and _is_about(error, arguments[k + 2 : k + 2 + more]):
            first, last = len(join(["gradcli", *arguments[: k + 1]])) + 1, k + 2 + more
            line = command_line(arguments).source
            text = quote(",".join(arguments[k + 1 : last]))
            span = Span(line, first, len(join(["gradcli", *arguments[:last]])))
            message = f"the values of {option} are separated by a space"
            return InputError(message, span, f"separate them by a comma: {option} {text}", fix=Fix(span, text))
    return error


def _is_about(error: InputError, extra: Sequence[str]) -> bool:
    """Return whether an error is about arguments that were read as statements."""
    names = {assigned[1] for text in extra if (assigned := _ASSIGNED.fullmatch(text))}
    if len(names) < len(extra):  # a number alone is not a statement
        return True
    return error.span is not None and (error.span.source.text in extra or error.span.text in names)
