"""The README's picture in motion: values appear box by box, then adjoints from the last box up; over and over.

It is the picture that `gradcli graph` draws, with a style: a browser, and GitHub, move it; who asks for less motion
sees it whole.
"""

from __future__ import annotations

import re

SECONDS = 16
FORWARD, BACKWARD, END = (4.0, 34.0), (40.0, 88.0), 97.0  # shares of the time, in per cent
_ELEMENT = re.compile(r'<rect class="gg-(?:leaf|box|output)"[^>]* y="([\d.]+)"|<text class="gg-(text|adjoint|local)"')


def moving(svg: str) -> str:
    """Return a picture whose texts appear in the order of the two passes."""
    heights: list[float] = []
    texts: list[tuple[int, int, str]] = []  # where each begins, the index of its box, and its class
    for match in _ELEMENT.finditer(svg):
        if match[1]:
            heights.append(float(match[1]))
        else:
            texts.append((match.start(), len(heights) - 1, match[2]))
    down = sorted(range(len(heights)), key=lambda box: heights[box])
    style = [
        f".move{{animation:{SECONDS}s linear infinite}}",
        "@media (prefers-reduced-motion:reduce){.move{animation:none!important}}",
    ]
    for box in range(len(heights)):
        style.append(_keyframes(f"f{box}", FORWARD, down.index(box), len(down)))
        style.append(_keyframes(f"b{box}", BACKWARD, len(down) - 1 - down.index(box), len(down)))
    for start, box, kind in reversed(texts):
        name = f"{'f' if kind == 'text' else 'b'}{box}"
        head = f'<text class="gg-{kind}"'
        moved = f'<text class="gg-{kind} move" style="animation-name:{name}"'
        svg = svg[:start] + moved + svg[start + len(head) :]
    return svg.replace("</style>", "\n".join(style) + "\n</style>", 1)


def _keyframes(name: str, share: tuple[float, float], k: int, count: int) -> str:
    """Return when what has a name appears: as the k-th of so many within a share of the time."""
    start = share[0] + (share[1] - share[0]) * k / max(1, count - 1)
    return f"@keyframes {name}{{0%,{start:.1f}%{{opacity:0}}{start + 2:.1f}%,{END}%{{opacity:1}}100%{{opacity:0}}}}"
