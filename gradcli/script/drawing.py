"""The picture of an explained `backward`, in the formats of `gradcli graph`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gradcli.errors import InputError
from gradcli.graph.graph import Graph
from gradcli.pages.picture.boxes import View
from gradcli.pages.picture.opening import opened_by_name
from gradcli.pages.picture.picture import picture
from gradcli.report.pictures.render import drawn_as, picture_file, render_picture
from gradcli.report.render import DIGITS
from gradcli.script.loops import folded_loops
from gradcli.script.measured import measured
from gradcli.script.scene import CallScene

_NODES = 10_000  # of a graph that is drawn


@dataclass
class Drawing:
    """The picture of the first call that is explained; `style` is a format of `gradcli graph`, `opens` are calls."""

    style: str
    opens: Sequence[str] = ()
    text: str = ""
    trouble: str = "no backward is explained"

    def add(self, scene: CallScene) -> None:
        """Draw a call, unless one is drawn."""
        if self.text:
            return
        self.trouble = self._trouble(scene)
        if not self.trouble:
            recorded = scene.recorded
            loops = None if scene.unroll or self.opens else folded_loops(recorded, scene.names)
            view = View(recorded.wrt, recorded.at, recorded.v, True, measured(recorded), scene.unroll, loops)
            try:
                graph = opened_by_name(recorded.graph, self.opens)
                if self.style == "html":
                    self.text = self._live(graph, view)
                else:
                    self.text = render_picture(picture(graph, view), drawn_as(self.style), DIGITS)
            except InputError as error:  # the script goes on
                self.trouble = error.message

    def _trouble(self, scene: CallScene) -> str:
        """Return why a call is not drawn."""
        if scene.trouble or not scene.recorded.wrt:
            return scene.trouble or "the call reaches no leaf"
        if any(use.is_change or use.formula is not None for use in scene.recorded.functions.values()):
            return "tensors were changed in place between the lines that read them, and no step is recorded of that"
        if scene.recorded.functions:
            return "it goes through an autograd.Function, whose backward has no graph"
        count = len(scene.recorded.graph.nodes)
        return f"{count:,} operations are too many to draw" if count > _NODES else ""

    def file(self) -> bytes:
        """Return the picture as a file."""
        return picture_file(self.text, self.style)

    def _live(self, graph: Graph, view: View) -> str:
        from gradcli.pages.live import Kernels, live
        from gradcli.report.live.live_page import live_document

        kernels = Kernels()
        page = live(graph, view, kernels, "", formulas=True)
        return live_document(page, kernels.program())
