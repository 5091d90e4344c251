"""What commands print, to standard output and to standard error, and the files that they write."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import click

from gradcli.errors import InputError, Notes, in_lines
from gradcli.process.platform import is_closed_pipe
from gradcli.process.streams import discard, flush, print_error
from gradcli.report.render import PAGES
from gradcli.text.plain import print_utf8

if TYPE_CHECKING:
    from gradcli.pages.picture.head import Head
    from gradcli.pages.results import Answer
    from gradcli.pages.sections import Page
    from gradcli.report.render import Look


def print_mistake(error: InputError, name: str) -> None:
    """Print the error of one of several files, behind the results of the others."""
    from gradcli.text.wrapping import page_width

    flush()
    print_error(error.render(page_width(), f"error in {name}: "))


def show(text: str | Iterable[str], notes: Notes) -> None:
    """Print a result to standard output, and the notes to standard error."""
    try:
        for line in [text.rstrip("\n")] if isinstance(text, str) else text:
            click.echo(line)
        flush()
    except OSError as error:
        if not is_closed_pipe(error):
            raise
        discard()  # the reader (`| head`) has seen enough
    print_notes(notes)


def show_result(
    result: Answer,
    pages: Callable[[], Iterable[Page]],
    look: Look,
    notes: Notes,
    output: str | None = None,
    head: Head | None = None,
) -> None:
    """Print a result as pages, in a document below its head, or as data, and the notes; or write it to a file."""
    from gradcli.report.render import data_lines, is_printed, render_pages

    if look.style not in PAGES:
        print_utf8()
        lines = data_lines(result, look.style)
        if output is None:
            show(lines, notes)
        else:
            deliver("".join(f"{line}\n" for line in lines), output, notes, look.style.upper())
        return
    shown = list(pages())
    if not is_printed(look.style) and shown:
        shown[-1] = shown[-1].with_notes(notes.lines)
    deliver(render_pages(shown, look, head), output, notes, "text" if is_printed(look.style) else look.style)


def deliver(result: str | bytes, output: str | None, notes: Notes, what: str) -> None:
    """Write a text, or the bytes of a file, to a file, or print it where there is none, or `-`; and print the notes.

    `what` it is is printed where a file is written.

    Errors: `InputError` for a file that cannot be written.
    """
    if output is None or output == "-":
        show(result.decode() if isinstance(result, bytes) else result, notes)
        return
    data = result.encode() if isinstance(result, str) else result
    print_notes(notes)
    save(output, data, f"{what}, {size_in_words(len(data))}")


def save(path: str, data: bytes, what: str) -> None:
    """Write a file, and print what was written.

    Errors: `InputError` for a file that cannot be written.
    """
    from gradcli.data.replacement import write_whole

    write_whole(path, data)
    flush()
    print_error(wrote(path, what))


def wrote(path: str, what: str) -> str:
    """Return the line that says what was written to a file."""
    from gradcli.files import printable

    return f"wrote {printable(path)}: {what}"


def size_in_words(count: int) -> str:
    """Return a number of bytes in words.

    >>> size_in_words(999), size_in_words(74_321), size_in_words(2_500_000)
    ('999 bytes', '74 kB', '2.5 MB')
    """
    if count < 10**3:
        return f"{count} bytes"
    return f"{round(count / 10**3)} kB" if count < 10**6 else f"{count / 10**6:.1f} MB"


def print_notes(notes: Notes) -> None:
    """Print the notes to standard error, after all that standard output has."""
    flush()
    if notes.lines:
        from gradcli.text.wrapping import page_width

        for text in notes.lines:
            for line in in_lines(text, page_width()):
                print_error(line)
