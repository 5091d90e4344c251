"""The names of the engines."""

ENGINES = ("numpy", "llvm", "jax")
OLDER_NAMES = {"numba": "llvm"}
