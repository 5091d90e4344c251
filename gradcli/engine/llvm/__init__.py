"""A graph as machine code, compiled by LLVM for the processor that runs it."""
