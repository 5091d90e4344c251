"""Code with syntax colours as HTML, by Pygments, which rich needs: a token is a span whose class is its kind."""

from __future__ import annotations

from html import escape


def highlighted(code: str, language: str) -> str:
    """Return code as HTML, line by line as it is; without colours where Pygments does not know its language.

    >>> highlighted("1 < x", "python")
    '<span class="mi">1</span> <span class="o">&lt;</span> <span class="n">x</span>'
    >>> highlighted("a < b", "no language")
    'a &lt; b'
    """
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    try:
        lexer = get_lexer_by_name(language or "text", stripnl=False)
    except ClassNotFound:
        return escape(code)
    return str(highlight(code, lexer, HtmlFormatter(nowrap=True))).removesuffix("\n")
