"""Non-temporal stores of large results: they bypass the cache.

An ordinary store first loads its cache line from memory.  A non-temporal store of a whole line does not, and it evicts
nothing from the cache.  The parts of lines at both ends of a row are stored in the ordinary way.
"""

from __future__ import annotations

_LINE = 8  # numbers in a cache line, which begins at a multiple of its bytes


def _copied(name: str, enters: str, until: str, then: str, lines: bool = True, memory: str = "align 8") -> str:
    """Return a loop that copies numbers, or whole lines of them, on from an index until another.

    `enters` are the operands of the loop's phi: the first index by the block that precedes it.  `memory` are the
    attributes of the stores.
    """
    kind, step = (f"<{_LINE} x double>", _LINE) if lines else ("double", 1)
    return f"""{name}:
  %{name}.i = phi i64 {enters}, [ %{name}.next, %{name}.one ]
  %{name}.more = icmp slt i64 %{name}.i, {until}
  br i1 %{name}.more, label %{name}.one, label %{then}
{name}.one:
  %{name}.source = getelementptr double, ptr %source, i64 %{name}.i
  %{name}.value = load {kind}, ptr %{name}.source, align 8
  %{name}.to = getelementptr double, ptr %to, i64 %{name}.i
  store {kind} %{name}.value, ptr %{name}.to, {memory}
  %{name}.next = add i64 %{name}.i, {step}
  br label %{name}
"""


SOURCE = f"""
define internal void @stream(ptr noalias nocapture %to, ptr noalias nocapture readonly %source, i64 %n, i1 %large)
  noinline nounwind {{
start:
  %address = ptrtoint ptr %to to i64
  %number = lshr i64 %address, 3
  %behind = sub i64 0, %number
  %part = and i64 %behind, {_LINE - 1}
  %wanted = select i1 %large, i64 %part, i64 0
  %head = call i64 @llvm.smin.i64(i64 %wanted, i64 %n)
  %rest = sub i64 %n, %head
  %whole = and i64 %rest, {-_LINE}
  %lines = add i64 %head, %whole
  br label %first
{_copied("first", "[ 0, %start ]", "%head", "choose", lines=False)}
choose:
  br i1 %large, label %past, label %usual
{_copied("past", "[ %head, %choose ]", "%lines", "last", memory=f"align {8 * _LINE}, !nontemporal !2")}
{_copied("usual", "[ %head, %choose ]", "%lines", "last")}
{_copied("last", "[ %lines, %past ], [ %lines, %usual ]", "%n", "done", lines=False)}
done:
  ret void
}}
"""
