# --- bags of vectors
torch.manual_seed(0)
w = torch.randn(5, 3, requires_grad=True)
i, o, rows = torch.tensor([1, 2, 4, 4, 0]), torch.tensor([0, 2, 2]), torch.tensor([[1, 2], [4, 4]])
for mode in ("mean", "sum", "max"):
    print(F.embedding_bag(i, w, o, mode=mode), F.embedding_bag(rows, w, mode=mode, padding_idx=4), F.embedding_bag(rows, w, mode=mode))
    print(F.embedding_bag(i, w, torch.tensor([0, 2, 5]), mode=mode, include_last_offset=True), F.embedding_bag(i[:0], w, o[:1], mode=mode))
    w.grad = None
    (F.embedding_bag(i, w, o, mode=mode) * torch.arange(9.0).view(3, 3)).sum().backward()
    print(w.grad)
factors = torch.tensor([0.5, 2.0, 1.0, 1.0, 3.0], requires_grad=True)
y = F.embedding_bag(i, w, o, mode="sum", per_sample_weights=factors)
y.pow(2).sum().backward()
print(y, factors.grad)
bag = nn.EmbeddingBag(5, 3, mode="sum", padding_idx=-1)
print(bag, nn.EmbeddingBag(5, 3, max_norm=1.0), bag.weight, bag(rows), nn.EmbeddingBag.from_pretrained(w.detach(), mode="max")(i, o))
told(
    lambda: F.embedding_bag(i, w, o, per_sample_weights=factors),
    lambda: F.embedding_bag(i, w, o, mode="sum", per_sample_weights=factors[:2]), lambda: F.embedding_bag(i, w),
    lambda: F.embedding_bag(rows, w, o), lambda: F.embedding_bag(rows, w, mode="other"), lambda: F.embedding_bag(rows[None], w),
    lambda: F.embedding_bag(i, w, torch.tensor([0, 9])), lambda: F.embedding_bag(i + 5, w, o),
    lambda: F.embedding_bag(rows.float(), w.detach().long()), lambda: F.embedding_bag(i, w, rows),
    lambda: F.embedding_bag(i, w, o, mode="sum", per_sample_weights=factors.double()),
)
