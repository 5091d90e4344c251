"""The loop form: a graph as loop nests over index maps, which LLVM, C and JavaScript print."""
