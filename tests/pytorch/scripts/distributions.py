# --- normal distributions
from torch.distributions import Normal, kl_divergence
torch.manual_seed(0)
mean, spread = torch.tensor([0.0, 1.0], requires_grad=True), torch.tensor([1.0, 0.5], requires_grad=True)
p, q = Normal(mean, spread), Normal(0.0, 2.0)
print(p, q, p.batch_shape, p.event_shape, p.mean, p.stddev, p.variance, q.mode)
print(p.sample(), p.sample((2,)), q.sample([2, 2]), q.sample(), p.has_rsample)
x = p.rsample((3,))
print(x, p.log_prob(x), p.entropy(), p.cdf(x), p.perplexity())
loss = p.log_prob(x).sum() + p.entropy().sum() + kl_divergence(p, q).sum()
loss.backward()
print(loss, mean.grad, spread.grad, kl_divergence(p, q), p.expand((2, 2)), p.expand((3, 2)).rsample())
# --- categorical distributions
from torch.distributions.categorical import Categorical
torch.manual_seed(0)
logits = torch.randn(2, 3, requires_grad=True)
policy, other = Categorical(logits=logits), Categorical(torch.tensor([1.0, 2.0, 5.0]))
print(policy, other, policy.probs, other.logits, other.probs, policy.batch_shape, policy.param_shape)
action = policy.sample()
print(action, policy.sample((4,)), other.sample(), other.sample((2, 2)), policy.log_prob(action), other.log_prob(torch.tensor([0, 2])))
loss = -(policy.log_prob(action) * torch.tensor([1.0, -0.5])).sum() - 0.1 * policy.entropy().sum()
loss.backward()
print(loss, logits.grad, policy.entropy(), other.entropy(), policy.mode, other.mean, policy.enumerate_support(), other.enumerate_support())
print(torch.distributions.kl_divergence(policy, other), policy.expand((2, 2)).probs.shape)
# --- Bernoulli distributions
import torch.distributions as D
torch.manual_seed(0)
weights = torch.tensor([0.5, -1.0, 2.0], requires_grad=True)
p, q = D.Bernoulli(logits=weights), D.Bernoulli(torch.tensor([0.5, 0.0, 1.0]))
print(p, q, D.Bernoulli(0.3), p.probs, q.logits, p.mean, p.variance, p.stddev, q.mode)
x = p.sample()
print(x, q.sample((2,)), D.Bernoulli(0.3).sample((3,)), p.log_prob(x), p.entropy(), p.enumerate_support())
loss = p.log_prob(x).sum() + p.entropy().sum() + D.kl_divergence(p, D.Bernoulli(torch.full((3,), 0.25))).sum()
loss.backward()
print(loss, weights.grad, D.kl_divergence(p, q))
# --- what distributions refuse
from torch.distributions import Bernoulli, Categorical, Normal, kl_divergence
p = Normal(torch.zeros(2), 1.0)
told(
    lambda: Normal(0.0, -1.0), lambda: Normal(torch.zeros(2), torch.tensor([1.0, 0.0])), lambda: Normal("a", 1.0), lambda: p.log_prob(1.0),
    lambda: p.log_prob(torch.zeros(3)), lambda: p.log_prob(torch.tensor([0.0, float("nan")])), lambda: Bernoulli(1.5), lambda: Bernoulli(),
    lambda: Bernoulli(0.5).log_prob(torch.tensor(0.5)), lambda: Categorical(torch.tensor(0.5)),
    lambda: Categorical(torch.tensor([0.5, -0.5])), lambda: Categorical(logits=torch.zeros(2)).log_prob(torch.tensor(2)),
    lambda: kl_divergence(p, Bernoulli(0.5)), lambda: kl_divergence(p, Categorical(torch.ones(2))), lambda: Bernoulli(0.5).rsample(),
    lambda: Normal(0.0, -1.0, validate_args=False), lambda: Categorical(torch.tensor([0.5, float("nan")])),
    lambda: p.log_prob(torch.zeros(2, 3, 2)),
)
# --- quantiles of normal distributions
from torch.distributions import Normal
p = Normal(torch.tensor([0.0, 1.0], requires_grad=True), torch.tensor([1.0, 2.0]))
share = torch.tensor([0.3, 0.9], requires_grad=True)
quantile = p.icdf(share)
print(quantile, p.cdf(quantile), p.icdf(torch.tensor([0.0, 1.0])), p.icdf(torch.tensor([2.0, 0.1])))
quantile.sum().backward()
print(share.grad, p.loc.grad)
# --- uniform, exponential, Laplace and normal vectors
from torch.distributions import *
from torch.distributions.multivariate_normal import MultivariateNormal
torch.manual_seed(0)
a, b = torch.tensor([0.5, 1.0], requires_grad=True), torch.tensor([2.0, 3.0], requires_grad=True)
v = torch.tensor([1.0, 1.5])
for d in (Uniform(a, b), Exponential(a), Laplace(a, b), Uniform(0.0, 2.0), Exponential(torch.tensor(2.0)), Laplace(0.0, 1.0)):
    print(d, d.mean, d.stddev, d.variance, d.mode, d.entropy(), d.log_prob(v), d.cdf(v), d.icdf(v / 4), d.batch_shape, d.event_shape)
    s = d.rsample((2,)); print(s, d.sample((3,)).shape, d.has_rsample)
    if d.batch_shape: print(*torch.autograd.grad(s.sum() + d.log_prob(v).sum() + d.entropy().sum(), [p for p in (a, b) if p is a or not isinstance(d, Exponential)]))
m, S = torch.tensor([1.0, -1.0], requires_grad=True), torch.tensor([[2.0, 0.5], [0.5, 1.0]], requires_grad=True)
for d in (MultivariateNormal(m, S), MultivariateNormal(m, scale_tril=torch.linalg.cholesky(S)), MultivariateNormal(m, precision_matrix=S), MultivariateNormal(torch.zeros(3, 2), torch.eye(2))):
    print(d, d.mean, d.variance, d.entropy(), d.log_prob(v), d.covariance_matrix, d.scale_tril, d.batch_shape, d.event_shape)
    s = d.rsample((2,)); print(s, d.sample().shape)
    if len(d.batch_shape) == 0: print(*torch.autograd.grad(s.sum() + d.log_prob(v) + d.entropy(), (m, S)))
told(
    lambda: Uniform(1.0, 0.0), lambda: Exponential(-1.0), lambda: Laplace(0.0, 0.0), lambda: MultivariateNormal(m),
    lambda: Exponential(1.0).log_prob(torch.tensor(-1.0)), lambda: Uniform(0.0, 1.0).log_prob(torch.tensor(2.0)),
    lambda: MultivariateNormal(torch.zeros(2), -torch.eye(2)),
)
