# --- seeds
for seed in [0, 1, 42, 1234, 2**31]:
    torch.manual_seed(seed)
    print(torch.rand(3), torch.randn(3), torch.randint(0, 10, (4,)), torch.randperm(5))
# --- many
torch.manual_seed(0)
print(torch.randn(20)); print(torch.rand(20)); print(torch.randn(4, 5)); print(torch.randn(2, 3, 4))
# --- mixed
torch.manual_seed(7)
print(torch.randn(3), torch.rand(2), torch.randn(1), torch.randn(17)[:3], torch.randn(2), torch.randint(3, 9, (2, 2)), torch.randn(1))
# --- double
torch.manual_seed(0)
print(torch.rand(3, dtype=torch.float64), torch.randn(3, dtype=torch.float64), torch.randn(20, dtype=torch.float64)[:4])
# --- normal
torch.manual_seed(0)
print(torch.normal(0., 1., (3,)), torch.normal(torch.zeros(3), 2.), torch.normal(torch.arange(3.), torch.ones(3)), torch.normal(1., 0.5, size=(2, 2)), torch.normal(mean=torch.tensor([1.]), std=torch.tensor([0.1])))
# --- like
torch.manual_seed(0)
x = torch.zeros(2, 3)
print(torch.rand_like(x), torch.randn_like(x), torch.randint_like(x, 5))
# --- in place
torch.manual_seed(0)
x = torch.empty(4)
print(x.uniform_(), x.uniform_(-1, 1), x.normal_(), x.normal_(2, 0.1), x.bernoulli_(0.5), x.exponential_(), x.random_(0, 10))
# --- bernoulli
torch.manual_seed(0)
print(torch.bernoulli(torch.full((6,), 0.5)), torch.bernoulli(torch.full((6,), 0.3, dtype=torch.float64)))
# --- generators
g = torch.Generator().manual_seed(5)
print(torch.rand(2, generator=g), torch.randn(2, generator=g), torch.randperm(4, generator=g), g.initial_seed())
# --- linear
torch.manual_seed(0)
print(nn.Linear(3, 2).weight, nn.Linear(3, 2).bias, nn.Linear(4, 1, bias=False).weight)
# --- layers
torch.manual_seed(1)
print(nn.Conv2d(1, 2, 2).weight, nn.Embedding(3, 2).weight, nn.Conv1d(2, 1, 2).bias, nn.Embedding(5, 4).weight)
# --- rnn
torch.manual_seed(1)
rnn = nn.RNN(2, 3)
print([n for n, _ in rnn.named_parameters()], rnn.weight_ih_l0)
out, h = rnn(torch.ones(4, 1, 2))
print(out.shape, h)
# --- init
torch.manual_seed(0)
w = torch.empty(3, 5)
for f in [nn.init.uniform_, nn.init.normal_, nn.init.xavier_uniform_, nn.init.xavier_normal_, nn.init.kaiming_uniform_, nn.init.kaiming_normal_, nn.init.zeros_, nn.init.ones_, nn.init.eye_]:
    print(f(w))
print(nn.init.constant_(w, 0.3)[0], nn.init.calculate_gain("relu"))
# --- dropout
torch.manual_seed(0)
d = nn.Dropout(0.5)
print(d(torch.ones(8)))
d.eval()
print(d(torch.ones(3)), F.dropout(torch.ones(5), 0.2), F.dropout(torch.ones(2), training=False))
# --- loader
from torch.utils.data import TensorDataset, DataLoader
torch.manual_seed(0)
data = TensorDataset(torch.arange(6.), torch.arange(6))
for epoch in range(2):
    for x, y in DataLoader(data, batch_size=4, shuffle=True):
        print(x, y)
print(len(DataLoader(data, batch_size=4)), len(data), data[2], torch.rand(2))
# --- loader in order
from torch.utils.data import Dataset, DataLoader
class Squares(Dataset):
    def __len__(self): return 5
    def __getitem__(self, i): return torch.tensor([float(i)]), i * i
torch.manual_seed(0)
for x, y in DataLoader(Squares(), batch_size=2, drop_last=True):
    print(x, y)
print(torch.rand(1))
# --- random split
from torch.utils.data import DataLoader, TensorDataset, random_split
torch.manual_seed(0)
d = TensorDataset(torch.arange(10.0), torch.arange(10))
for sizes in ([7, 3], [0.8, 0.2], [1 / 3, 1 / 3, 1 / 3], [0.25, 0.25, 0.25, 0.25], (10,), [5, 4]):
    told(lambda: [(len(part), part.indices) for part in random_split(d, sizes)])
a, b = random_split(d, [7, 3], generator=torch.Generator().manual_seed(42))
for x, y in DataLoader(a, batch_size=3, shuffle=True):
    print(x, y)
# --- samplers
from torch.utils.data import BatchSampler, ConcatDataset, DataLoader, Dataset, RandomSampler, Sampler
from torch.utils.data import SequentialSampler, WeightedRandomSampler
from torch.utils.data.sampler import SubsetRandomSampler
class Numbers(Dataset):
    def __init__(self, n):
        self.n = n
    def __len__(self): return self.n
    def __getitem__(self, i): return i
class Backwards(Sampler):
    def __iter__(self): return iter([2, 1, 0])
torch.manual_seed(0)
five = ConcatDataset([Numbers(2), Numbers(3)])
print(len(five), [five[i] for i in range(-5, 5)], type(Numbers(2) + five))
for sampler in (
    SequentialSampler(five), RandomSampler(five), RandomSampler(five, num_samples=12),
    RandomSampler(five, replacement=True, num_samples=40), SubsetRandomSampler([3, 5, 7]),
    WeightedRandomSampler([0.1, 0.2, 0.7], 5), WeightedRandomSampler(torch.tensor([0.1, 0.2, 0.7]), 2, False),
    BatchSampler(RandomSampler(five), 2, True),
):
    print(len(sampler), list(sampler), list(sampler), type(sampler))
for loader in (
    DataLoader(five, 2, sampler=SubsetRandomSampler([0, 2, 4])), DataLoader(five, sampler=Backwards()),
    DataLoader(five, batch_sampler=BatchSampler(SequentialSampler(five), 3, False)), DataLoader(five, 3, shuffle=True),
):
    print(list(loader), type(loader.sampler), loader.batch_size)
told(
    lambda: DataLoader(five, shuffle=True, sampler=Backwards()), lambda: DataLoader(Numbers(0), shuffle=True),
    lambda: DataLoader(five, 3, batch_sampler=Backwards()), lambda: ConcatDataset([]), lambda: five[-9],
    lambda: WeightedRandomSampler([1.0], 0),
)
# --- the module of random numbers
torch.random.manual_seed(2022)
state = torch.random.get_rng_state()
print(torch.rand(2), torch.random.initial_seed(), torch.initial_seed())
torch.random.set_rng_state(state)
print(torch.rand(2))
torch.seed(0)
# --- numbers drawn for what requires a gradient
p, std = torch.tensor([0.2, 0.7], requires_grad=True), torch.tensor([0.1, 1.0], requires_grad=True)
torch.manual_seed(0)
print(p.bernoulli(), torch.normal(p, 1.0), torch.normal(0.0, std), torch.normal(p, std))
(torch.bernoulli(p) + torch.normal(p, std) * std).sum().backward()
print(p.grad, std.grad, torch.rand(2, dtype=torch.float64))
