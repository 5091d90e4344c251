# --- attention of scaled dot products
torch.manual_seed(0)
q, k, v = (torch.randn(2, 2, 3, 4, requires_grad=True) for _ in range(3))
attend, mask = F.scaled_dot_product_attention, torch.tensor([[True, True, False], [False] * 3, [True] * 3])
for name, result in {
    "four axes": attend(q, k, v), "three": attend(q[0], k[0], v[0]), "two": attend(q[0, 0], k[0, 0], v[0, 0]),
    "causal": attend(q, k, v, is_causal=True), "dropout": attend(q, k, v, dropout_p=0.5), "mask": attend(q, k, v, mask),
    "numbers": attend(q, k, v, torch.randn(3, 3)), "learnt": attend(q, k, v, torch.randn(3, 3, requires_grad=True)),
    "scale": attend(q, k[:, :, :2], v[:, :, :2], scale=0.1), "narrow": attend(q, k, v[..., :2], mask),
    "groups": attend(q, k[:, :1], v[:, :1], enable_gqa=True), "other batches": attend(q, k[:1], v[:1]),
}.items():
    print(name, result.grad_fn.name(), result.shape, [f"{n:.4f}" for n in result.flatten()[:5].tolist()])
attend(q, k, v, mask).sin().sum().backward()
print(q.grad, k.grad, v.grad)
told(
    lambda: attend(q[0, 0, 0], k, v), lambda: attend(q, k.double(), v), lambda: attend(q, k, v, mask.long()),
    lambda: attend(q[0], k[0], v[0], mask, is_causal=True),
)
# --- attention in several heads
torch.manual_seed(0)
for settings in ({}, {"batch_first": True, "bias": False}, {"kdim": 2, "vdim": 3, "dropout": 0.5}, {"add_bias_kv": True, "add_zero_attn": True}):
    attention = nn.MultiheadAttention(4, 2, **settings)
    print(attention, [(name, p.shape) for name, p in attention.named_parameters()])
    x = torch.randn(3, 3, 4, requires_grad=True)
    inputs = (x, torch.randn(3, 3, 2), torch.randn(3, 3, 3)) if "kdim" in settings else (x, x, x)
    causal, padding = torch.ones(3, 3).triu(1).bool(), torch.tensor([[False, False, True]] * 3)
    for more in (
        {"average_attn_weights": False}, {"attn_mask": causal}, {"key_padding_mask": padding, "attn_mask": causal},
        {"attn_mask": causal, "need_weights": False}, {"attn_mask": causal, "need_weights": False, "is_causal": True},
    ):
        output, weights = attention(*inputs, **more)
        print(sorted(more), output.grad_fn.name(), output.detach()[0], weights)
    output.sin().sum().backward()
    print(x.grad[0], [p.grad[0] for p in attention.parameters()])
attention = nn.MultiheadAttention(4, 1, dtype=torch.float64).eval()
print(attention(*torch.ones(3, 2, 4, dtype=torch.float64)))
# --- what attention refuses
x = torch.zeros(3, 2, 4)
make = nn.MultiheadAttention
two = make(4, 2)
told(
    lambda: make(4), lambda: make(4, 0), lambda: make(4, 3), lambda: two(x[0, 0], x, x), lambda: two(x, x[0], x[0]),
    lambda: two(x[..., :2], x, x), lambda: two(x, x, x[1:]), lambda: make(4, 2, kdim=3)(x, x, x[1:]), lambda: two(x, x, x, is_causal=True),
    lambda: two(x, x, x, attn_mask=torch.zeros(2, 2)), lambda: two(x, x, x, attn_mask=torch.zeros(3, 3).long()),
    lambda: two(x, x, x, torch.zeros(3, 3)), lambda: two(x, x, x, torch.zeros(3)), lambda: two(x, x, x, attn_mask=torch.zeros(3)),
    lambda: two(x[0], x[0], x[0], attn_mask=torch.zeros(1, 2, 2)),
    lambda: two(x, x, x, torch.zeros(2, 3), attn_mask=torch.zeros(3, 3).bool())[0],
)
# --- encoder layers of transformers
torch.manual_seed(0)
x, weights = torch.randn(2, 3, 4, requires_grad=True), torch.randn(2, 3, 4)
padding = torch.tensor([[False, False, True], [False, True, True]])
for settings in ({}, {"norm_first": True}, {"activation": "gelu"}, {"activation": nn.Tanh()}, {"bias": False}):
    layer = nn.TransformerEncoderLayer(4, 2, 6, batch_first=True, **settings)
    y = layer(x)
    print(y, layer(x, src_key_padding_mask=padding)[0], layer(x[0])[1])
    print(torch.autograd.grad((y * weights).sum(), x)[0])
print(layer, [name for name, _ in layer.named_parameters()])
print(nn.TransformerEncoderLayer(4, 2, 6, dropout=0.0)(x).shape)
# --- an encoder is several layers
torch.manual_seed(0)
x, weights = torch.randn(2, 3, 4), torch.randn(2, 3, 4)
for settings in ({"batch_first": True}, {}, {"batch_first": True, "norm_first": True}):
    layer = nn.TransformerEncoderLayer(4, 2, 6, **settings)
    encoder = nn.TransformerEncoder(layer, 2, norm=nn.LayerNorm(4))
    (encoder(x) * weights).sum().backward()
    print(encoder.layers[1].linear1.weight.grad, layer.linear1.weight.grad)
mask = torch.full((3, 3), float("-inf")).triu(1)
encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 6, batch_first=True), 2).eval()
print(encoder(x, mask=mask), encoder)
# --- an encoder layer with another activation
nn.TransformerEncoderLayer(4, 2, activation="tanh")
# --- a transformer
torch.manual_seed(0)
net = nn.Transformer(8, 2, 1, 1, 16, dropout=0.0, batch_first=True)
x, y, weights = torch.randn(2, 4, 8), torch.randn(2, 3, 8), torch.randn(2, 3, 8)
mask = nn.Transformer.generate_square_subsequent_mask(3)
output = net(x, y, tgt_mask=mask)
print(net, mask, output)
(output * weights).sum().backward()
print(net.decoder.layers[0].multihead_attn.in_proj_weight.grad[:2], net.encoder.layers[0].linear1.bias.grad)
told(
    lambda: net(x[..., :7], y), lambda: net(x[:1], y), lambda: net(x, y[..., :7]),
    lambda: nn.TransformerDecoderLayer(8, 2, activation="tanh"),
)
net = nn.Transformer(8, 2, 1, 2, 16, activation="gelu", norm_first=True)
print(net(torch.randn(4, 2, 8), torch.randn(3, 2, 8), tgt_key_padding_mask=torch.tensor([[False, False, True], [False, False, False]])))
decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16), 2, norm=nn.LayerNorm(8))
print(decoder(torch.randn(3, 2, 8), torch.randn(4, 2, 8)), decoder.layers[1])
