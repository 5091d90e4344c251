"""Scripts with loops, as people write them; `inputs` are the variables that a page of one may read, by its names.

`rounds` is the index of its recurrence with the first and the last round, and `shown` are statements of its page.
"""

import re
from pathlib import Path
from typing import NamedTuple

from tests.comparison import titled


class Case(NamedTuple):
    code: str
    inputs: list[str]
    rounds: str
    shown: list[str]


def _case(text):
    code = re.sub(r"^# (?:inputs|rounds|shown): .*\n", "", text, flags=re.MULTILINE)
    inputs, rounds, shown = (re.findall(rf"^# {w}: (.*)", text, re.MULTILINE) for w in ("inputs", "rounds", "shown"))
    return Case(code, inputs[0].split(), "".join(rounds), shown)


CASES = {name: _case(text) for name, text in titled(Path(__file__).with_suffix(".txt")).items()}
