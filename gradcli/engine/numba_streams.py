"""How a row of results leaves the cache: large ones go by it, so that memory is not read before it is written.

What a processor writes it first reads, a line of the cache at a time.  A whole line that is written at once need not be
read (`nontemporal`), and leaves the cache to what is read again.  Lines of which a row has a part are written as usual.
"""

from __future__ import annotations

_LINE = 8  # numbers in a line of the cache, at a multiple of its bytes

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
first:
  %i = phi i64 [ 0, %start ], [ %i.next, %first.one ]
  %first.more = icmp slt i64 %i, %head
  br i1 %first.more, label %first.one, label %choose
first.one:
  %first.source = getelementptr double, ptr %source, i64 %i
  %first.value = load double, ptr %first.source
  %first.to = getelementptr double, ptr %to, i64 %i
  store double %first.value, ptr %first.to
  %i.next = add i64 %i, 1
  br label %first
choose:
  br i1 %large, label %past, label %usual
past:
  %j = phi i64 [ %head, %choose ], [ %j.next, %past.one ]
  %past.more = icmp slt i64 %j, %lines
  br i1 %past.more, label %past.one, label %last
past.one:
  %past.source = getelementptr double, ptr %source, i64 %j
  %past.value = load <{_LINE} x double>, ptr %past.source, align 8
  %past.to = getelementptr double, ptr %to, i64 %j
  store <{_LINE} x double> %past.value, ptr %past.to, align {8 * _LINE}, !nontemporal !2
  %j.next = add i64 %j, {_LINE}
  br label %past
usual:
  %k = phi i64 [ %head, %choose ], [ %k.next, %usual.one ]
  %usual.more = icmp slt i64 %k, %lines
  br i1 %usual.more, label %usual.one, label %last
usual.one:
  %usual.source = getelementptr double, ptr %source, i64 %k
  %usual.value = load <{_LINE} x double>, ptr %usual.source, align 8
  %usual.to = getelementptr double, ptr %to, i64 %k
  store <{_LINE} x double> %usual.value, ptr %usual.to, align 8
  %k.next = add i64 %k, {_LINE}
  br label %usual
last:
  %l = phi i64 [ %lines, %past ], [ %lines, %usual ], [ %l.next, %last.one ]
  %last.more = icmp slt i64 %l, %n
  br i1 %last.more, label %last.one, label %done
last.one:
  %last.source = getelementptr double, ptr %source, i64 %l
  %last.value = load double, ptr %last.source
  %last.to = getelementptr double, ptr %to, i64 %l
  store double %last.value, ptr %last.to
  %l.next = add i64 %l, 1
  br label %last
done:
  ret void
}}
"""
