"""Losses and layers as NumPy computes them, one element after the other: what the operations are compared with."""

from itertools import product

import numpy as np


def loss(of):
    """Return a loss of batches as NumPy has it, from the function of one number and its target."""

    def call(x, t, reduction="mean", **options):
        return {"mean": np.mean, "sum": np.sum, "none": lambda y: y}[reduction](of(x, t, **options))

    return call


def bent(x, delta):
    return np.where(abs(x) > delta, delta * (abs(x) - delta / 2), x * x / 2)


def of_classes(scores, target, weight=1, ignored=-100, reduction="mean", smoothing=0):
    """Return the loss of log-probabilities, sample by sample."""
    scores = np.moveaxis(scores, min(1, scores.ndim - 1), -1)
    weight = np.broadcast_to(weight, scores.shape[-1:])
    target = np.asarray(target)
    if target.shape == scores.shape:
        likely = target * (1 - smoothing) + smoothing / scores.shape[-1]
        return loss(lambda x, t: -np.sum(t * weight * x, axis=-1))(scores, likely, reduction)
    losses, total = [], 0
    for k, row in zip(target.reshape(-1), scores.reshape(-1, scores.shape[-1]), strict=True):
        even = -np.sum(weight * row) / len(row)
        losses.append(0 if k == ignored else -(1 - smoothing) * weight[k] * row[k] + smoothing * even)
        total += 0 if k == ignored else weight[k]
    return {"mean": np.sum(losses) / total, "sum": np.sum(losses), "none": np.reshape(losses, target.shape)}[reduction]


def cross_entropy(x, target, weight=1, ignored=-100, reduction="mean", label_smoothing=0):
    axis = min(1, x.ndim - 1)
    if np.shape(target) == x.shape:
        target = np.moveaxis(target, axis, -1)
    scores = x - np.log(np.exp(x).sum(axis=axis, keepdims=True))
    return of_classes(scores, target, weight, ignored, reduction, label_smoothing)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def of_chances(p, t, weight=1, reduction="mean"):
    return loss(lambda p, t: -weight * (t * np.log(p) + (1 - t) * np.log(1 - p)))(p, t, reduction)


def of_logits(x, t, weight=1, reduction="mean", pos_weight=1):
    yes, no = np.log(sigmoid(x)), np.log(sigmoid(-x))
    return loss(lambda x, t: -weight * (pos_weight * t * yes + (1 - t) * no))(x, t, reduction)


def normalised(x, axes, eps):
    return (x - x.mean(axis=axes, keepdims=True)) / np.sqrt(x.var(axis=axes, keepdims=True) + eps)


def layer_norm(x, shape, weight=1, bias=0, eps=1e-5):
    rank = len(np.atleast_1d(shape))
    return normalised(x, tuple(range(-rank, 0)), eps) * weight + bias


def batch_norm(x, mean=None, var=None, weight=1.0, bias=0.0, eps=1e-5):
    x = np.moveaxis(x, 1, -1)
    rest = tuple(range(x.ndim - 1))
    y = normalised(x, rest, eps) if mean is None else (x - mean) / np.sqrt(var + eps)
    return np.moveaxis(y * weight + bias, -1, 1)


def attention(q, k, v, mask=None, dropout=0, is_causal=False, scale=None, enable_gqa=False):
    """Return the values weighted by attention, query by query."""
    if enable_gqa:
        k, v = (np.repeat(x, q.shape[-3] // x.shape[-3], axis=-3) for x in (k, v))
    lead = np.broadcast_shapes(*(x.shape[:-2] for x in (q, k, v)))
    q, k, v = (np.broadcast_to(x, (*lead, *x.shape[-2:])) for x in (q, k, v))
    mask = None if mask is None else np.broadcast_to(mask, (*lead, q.shape[-2], k.shape[-2]))
    y = np.zeros((*lead, q.shape[-2], v.shape[-1]))
    for *at, i in np.ndindex(*lead, q.shape[-2]):
        at = tuple(at)
        keys = [j for j in range(k.shape[-2]) if j <= i or not is_causal]
        keys = [j for j in keys if mask is None or mask.dtype != bool or mask[(*at, i, j)]]
        scores = np.array([q[(*at, i)] @ k[(*at, j)] for j in keys]) * (q.shape[-1] ** -0.5 if scale is None else scale)
        scores = scores if mask is None or mask.dtype == bool else scores + mask[(*at, i)]
        y[(*at, i)] = np.exp(scores) / np.exp(scores).sum() @ v[at][keys] if keys else 0
    return y


def group_norm(x, groups, weight=1.0, bias=0.0, eps=1e-5):
    y = normalised(x.reshape(len(x), groups, -1), 2, eps).reshape(x.shape)
    return np.moveaxis(np.moveaxis(y, 1, -1) * weight + bias, -1, 1)


def instance_norm(x, mean=None, var=None, weight=1.0, bias=0.0, use_input_stats=True, momentum=0.1, eps=1e-5):
    if not use_input_stats:
        return batch_norm(x, mean, var, weight, bias, eps)
    return np.concatenate([group_norm(sample[None], x.shape[1], weight, bias, eps) for sample in x])


def rms_norm(x, shape, weight=1.0, eps=2.0**-52):
    rank = len(np.atleast_1d(shape))
    return x / np.sqrt((x**2).mean(axis=tuple(range(-rank, 0)), keepdims=True) + eps) * weight


def lstm_cell(x, h, c, w, u, b, d):
    i, f, g, o = np.split(w @ x + b + u @ h + d, 4)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def gru_cell(x, h, w, u, b, d):
    (r, z, n), (a, e, m) = np.split(w @ x + b, 3), np.split(u @ h + d, 3)
    z = sigmoid(z + e)
    return ((1 - z) * np.tanh(n + sigmoid(r + a) * m) + z * h,)


def recurrent(cell, states):
    """Return layers of a recurrence, each step of each sequence by its cell."""

    def call(x, *args, **settings):
        defaults = {"num_layers": 1, "bidirectional": False, "has_biases": True, "batch_first": False, "dropout": False}
        num_layers, bidirectional, has_biases, batch_first, dropout, result = (
            settings.get(name, value) for name, value in (defaults | {"result": 0}).items()
        )
        if x.ndim == 2:
            args = [*(np.expand_dims(a, 1) for a in args[:states]), *args[states:]]
            return call(x[:, None], *args, **settings)[:, 0]
        x = np.swapaxes(x, 0, 1) if batch_first else x
        first, weights = args[:states], [*args[states:]]
        p, masks = (weights.pop(), [weights.pop() for _ in range(num_layers - 1)][::-1]) if dropout else (0, [])
        ends, size = [], len(weights) // (num_layers * (1 + bidirectional))
        for layer in range(num_layers):
            if layer and dropout:
                x = x * np.reshape(masks[layer - 1], x.shape) / (1 - p)
            outputs = []
            for backwards in range(1 + bidirectional):
                w, u, *rest = weights[len(ends) * size : (len(ends) + 1) * size]
                b, d = rest[:2] if has_biases else (0, 0)
                last, y = [], np.zeros((*x.shape[:2], rest[-1].shape[0] if len(rest) % 2 else first[-1].shape[-1]))
                for k in range(x.shape[1]):
                    state = [s[len(ends), k] for s in first]
                    for t in range(len(x))[:: -1 if backwards else 1]:
                        state = cell(x[t, k], *state, w, u, b, d)
                        state = (rest[-1] @ state[0], *state[1:]) if len(rest) % 2 else state
                        y[t, k] = state[0]
                    last.append(state)
                outputs.append(y)
                ends.append([np.stack([state[i] for state in last]) for i in range(states)])
            x = np.concatenate(outputs, -1)
        x = np.swapaxes(x, 0, 1) if batch_first else x
        return [x, *(np.stack([end[i] for end in ends]) for i in range(states))][result]

    return call


def each(n, value):
    return np.broadcast_to(value, n)


def conv(n):
    """Return the cross-correlation over n axes."""

    def call(x, w, bias=None, stride=1, padding=0, dilation=1, groups=1):
        if x.ndim == n + 1:
            return call(x[None], w, bias, stride, padding, dilation, groups)[0]
        kernel, stride, dilation = w.shape[2:], each(n, stride), each(n, dilation)
        ends = [divmod(d * (k - 1), 2) for k, d in zip(kernel, dilation, strict=True)]
        around = [(a, a + b) for a, b in ends] if isinstance(padding, str) else [(p, p) for p in each(n, padding)]
        x = np.pad(x, [(0, 0), (0, 0), *around])
        reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
        size = [(m - r) // s + 1 for m, r, s in zip(x.shape[2:], reach, stride, strict=True)]
        y = np.zeros((len(x), len(w), *size))
        each_out, each_in = len(w) // groups, w.shape[1]
        for o, i in product(range(len(w)), range(each_in)):
            c = o // each_out * each_in + i
            for at in np.ndindex(*size):
                for k in np.ndindex(*kernel):
                    place = tuple(a * s + j * d for a, s, j, d in zip(at, stride, k, dilation, strict=True))
                    y[(slice(None), o, *at)] += x[(slice(None), c, *place)] * w[(o, i, *k)]
        return y if bias is None else y + np.reshape(bias, (-1, *[1] * n))

    return call


def conv_transpose(n):
    """Return the transposed convolution over n axes: each number of x spreads over a window."""

    def call(x, w, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
        if x.ndim == n + 1:
            return call(x[None], w, bias, stride, padding, output_padding, groups, dilation)[0]
        stride, padding, more, dilation = (each(n, a) for a in (stride, padding, output_padding, dilation))
        rows = zip(x.shape[2:], w.shape[2:], stride, padding, more, dilation, strict=True)
        size = [(m - 1) * s - 2 * p + d * (k - 1) + 1 + rest for m, k, s, p, rest, d in rows]
        y = np.zeros((len(x), w.shape[1] * groups, *size))
        for c, i in product(range(len(w)), range(w.shape[1])):
            o = c // (len(w) // groups) * w.shape[1] + i
            for at in np.ndindex(*x.shape[2:]):
                for k in np.ndindex(*w.shape[2:]):
                    place = [a * s + j * d - p for a, s, j, d, p in zip(at, stride, k, dilation, padding, strict=True)]
                    if all(0 <= q < m for q, m in zip(place, size, strict=True)):
                        y[(slice(None), o, *place)] += x[(slice(None), c, *at)] * w[(c, i, *k)]
        return y if bias is None else y + np.reshape(bias, (-1, *[1] * n))

    return call


def pool(n, is_max):
    """Return pooling over n axes."""

    def call(
        x, kernel, stride=None, padding=0, dilation=1, ceil_mode=False, count_include_pad=True, divisor_override=0
    ):
        kernel, padding, dilation = (each(n, a) for a in (kernel, padding, dilation))
        stride = kernel if stride is None else each(n, stride)
        size = []
        for m, k, s, p, d in zip(x.shape[-n:], kernel, stride, padding, dilation, strict=True):
            count = (m + 2 * p - d * (k - 1) - 1 + (s - 1) * ceil_mode) // s + 1
            size.append(count - (ceil_mode and (count - 1) * s >= m + p))
        y = np.zeros((*x.shape[:-n], *size))
        for at in np.ndindex(*size):
            inside, padded = [], 0
            for k in np.ndindex(*kernel):
                place = [a * s + j * d - p for a, s, j, d, p in zip(at, stride, k, dilation, padding, strict=True)]
                padded += all(-p <= q < m + p for q, m, p in zip(place, x.shape[-n:], padding, strict=True))
                if all(0 <= q < m for q, m in zip(place, x.shape[-n:], strict=True)):
                    inside.append(x[(..., *place)])
            count = divisor_override or (padded if count_include_pad else len(inside))
            y[(..., *at)] = np.max(inside, axis=0) if is_max else np.sum(inside, axis=0) / count
        return y

    return call


def adaptive_pool(n, reduce):
    """Return pooling of windows that cover n axes."""

    def call(x, size):
        size = each(n, size)
        y = np.zeros((*x.shape[:-n], *size))
        for at in np.ndindex(*size):
            key = [slice(i * m // k, -(-(i + 1) * m // k)) for i, m, k in zip(at, x.shape[-n:], size, strict=True)]
            y[(..., *at)] = reduce(x[(..., *key)], axis=tuple(range(-n, 0)))
        return y

    return call


def interpolate(x, size=None, scale_factor=None, mode="nearest", align_corners=False):
    """Return an array in another size: a weighted sum of elements along one axis after the other."""
    n = x.ndim - 2
    factors = each(n, scale_factor or 0)
    size = [int(m * f) for m, f in zip(x.shape[2:], factors, strict=True)] if size is None else each(n, size)
    if mode == "area":
        return adaptive_pool(n, np.mean)(x, size)
    for axis, (count, factor) in enumerate(zip(size, factors, strict=True), 2):
        m, rows = x.shape[axis], []
        for i in range(count):
            step = 1 / factor if factor else m / count
            at = i * (m - 1) / max(1, count - 1) if align_corners else (i + 0.5) * step - 0.5
            low = int(np.floor(at))
            t = at - low
            if mode == "nearest":
                shares = {int(i * step): 1}
            elif mode == "bicubic":
                near, far = (
                    [1.25 * d**3 - 2.25 * d**2 + 1 for d in (t, 1 - t)],
                    [-0.75 * (d**3 - 5 * d**2 + 8 * d - 4) for d in (1 + t, 2 - t)],
                )
                shares = {low - 1: far[0], low: near[0], low + 1: near[1], low + 2: far[1]}
            else:
                shares = {low: 1 - t, low + 1: t}
            rows.append(sum(x.take(min(max(k, 0), m - 1), axis) * share for k, share in shares.items()))
        x = np.stack(rows, axis)
    return x


FUNCTIONS = {
    "sigmoid": sigmoid,
    "mse_loss": loss(lambda x, t: (x - t) ** 2),
    "l1_loss": loss(lambda x, t: abs(x - t)),
    "huber_loss": lambda x, t, how="mean", delta=1: loss(lambda x, t: bent(x - t, delta))(x, t, how),
    "smooth_l1_loss": loss(lambda x, t, beta=1: bent(x - t, beta) / beta),
    "nll_loss": of_classes,
    "cross_entropy": cross_entropy,
    "binary_cross_entropy": of_chances,
    "binary_cross_entropy_with_logits": of_logits,
    "linear": lambda x, w, bias=0: x @ w.T + bias,
    "bilinear": lambda x, z, w, bias=0: np.einsum("...i,oij,...j->...o", x, w, z) + bias,
    "embedding": lambda ids, w, padding=None: w[np.asarray(ids).astype(int)],
    "dropout": lambda x, mask, p=0.5: x * np.asarray(mask) / (1 - p),
    "scaled_dot_product_attention": attention,
    "interpolate": interpolate,
    "lstm": recurrent(lstm_cell, 2),
    "gru": recurrent(gru_cell, 1),
    "rnn_tanh": recurrent(lambda x, h, w, u, b, d: (np.tanh(w @ x + b + u @ h + d),), 1),
    "rnn_relu": recurrent(lambda x, h, w, u, b, d: (np.maximum(w @ x + b + u @ h + d, 0),), 1),
    "layer_norm": layer_norm,
    "batch_norm": batch_norm,
    "group_norm": group_norm,
    "instance_norm": instance_norm,
    "rms_norm": rms_norm,
    **{f"conv{n}d": conv(n) for n in (1, 2, 3)},
    **{f"conv_transpose{n}d": conv_transpose(n) for n in (1, 2, 3)},
    **{f"adaptive_max_pool{n}d": adaptive_pool(n, np.max) for n in (1, 2, 3)},
    **{f"adaptive_avg_pool{n}d": adaptive_pool(n, np.mean) for n in (1, 2, 3)},
    **{f"{kind}_pool{n}d": pool(n, kind == "max") for n in (1, 2, 3) for kind in ("max", "avg")},
}
