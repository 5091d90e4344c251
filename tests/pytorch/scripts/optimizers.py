# --- steps of L-BFGS
for settings in ({}, {"line_search_fn": "strong_wolfe"}, {"lr": 0.1, "max_iter": 4, "history_size": 2}, {"lr": 0.5, "max_iter": 10, "line_search_fn": "strong_wolfe"}):
    x = torch.tensor([-1.2, 1.0], dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([x], **settings)
    calls = []
    def closure():
        optimizer.zero_grad()
        loss = (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
        loss.backward()
        calls.append(loss.item())
        return loss
    for _ in range(3):
        print(optimizer.step(closure), x, len(calls))
    print(optimizer, optimizer.state[x]["n_iter"], optimizer.state[x]["func_evals"])
# --- a line by L-BFGS, and what it refuses
model = nn.Linear(1, 1)
nn.init.zeros_(model.weight), nn.init.zeros_(model.bias)
x = torch.tensor([[0.0], [1.0], [2.0]])
optimizer = torch.optim.LBFGS(model.parameters(), line_search_fn="strong_wolfe")
def closure():
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), 3 * x - 1)
    loss.backward()
    return loss
print(f"{optimizer.step(closure).item():.4f} {closure().item():.4f} {model.weight.item():.3f} {model.bias.item():.3f}")
nn.init.zeros_(model.weight)
told(
    lambda: torch.optim.LBFGS([{"params": [x]}, {"params": [x + 1]}]), lambda: torch.optim.LBFGS([x], lr=-1),
    lambda: torch.optim.LBFGS(model.parameters(), line_search_fn="other").step(closure),
)
# --- rates in one cycle
SGD, Adam, OneCycleLR = torch.optim.SGD, torch.optim.Adam, torch.optim.lr_scheduler.OneCycleLR
for settings in (
    {"total_steps": 10}, {"epochs": 2, "steps_per_epoch": 4, "anneal_strategy": "linear", "three_phase": True},
    {"total_steps": 5, "cycle_momentum": False, "pct_start": 0.5, "div_factor": 10.0, "final_div_factor": 100.0},
):
    for optimizer in (SGD([torch.zeros(1)], lr=0.1, momentum=0.9), Adam([torch.zeros(1)])):
        scheduler = OneCycleLR(optimizer, max_lr=0.1, **settings)
        for _ in range(scheduler.total_steps - 1):
            optimizer.step()
            scheduler.step()
            group = optimizer.param_groups[0]
            print(scheduler.get_last_lr(), group.get("momentum"), group.get("betas"))
        print(optimizer, sorted(scheduler.state_dict()))
        try:
            scheduler.step()
            scheduler.step()
        except ValueError as error:
            print(error)
plain = SGD([torch.zeros(1)], lr=0.1)
told(
    lambda: OneCycleLR(plain, 0.1), lambda: OneCycleLR(plain, 0.1, total_steps=0),
    lambda: OneCycleLR(plain, 0.1, total_steps=5, pct_start=2), lambda: OneCycleLR(plain, 0.1, epochs=0, steps_per_epoch=1),
    lambda: OneCycleLR(plain, 0.1, epochs=1, steps_per_epoch=0.5), lambda: OneCycleLR(plain, 0.1, total_steps=5, anneal_strategy="other"),
    lambda: OneCycleLR(plain, [0.1, 0.2], total_steps=5), lambda: OneCycleLR(torch.optim.Adagrad([torch.zeros(1)]), 0.1, total_steps=5),
    lambda: OneCycleLR(3, 0.1, total_steps=5),
)
# --- rates that rise and fall by a factor
p = nn.Parameter(torch.zeros(1))
def optimizer(): return torch.optim.SGD([p], lr=0.1)
schedules = torch.optim.lr_scheduler
for schedule in (
    schedules.LinearLR(optimizer()), schedules.LinearLR(optimizer(), 0.5, 0.2, total_iters=3), schedules.ConstantLR(optimizer()), schedules.ConstantLR(optimizer(), 0.5, 3),
    schedules.PolynomialLR(optimizer(), 5, 2.0),
):
    rates = []
    for _ in range(8):
        rates.append(schedule.optimizer.param_groups[0]["lr"])
        schedule.optimizer.step()
        schedule.step()
    print(type(schedule).__name__, rates, schedule.get_last_lr(), sorted(schedule.state_dict()))
told(
    lambda: schedules.LinearLR(optimizer(), start_factor=2), lambda: schedules.LinearLR(optimizer(), end_factor=-1),
    lambda: schedules.ConstantLR(optimizer(), 2),
)
# --- rates that begin anew
p = nn.Parameter(torch.zeros(1))
def optimizer(): return torch.optim.SGD([p], lr=0.1)
restarts = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts
for schedule in (restarts(optimizer(), 3), restarts(optimizer(), 2, 2, 0.01)):
    rates = []
    for _ in range(10):
        rates.append(schedule.optimizer.param_groups[0]["lr"])
        schedule.optimizer.step()
        schedule.step()
    print(rates, schedule.get_last_lr(), schedule.T_cur, schedule.T_i)
schedule = restarts(optimizer(), 2, 2)
for epoch in range(4):
    for part in range(3):
        schedule.step(epoch + part / 3)
        print(schedule.get_last_lr(), schedule.last_epoch)
told(lambda: restarts(optimizer(), 0), lambda: restarts(optimizer(), 2, 1.5))
# --- optimizers that are used less
for name, kw in (("Adamax", {}), ("Adamax", dict(lr=.1, weight_decay=.1, maximize=True)), ("NAdam", {}), ("NAdam", dict(lr=.1, weight_decay=.1, decoupled_weight_decay=True)), ("RAdam", {}), ("RAdam", dict(lr=.1, weight_decay=.1, betas=(.5, .9))), ("Rprop", {}), ("Rprop", dict(lr=.5, etas=(.4, 1.5))), ("ASGD", {}), ("ASGD", dict(lr=.1, lambd=.1, t0=2, weight_decay=.1))):
    w = torch.tensor([1.0, -2.0, .3], requires_grad=True)
    opt = getattr(torch.optim, name)([w], **kw)
    for _ in range(8):
        opt.zero_grad()
        ((w - torch.tensor([3.0, 0.5, .4])) ** 2).sum().backward()
        opt.step()
    print(opt, w.data, *(v if isinstance(v, float) else torch.as_tensor(v) for k, v in sorted(opt.state[w].items()) if k != "mu_product"), sorted(opt.state_dict()["state"][0]))
    told(lambda: getattr(torch.optim, name)([w], lr=-1))
told(
    lambda: torch.optim.NAdam([w], momentum_decay=-1), lambda: torch.optim.RAdam([w], betas=(2, 0)),
    lambda: torch.optim.ASGD([w], weight_decay=-1),
)
# --- schedules of schedules, and cycles
from torch.optim.lr_scheduler import *
def new(cls=torch.optim.SGD, **kw): return cls([torch.nn.Parameter(torch.zeros(2))], lr=1.0, **kw)
def run(make, n=9, o=None):
    o = o or new()
    s = make(o)
    out = [o.param_groups[0]["lr"]]
    for _ in range(n):
        o.step(); s.step(); out.append(s.get_last_lr()[0])
    print([round(x, 6) for x in out], o.param_groups[0].get("momentum"), o.param_groups[0].get("betas"), type(s).__module__)
run(lambda o: SequentialLR(o, [ConstantLR(o, 0.1, 2), ExponentialLR(o, 0.9)], milestones=[3]))
run(lambda o: SequentialLR(o, [LinearLR(o, 0.1, total_iters=3), CosineAnnealingLR(o, 6)], [3]))
run(lambda o: SequentialLR(o, [StepLR(o, 2, .5), LambdaLR(o, lambda e: 1 / (e + 1)), PolynomialLR(o, 3)], [2, 5]))
run(lambda o: ChainedScheduler([ConstantLR(o, 0.5, 3), ExponentialLR(o, 0.9)]))
for mode in ("triangular", "triangular2", "exp_range"):
    run(lambda o: CyclicLR(o, 0.01, 0.1, 2, 3, mode, gamma=.9), 12, new(momentum=.9))
run(lambda o: CyclicLR(o, 0.01, 0.1, 2, scale_fn=lambda x: 1 / x, base_momentum=.5), 9, new(torch.optim.Adam))
run(lambda o: CyclicLR(o, 0.01, 0.1, 2, cycle_momentum=False), 5, new(torch.optim.Adagrad))
told(lambda: CyclicLR(new(), .1, .2, mode="a")); told(lambda: CyclicLR(new(torch.optim.Adagrad), .1, .2)); o = new(); told(lambda: SequentialLR(o, [StepLR(o, 1)], [1]))
# --- schedules from epoch to epoch, and at epochs that a script gives
import warnings
warnings.simplefilter("ignore")
L = torch.optim.lr_scheduler
p = torch.nn.Parameter(torch.zeros(1))
def o(lr=0.1, **k): return torch.optim.SGD([{"params": [p]}], lr=lr, **k)
makes = {"step": lambda o: L.StepLR(o, 3), "multi": lambda o: L.MultiStepLR(o, [2, 2, 5], 0.5), "exp": lambda o: L.ExponentialLR(o, 0.7),
 "lambda": lambda o: L.LambdaLR(o, lambda e: 1/(e+1)), "mult": lambda o: L.MultiplicativeLR(o, lambda e: 0.5+e/10), "linear": lambda o: L.LinearLR(o, 0.3, 0.9, 4),
 "const": lambda o: L.ConstantLR(o, 0.3, 4), "poly": lambda o: L.PolynomialLR(o, 4, 2.0), "cos": lambda o: L.CosineAnnealingLR(o, 3, 0.01), "warm": lambda o: L.CosineAnnealingWarmRestarts(o, 2, 2, 0.01),
 "one": lambda o: L.OneCycleLR(o, 0.2, 12), "cyc": lambda o: L.CyclicLR(o, 0.01, 0.1, 2, cycle_momentum=True)}
for name, make in makes.items():
    for lr in (0.1, 1):
        opt = o(lr, momentum=.9)
        s = make(opt)
        out = [s.get_last_lr()[0]]
        for k in range(10):
            opt.step(); s.step(); out.append(s.get_last_lr()[0])
        print(name, out, opt.param_groups[0]["momentum"], sorted(k for k in s.state_dict()))
    if name not in ("warm", "one", "cyc"):
        opt = o(); s = make(opt); opt.step()
        for e in (3, 0, 7, 2): s.step(e); print(s.get_last_lr(), end=" ")
        s.step(); print(s.get_last_lr(), s.last_epoch)
