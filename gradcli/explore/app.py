"""The explorer on the screen: fields and a plot on the left, the page on the right, and the keys."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from time import monotonic
from typing import ClassVar, NamedTuple

from rich.text import Text
from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from gradcli.errors import InputError
from gradcli.explore.page import PageSettings, Shown, plainly, shown
from gradcli.explore.panel import field_rows, plot_rows, rounded
from gradcli.explore.state import COTANGENT, RATE, Explorer, Field, State
from gradcli.guide.topics import topics
from gradcli.report.prose import plain
from gradcli.text.wrapping import cells

_QUICK = 0.03  # seconds in which a page with formulas may be made at once
_QUIET = 0.15  # seconds without a change before formulas are worked on: a key held down changes more often
_SMALLEST = (40, 12)  # columns and rows of a terminal in which anything can be read
_LEFT = (20, 30)  # columns of the fields, at least and at most
_PLAIN_KEYS = {"↑↓": "Up Down", "←→": "Left Right"}
_KEYS = (
    ("↑↓", "field"), ("←→", "change"), ("Enter", "type"), ("u", "undo"), ("r", "reset"), ("s", "steps"), ("g", "graph"),
    ("n p", "step"), ("c", "call"), ("z", "zero"), ("d", "descend"), ("/", "guide"),
)  # fmt: skip
_ACTIONS = {
    "up": "focus_field(-1)", "down": "focus_field(1)", "left": "step(-1)", "right": "step(1)",
    "shift+left": "step(-10)", "shift+right": "step(10)", "enter": "type", "u": "undo", "r": "change('reset')",
    "s": "switch('steps')", "g": "switch('graph')", "n": "pass(1)", "p": "pass(-1)", "c": "change('call')",
    "z": "change('zero')", "d": "descend", "slash": "guide",
    "pageup": "page(-1)", "pagedown": "page(1)", "escape": "cancel", "q": "quit",
}  # fmt: skip
_CHANGED = {
    "call": "another backward: its vᵀJ is added to .grad; v of this call can be changed",
    "zero": ".grad was zeroed: it holds the last call alone",
}
_FIRST = {"shift+tab": "focus_field(-1)", "tab": "focus_field(1)", "ctrl+q": "quit", "ctrl+c": "interrupt"}


class Setting(NamedTuple):
    """The settings of an explorer: its title, whether it has the tables of steps, and whether it prints Unicode.

    `leave` is the help of the key `q`.
    """

    title: str = ""
    steps: bool = False
    unicode: bool = True
    leave: str = "quit"


class Guide(ModalScreen[None]):
    """A page of the guide."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,slash,enter", "dismiss", "close"),
    ]

    def __init__(self, topic: str) -> None:
        super().__init__()
        self.topic = topic

    def compose(self) -> ComposeResult:
        """Yield the page, which scrolls."""
        with VerticalScroll(id="guide"):
            yield Static(id="topic")

    def on_mount(self) -> None:
        """Lay the page out in the width that there is."""
        text = plain(topics()[self.topic].text, max(20, self.app.size.width - 8))
        self.query_one("#topic", Static).update(Text(text + "\n\nEsc closes this page."))
        self.query_one("#guide").focus()


class ExplorerApp(App[None]):
    """The explorer; it keeps its last state when it ends."""

    CSS_PATH = "app.tcss"
    ENABLE_COMMAND_PALETTE = False
    AUTO_FOCUS = None
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(key, action) for key, action in _ACTIONS.items()),
        # Keys that the screen has a use for, too.
        *(Binding(key, action, priority=True) for key, action in _FIRST.items()),
    ]

    def __init__(self, explorer: Explorer, setting: Setting) -> None:
        super().__init__()
        self.explorer = explorer
        self.setting = setting
        self.keys = (*_KEYS, ("q", setting.leave))
        self.more = ""  # how much of the page is below the screen
        self.interrupted = False
        self.steps = setting.steps
        self.graph = False  # whether the picture is shown even where it needs scrolling
        self.at = 0  # the field in focus
        self.pass_ = 0  # the step that the page goes to, from 1; 0 where it is complete
        self.page = Shown("", range(0), 0, ())
        self.sympy_has_run = False
        self.seconds = 0.0  # that the last page with formulas took
        self.working = False  # the thread that makes pages with formulas
        self.request = 0  # the number of the last page that was requested; an earlier one that comes late is dropped

    @property
    def focused_field(self) -> Field:
        """The field in focus."""
        return self.explorer.fields[self.at]

    def compose(self) -> ComposeResult:
        """Yield the widgets of the screen."""
        yield Static(self.setting.title, id="title", markup=False)
        with Horizontal():
            with Vertical(id="left"):
                yield Static(id="fields")
                yield Static(id="plot")
            with VerticalScroll(id="page", can_focus=False):
                yield Static(id="sections")
        yield Static(id="notice", markup=False)
        yield Static(id="keys")
        with Vertical(id="prompt"):
            with Horizontal(id="line"):
                yield Static(id="name", markup=False)
                yield Input(id="typed", disabled=True)
            yield Static(id="wrong", markup=False)

    def on_mount(self) -> None:
        """Show the first state."""
        if not self.setting.unicode:
            self.query_one("#page").styles.scrollbar_size_vertical = 0
        self.query_one("#title").display = bool(self.setting.title)
        self.tell("")

    def on_resize(self, _: events.Resize) -> None:
        """Lay everything out anew, as soon as the size is known."""
        self.call_after_refresh(self.refresh_all)

    # What is shown

    def refresh_all(self) -> None:
        """Show the fields, the plot and the page of the state: numbers at once, formulas as soon as they are ready."""
        columns, rows = _SMALLEST
        too_small = self.size.width < columns or self.size.height < rows
        self.query_one("#left").display = self.query_one("#keys").display = not too_small
        self.query_one("#keys", Static).update(Text("\n").join(self._key_lines()))
        if too_small:
            self.query_one("#sections", Static).update(f"too small: {columns} columns and {rows} rows are needed")
            return
        self.request += 1
        self._show_fields()
        settings = self._page_settings()
        at_once = self.sympy_has_run and self.seconds < _QUICK
        before = monotonic()
        self._show_page(shown(self.explorer, self.explorer.state, settings, formulas=at_once))
        if at_once:
            self.seconds = monotonic() - before
        else:
            self._request_formulas()

    def _page_settings(self) -> PageSettings:
        left = self._left()
        width, rows = max(20, self.size.width - left - 4), self.size.height - self._below()
        return PageSettings(self.steps, self.pass_, width, self.setting.unicode, rows, self.graph)

    def _left(self) -> int:
        """Return the columns of the fields."""
        widest = max(len(f.label) for f in self.explorer.fields) + 14
        low, high = _LEFT
        return min(max(low, widest, self.size.width // 4), high, self.size.width // 2)

    def _request_formulas(self) -> None:
        """Make the page with formulas in a thread, one at a time: SymPy may take seconds."""
        if not self.working:
            self.working = True
            self._wait(self.request) if self.sympy_has_run else self._start()

    def _wait(self, request: int) -> None:
        """Start the thread once nothing has changed for a moment: it would slow down what follows a key held down."""
        self.set_timer(_QUIET, lambda: self._start() if request == self.request else self._wait(self.request))

    def _start(self) -> None:
        wanted = (self.request, self.explorer.state, self._page_settings())
        Thread(target=self._make_page, args=wanted, daemon=True).start()

    def _make_page(self, request: int, state: State, settings: PageSettings) -> None:
        """Make the page with its formulas, in a thread of its own."""
        before = monotonic()
        page = shown(self.explorer, state, settings, formulas=True)
        seconds = monotonic() - before
        # The first run loads SymPy: its time says nothing of the next.
        self.call_from_thread(self._show_made, request, page, seconds if self.sympy_has_run else 0.0)

    def _show_made(self, request: int, page: Shown, seconds: float) -> None:
        """Show the page with its formulas; where another was requested meanwhile, make that one."""
        self.working, self.sympy_has_run, self.seconds = False, True, seconds
        if request == self.request:
            self._show_page(page)
        else:
            self._request_formulas()

    def _show_page(self, page: Shown) -> None:
        self.page = page
        text = Text.from_ansi(page.text.rstrip("\n"), no_wrap=True)
        lines = list(text.split("\n", allow_blank=True))
        for k in page.marked:
            lines[k].stylize("reverse")
        for note in page.notes:
            lines += [Text(""), Text(self._plainly(note), "italic")]
        self.query_one("#sections", Static).update(Text("\n").join(lines))
        hidden = len(lines) + self._below() - self.size.height
        self.more = f"{hidden} more lines" if hidden > 0 else ""
        self.query_one("#keys", Static).update(Text("\n").join(self._key_lines()))
        view = self.query_one("#page", VerticalScroll)
        if self.graph:
            self.call_after_refresh(view.scroll_end, animate=False)
        elif page.marked:
            view.scroll_to(y=max(0, page.marked.start - view.size.height // 2), animate=False)

    def _show_fields(self) -> None:
        width = self._left() - 2
        self.query_one("#left").styles.width = self._left()
        rows = field_rows(self.explorer, self.at, width, self.setting.unicode)
        room = self.size.height - self._below()
        self.call_after_refresh(self._show_plot, width, room - len(rows) - 3)  # numbers first
        at = next(k for k, (field, _) in enumerate(rows) if field == self.at)
        start = max(0, min(at - room // 2, len(rows) - room)) if len(rows) > room else 0
        some = rows[start : start + room]
        for k, hidden in ((0, start), (-1, len(rows) - start - room)):
            if hidden > 0:
                some[k] = -1, Text(self._plainly(f"  {'↑' if k == 0 else '↓'} {hidden + 1} more"), "dim")
        self.rows = [field for field, _ in some]
        self.query_one("#fields", Static).update(Text("\n").join(text for _, text in some))

    def _show_plot(self, width: int, height: int) -> None:
        complete = self.pass_ in (0, self.page.steps)  # the curve tells the output and its slope
        at = self.focused_field
        curve = plot_rows(self.explorer, at, width, height, self.setting.unicode) if complete else []
        self.query_one("#plot", Static).update(Text("\n").join(curve))

    def _below(self) -> int:
        """Return the rows that the fields do not have: the keys, the title, and messages."""
        title = -(-cells(self.setting.title) // max(1, self.size.width - 2))
        return len(self._key_lines()) + title + 1

    def _key_lines(self) -> list[Text]:
        """Return the help of the keys, in lines."""
        result = [Text(no_wrap=True)]
        for key, what in (*self.keys[:-1], *[("PgDn", self.more)] * bool(self.more), self.keys[-1]):
            name = key if self.setting.unicode else _PLAIN_KEYS.get(key, key)
            entry = Text.assemble((name, "bold"), f" {what}  ")
            if result[-1].cell_len + entry.cell_len > self.size.width:
                result.append(Text(no_wrap=True))
            result[-1].append_text(entry)
        return result

    def _plainly(self, text: str) -> str:
        """Return a text in the characters that the terminal has."""
        return text if self.setting.unicode else plainly(text)

    def tell(self, text: str) -> None:
        """Show a line above the keys: what a key did, or why it did nothing."""
        line = self.query_one("#notice", Static)
        line.update(self._plainly(text))
        line.display = bool(text)

    # What the keys do

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave the keys to the field that is typed into, and to a page of the guide."""
        if action == "quit":
            return not self.is_typing
        if action in ("interrupt", "cancel"):
            return True
        return not (self.is_typing or isinstance(self.screen, Guide)) or None

    @property
    def is_typing(self) -> bool:
        """Whether a value is being typed."""
        return bool(self.query_one("#prompt").display) if not isinstance(self.screen, Guide) else False

    def _do(self, work: Callable[[], object], message: str = "") -> None:
        """Change the state and show it, or show why it cannot be changed."""
        try:
            work()
        except InputError as error:
            self.tell(error.render(self.size.width - 2))
            return
        self.tell(message)
        self.refresh_all()

    def action_focus_field(self, count: int) -> None:
        """Move the focus."""
        self.at = (self.at + count) % len(self.explorer.fields)
        self.tell("")
        self._show_fields()

    def on_click(self, event: events.Click) -> None:
        """Move the focus to the field that is clicked."""
        widget = self.query_one("#fields")
        if not isinstance(self.screen, Guide) and widget.region.contains(event.screen_x, event.screen_y):
            row = event.screen_y - widget.region.y
            if 0 <= row < len(self.rows) and self.rows[row] >= 0:
                self.at = self.rows[row]
                self._show_fields()

    def action_step(self, count: int) -> None:
        """Change the number in focus by some steps."""
        self._do(lambda: self.explorer.step(self.focused_field, count))

    def action_undo(self) -> None:
        """Go back by one change."""
        self._do(lambda: None) if self.explorer.undo() else self.tell("nothing to undo")

    def action_switch(self, part: str) -> None:
        """Show the tables of steps, or the picture below the page, where it goes to; or hide them."""
        setattr(self, part, not getattr(self, part))
        self.pass_ = 0
        self._do(lambda: None)

    def action_pass(self, count: int) -> None:
        """Reveal the next step, or hide the last: an operation of the forward pass, then an edge of the reverse pass.

        A page that is complete begins with the first step, or goes back from the last.
        """
        if not self.steps:
            self.steps, self.pass_ = True, 0
            self._do(lambda: None)
        before = self.page.steps if not self.pass_ and count < 0 else self.pass_
        self.pass_ = max(1, min(before + count, self.page.steps))
        self._do(lambda: None, f"step {self.pass_} of {self.page.steps}")

    def action_change(self, name: str) -> None:
        """Change the state: go back to the first values, call `backward` once more, or zero `.grad`."""
        self._do(getattr(self.explorer, name), _CHANGED.get(name, ""))

    def action_descend(self) -> None:
        """Take a step of gradient descent."""
        self._do(self.explorer.descend)
        state = self.explorer.state
        if state.losses and not self.query_one("#notice").display:
            losses = [rounded(loss, 6) for loss in (*state.losses[-3:], self.explorer.loss_at())]
            more = "… → " * (len(state.losses) > 3)
            step = f"step {len(state.losses)} of gradient descent"
            self.tell(f"{step}: {self.explorer.loss} = {more}{' → '.join(losses)}")

    def action_guide(self) -> None:
        """Show the page of the guide on what is in focus."""
        self.push_screen(Guide(self.topic()))

    def topic(self) -> str:
        """Return the topic of what is in focus."""
        if len(self.explorer.state.calls) > 1:
            return "accumulation"
        if any("no derivative" in note for note in self.page.notes):
            return "corners"
        of_kind = {COTANGENT: "gradient-argument", RATE: "zero-grad"}
        return of_kind.get(self.focused_field.kind, "vector-jacobian-product")

    def action_page(self, count: int) -> None:
        """Scroll the page by a screen."""
        view = self.query_one("#page", VerticalScroll)
        view.scroll_relative(y=count * max(1, view.size.height - 2), animate=False)

    def action_interrupt(self) -> None:
        """Leave, and say that Ctrl-C was typed."""
        self.interrupted = True
        self.exit()

    # Typing

    def action_type(self) -> None:
        """Open the field in focus for typing."""
        self.query_one("#prompt").display = True
        self.query_one("#keys").display = False
        self.query_one("#wrong", Static).update("")
        typed = self.query_one("#typed", Input)
        typed.disabled, typed.value = False, ""
        typed.placeholder = "a number, such as 2, -1/3 or pi; Esc leaves it as it is"
        self.query_one("#name", Static).update(f"{self.focused_field.label} = ")
        typed.focus()
        self.tell("")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Take what was typed, or say below it what is wrong."""
        try:
            self.explorer.enter(self.focused_field, event.value)
        except InputError as error:
            self.query_one("#wrong", Static).update(self._plainly(error.render(self.size.width - 2)))
            return
        self.action_cancel()
        self.refresh_all()

    def action_cancel(self) -> None:
        """Type no more."""
        self.query_one("#prompt").display = False
        self.query_one("#keys").display = True
        self.query_one("#typed").disabled = True
        self.set_focus(None)


def run_app(explorer: Explorer, setting: Setting) -> ExplorerApp:
    """Run the explorer of a system on the terminal; return the app after its end."""
    app = ExplorerApp(explorer, setting)
    app.run()
    return app
