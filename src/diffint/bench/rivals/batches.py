"""The order in which rivals see their training rows."""

from __future__ import annotations

from collections.abc import Iterator

import torch


def batches(n_rows: int, batch_rows: int, epochs: int, most_steps: int) -> Iterator[torch.Tensor]:
    """The row numbers of each step: epochs in random order, until there are `most_steps`."""
    step = 0
    for _ in range(epochs):
        for chosen in torch.randperm(n_rows).split(batch_rows):
            if step == most_steps:
                return
            step += 1
            yield chosen
