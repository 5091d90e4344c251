"""Images in fewer pixels, and their colours: grey for values, red above 0 and blue below for gradients."""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode
from dataclasses import replace

import numpy as np

from gradcli.pages.results import Array
from gradcli.pages.sections import Panel

_ABOVE, _BELOW, _NAN = (178, 24, 43), (33, 102, 172), (240, 180, 0)
_WHITE = 255.0
_LEVELS = 256


def reduced(panel: Panel, rows: int, columns: int) -> Panel:
    """Return an image in at most so many pixels: means of squares, or in a gradient their strongest entries.

    >>> reduced(Panel(("x",), np.arange(64.0).reshape(8, 8)), 4, 8).pixels[0].tolist()
    [4.5, 6.5, 8.5, 10.5]
    >>> reduced(Panel(("x",), np.diag([-9.0, 1, 1, 1]), True), 2, 2).pixels.tolist()
    [[-9.0, 0.0], [0.0, 1.0]]
    """
    size = max(-(-panel.pixels.shape[0] // rows), -(-panel.pixels.shape[1] // columns), 1)
    return panel if size == 1 else replace(panel, pixels=_pooled(panel.pixels, size, panel.signed))


def _pooled(pixels: Array, size: int, signed: bool) -> Array:
    """Return the pixels of squares; those at the lower and right edge may be cut."""
    height, width = (-(-n // size) for n in pixels.shape[:2])
    rows = [pixels[i * size : (i + 1) * size] for i in range(height)]
    squares = [[row[:, j * size : (j + 1) * size] for j in range(width)] for row in rows]
    return np.array([[_strongest(square) if signed else square.mean(axis=(0, 1)) for square in row] for row in squares])


def _strongest(square: Array) -> Array:
    flat = square.reshape(-1)
    return np.asarray(flat[np.where(np.isnan(flat), np.inf, np.abs(flat)).argmax()])


def shares(panel: Panel) -> Array:
    """Return the position of each number on the scale: from 0 to 1, in a signed image from -1 to 1; nan stays nan.

    >>> shares(Panel(("x",), np.array([[2.0, 3.0], [4.0, np.nan]]))).tolist()
    [[0.0, 0.5], [1.0, nan]]
    """
    low, high = panel.limits
    with np.errstate(invalid="ignore"):
        clipped = np.clip(panel.pixels, low, high)
        if panel.signed:
            return np.asarray(clipped / high if high else clipped)
        return np.asarray((clipped - low) / (high - low) if high > low else clipped * 0)


def colours(panel: Panel) -> Array:
    """Return the colour of each pixel, red, green and blue from 0 to 255.

    >>> colours(Panel(("g",), np.array([[1.0, 0.0, -1.0]]), True)).tolist()
    [[[178, 24, 43], [255, 255, 255], [33, 102, 172]]]
    """
    return coloured(shares(panel), panel.signed)


def coloured(share: Array, signed: bool) -> Array:
    """Return the colours of shares of a scale."""
    missing = np.isnan(share)
    known = np.where(missing, 0, share)
    if signed:
        ends = np.where((known > 0)[..., None], _ABOVE, _BELOW)
        result = _WHITE + np.abs(known)[..., None] * (ends - _WHITE)
    else:
        result = (_LEVELS - 1) * (known if known.ndim == 3 else known[..., None] * np.ones(3))
    unknown = np.asarray(missing.any(axis=-1) if missing.ndim == 3 else missing)
    return np.where(unknown[..., None], _NAN, np.rint(result)).astype(np.uint8)


def png_address(colours: Array) -> str:
    """Return an image as an address that holds the image itself, as PNG.

    >>> png_address(np.zeros((1, 1, 3), np.uint8))[:26]
    'data:image/png;base64,iVBO'
    """
    height, width, _ = colours.shape
    rows = b"".join(b"\0" + row.tobytes() for row in colours)
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = (_part(b"IHDR", head), _part(b"IDAT", zlib.compress(rows, 9)), _part(b"IEND", b""))
    return "data:image/png;base64," + b64encode(b"\x89PNG\r\n\x1a\n" + b"".join(parts)).decode()


def _part(kind: bytes, data: bytes) -> bytes:
    """Return a part of a PNG file: its length, kind, data and checksum."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
