"""Pages of a program's own backwards under PyTorch: in a block, or of one tensor."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from gradcli.errors import InputError
from gradcli.process import pytorch
from gradcli.record.record import CallSite, Record


@dataclass(repr=False)
class Page:
    """The page of one backward; in a notebook it is shown as HTML."""

    record: Record
    notes: Sequence[str] = ()

    def __str__(self) -> str:
        return self.page()

    __repr__ = __str__

    @property
    def title(self) -> str:
        """The line of the call, with its code."""
        site = self.record.backwards[0].site
        return f"line {site.line}: {site.code}"

    def page(self, style: str = "table") -> str:
        """Return the page in a format of pages: `table`, `html`, `markdown` or `latex`."""
        from gradcli.report.render import Look, render_pages
        from gradcli.script.under_pytorch.page import page_of

        return render_pages([page_of(self.record).with_notes(self.notes)], Look(style)).rstrip("\n")

    def _repr_html_(self) -> str:
        return f"<h4><code>{escape(self.title)}</code></h4>\n{self.page('html')}"


@dataclass
class Recording:
    """The pages of a block, in the order of the calls."""

    pages: list[Page] = field(default_factory=list)


@contextmanager
def recording(*, line: int | Iterable[int] = (), output: str | None = None) -> Iterator[Recording]:
    """Show the page of each `backward` and `autograd.grad` in a block, the first time that its line is reached.

    In a notebook pages are HTML, elsewhere text.  `line` names the lines whose calls are explained; `output` is a file
    for the pages in place of standard output: .txt, .md, .tex or .html.  What is computed within the block has
    formulas; of what was computed before, PyTorch's own graph alone is known.  Once these lines have their pages,
    or explained ones were reached five times more, the program runs at PyTorch's speed.

    Errors: `InputError` without PyTorch, and for another ending of the file.
    """
    _check_pytorch()
    from gradcli.report.render import PAGE_ENDINGS

    style = "table" if output is None else PAGE_ENDINGS.get(Path(output).suffix, "")
    if not style:
        raise InputError(f"`{output}` has an unknown ending", hint=f"use one of {', '.join(PAGE_ENDINGS)}")
    from gradcli.realtorch.driver import Session
    from gradcli.realtorch.sites import Lines

    result = Recording()
    lines = frozenset((line,) if isinstance(line, int) else line)

    def explain(record: Record | Exception, site: CallSite, is_recorded: bool) -> None:
        if isinstance(record, Exception):
            print(f"gradcli: line {site.line} is not explained: {type(record).__name__}: {record}", file=sys.stderr)
            return
        late = f"note: met after the recording ended, so its calls are PyTorch's: recording(line={site.line}) has them"
        page = Page(record, () if is_recorded else (late,))
        result.pages.append(page)
        if output is None:
            _show(page)

    try:
        wants = lambda site, times: times == 1 and (not lines or site.line in lines)  # noqa: E731
        with Session(wants, explain, Lines(None, lines)).running():
            yield result
    finally:
        if output is not None:
            from gradcli.data.replacement import write_whole
            from gradcli.report.render import Look, has_documents, render_pages
            from gradcli.script.under_pytorch.page import page_of

            pages = [page_of(p.record).with_notes(p.notes) for p in result.pages]
            text = render_pages(pages, Look(style, standalone=has_documents(style))) if pages else ""
            write_whole(output, text.encode())


def _check_pytorch() -> None:
    installed = pytorch.version()
    if installed is None or not pytorch.is_new_enough(installed):
        least = ".".join(map(str, pytorch.LOWEST))
        raise InputError(f"this needs PyTorch {least} or later", hint=f"install it: {pytorch.INSTALL} --upgrade")


def explained(y: Any, v: Any = None) -> Page:
    """Return the page of a tensor of PyTorch's, from its `grad_fn`: no `.grad` changes.

    Errors: `InputError` for a tensor without a graph, and for several numbers without `v`.
    """
    _check_pytorch()
    from gradcli.realtorch.tensors import record_of

    return Page(record_of(y, v))


def is_tensor(x: Any) -> bool:
    """Return whether something is a tensor of PyTorch's, which is imported if it is."""
    torch: Any = sys.modules.get("torch")
    return hasattr(torch, "Tensor") and isinstance(x, torch.Tensor)


def _show(page: Page) -> None:
    """Show a page where the program runs: in a notebook as HTML, else as text."""
    if "ipykernel" in sys.modules:
        from IPython.display import display

        display(page)
        return
    print(f"── {page.title}\n{page}")
