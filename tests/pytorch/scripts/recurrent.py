# --- an LSTM and a GRU trained
for kind in (nn.LSTM, nn.GRU):
    torch.manual_seed(0)
    rnn, head = kind(1, 3, batch_first=True), nn.Linear(3, 1)
    optimizer = torch.optim.Adam([*rnn.parameters(), *head.parameters()], 0.05)
    x = torch.sin(torch.arange(4.0)).view(2, 2, 1)
    for step in range(3):
        output, _ = rnn(x)
        loss = F.mse_loss(head(output[:, -1]), torch.tensor([[0.2], [-0.5]]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"{loss.item():.4f}")
    print(rnn, output, [name for name, _ in rnn.named_parameters()])
    print([p.grad for p in rnn.parameters()])
# --- what recurrences return
torch.manual_seed(1)
x = torch.randn(2, 2, 2, requires_grad=True)
for kind in (nn.LSTM, nn.GRU):
    for settings in ({"num_layers": 2, "dropout": 0.5}, {"bidirectional": True, "bias": False}, {"batch_first": True}):
        rnn = kind(2, 2, **settings)
        rnn.flatten_parameters()
        output, state = rnn(x)
        states = state if isinstance(state, tuple) else (state,)
        print(rnn, output, states, [len(w) for w in rnn.all_weights])
        (g,) = torch.autograd.grad(output.pow(2).sum() + sum(s.sin().sum() for s in states), x)
        print(g)
        output, state = rnn(x[:, 0])
        print(output, rnn(x[:, 1], state)[0])
    print(kind(2, 2, batch_first=True, dtype=torch.float64)(x.double())[0].grad_fn.name())
# --- packed sequences of LSTMs and GRUs
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
torch.manual_seed(0)
x = torch.randn(3, 3, 2)
for kind in (nn.LSTM, nn.GRU):
    rnn = kind(2, 2, bidirectional=True)
    output, state = rnn(pack_padded_sequence(x, [1, 3, 2], enforce_sorted=False))
    print(output.data, state, rnn(pack_padded_sequence(x, [3, 2, 2]), state)[1])
    padded, lengths = pad_packed_sequence(output)
    padded.pow(2).sum().backward()
    print(padded, lengths, rnn.weight_hh_l0.grad, rnn.bias_ih_l0_reverse.grad)
# --- cells of LSTMs and GRUs
torch.manual_seed(0)
for kind in (nn.LSTMCell, nn.GRUCell, nn.RNNCell):
    cell = kind(2, 3, dtype=torch.float64)
    x = torch.randn(4, 2, dtype=torch.float64)
    h = cell(x, cell(x))
    h = h if isinstance(h, tuple) else (h,)
    print(cell, h, [p.shape for p in cell.parameters()])
    sum(s.pow(2).sum() for s in h).backward()
    print(cell.weight_ih.grad, cell.bias_hh.grad, cell(x[0]))
# --- what recurrences refuse
x, h, two = torch.zeros(3, 1, 1), torch.zeros(1, 1, 2), torch.zeros(3, 2)
told(
    lambda: nn.GRU(1, 2, proj_size=1), lambda: nn.LSTM(1, 2, proj_size=2), lambda: nn.LSTM(1), lambda: nn.GRU(1, 2, other=3),
    lambda: nn.LSTM(1, 2)(two[0]), lambda: nn.LSTM(1, 2)(x, (torch.zeros(1, 1, 3), h)), lambda: nn.LSTM(1, 2)(x, (h, torch.zeros(1, 2, 2))),
    lambda: nn.LSTM(1, 2)(x, (h[0], h[0])), lambda: nn.GRU(1, 2)(x, h[0]), lambda: nn.LSTM(1, 2)(torch.zeros(3, 1, 2)),
    lambda: nn.LSTMCell(1, 2)(two), lambda: nn.GRUCell(1, 2)(two[:, :1], h), lambda: nn.LSTMCell(1, 2)(two[:, :1], (two[:2], two[:2])),
    lambda: nn.LSTMCell(1, 2)(two[:, :1], (two, two[:, :1])), lambda: nn.LSTMCell(1, 2)(two[:, :1], two), lambda: nn.LSTMCell(1, 2)(x),
    lambda: nn.LSTM(0, 2), lambda: nn.GRU(1, 0), lambda: nn.GRU(1, 2, num_layers=0), lambda: nn.LSTM(1, 2, dropout=0.5),
    lambda: nn.LSTM(1.0, 2), lambda: nn.LSTM(1, 2, dropout=2), lambda: nn.RNN(1, 2, nonlinearity="other"),
)
# --- a projection of the output
torch.manual_seed(0)
net, x = nn.LSTM(3, 4, 2, proj_size=2, batch_first=True), torch.randn(2, 5, 3)
print(net, [(name, tuple(p.shape)) for name, p in net.named_parameters()])
output, (h, c) = net(x)
print(output, h, c.shape, c.grad_fn.name())
output.sum().backward()
print(net.weight_hr_l0.grad, net.weight_ih_l1.grad[0])
net = nn.LSTM(3, 4, proj_size=2, bidirectional=True)
output, (h, c) = net(x)
print(output.shape, output.grad_fn.name(), h, c.shape, net.all_weights[0][-1].shape)
told(
    lambda: nn.LSTM(3, 4, proj_size=4), lambda: nn.LSTM(3, 4, proj_size=-1), lambda: net(x, (torch.zeros(2, 5, 4), torch.zeros(2, 5, 4))),
    lambda: net(x, (torch.zeros(2, 5, 2), torch.zeros(2, 5, 2))),
)
