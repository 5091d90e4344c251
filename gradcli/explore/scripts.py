"""A script that stops after each explained `backward`, whose system is explored there before the script goes on."""

from __future__ import annotations

import sys

from gradcli.explore.app import Setting, run_app
from gradcli.explore.state import Explorer, State
from gradcli.script.scene import CallScene
from gradcli.script.shown import Printed


class Stops(Printed):
    """Standard output; each page is printed, and its system opened in an explorer."""

    def __init__(self, unicode: bool) -> None:
        super().__init__()
        self.unicode = unicode

    def explained(self, scene: CallScene, title: str, text: str) -> None:
        """Show the page of a call, and let its system be explored; Ctrl-C ends the script there."""
        super().explained(scene, title, text)
        recorded = scene.recorded
        if scene.trouble or not recorded.wrt:
            return
        sys.stdout.flush()
        state = State({**recorded.at}, ({**recorded.v},))
        explorer = Explorer(recorded.graph, [*recorded.wrt], state)
        app = run_app(explorer, Setting(title=title, unicode=self.unicode, leave="go on"))
        if app.interrupted:
            raise KeyboardInterrupt
