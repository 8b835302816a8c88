"""Muon (K. Jordan, 2024) for matrices, with the scale that lets it share AdamW's learning rate (J.
Liu et al., arXiv 2502.16982). The momentum is replaced by a nearby matrix with singular values near
1.
"""
import torch


def orthogonal(x):
    """Five quintic Newton-Schulz steps on x [n, rows, columns]."""
    x = x.bfloat16()
    tall = x.shape[-2] > x.shape[-1]
    if tall:
        x = x.mT
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(5):
        gram = x @ x.mT
        x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x
    return x.mT if tall else x


class Muon(torch.optim.Optimizer):
    """For parameters with two dimensions, or three: then there is one matrix for each first index."""

    def __init__(self, params, lr, momentum=0.95, weight_decay=0.1):
        super().__init__(params, dict(lr=lr, momentum=momentum, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            alike = {}
            for p in group["params"]:
                state = self.state[p]
                if "momentum" not in state:
                    state["momentum"] = torch.zeros_like(p)
                state["momentum"].lerp_(p.grad, 1 - group["momentum"])
                alike.setdefault(p.shape[-2:], []).append(p)
            for shape, params in alike.items():
                self.update(params, shape, group)

    def update(self, params, shape, group):
        """Updates all matrices of one shape together."""
        ahead = [p.grad.lerp(self.state[p]["momentum"], group["momentum"]).view(-1, *shape) for p in params]
        steps = orthogonal(torch.cat(ahead)).to(params[0].dtype)
        scale = 0.2 * max(shape) ** 0.5
        for p, step in zip(params, steps.split([len(a) for a in ahead])):
            p.mul_(1 - group["lr"] * group["weight_decay"])
            p.add_(step.view_as(p), alpha=-group["lr"] * scale)
