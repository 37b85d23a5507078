"""The state of all runs on the GPU, and the training steps captured as CUDA graphs."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..cpu import layout
from ..cpu.intervals import padded
from . import decoder, intervals, plain
from .blocks import blocks_for
from .plain import Linear

_STEPS_PER_GRAPH = 32
_UNITS = 16  # per tile of the interval layer; padded units are a multiple of it
_DECODER_ROWS = 16
_GRADIENT_LEFT, _GRADIENT_RIGHT = 32, 64
_WIDEST_FUSED_HIDDEN = 128
# float32 matrices are multiplied as three tensor-core products of tf32 parts, which together are as
# precise as float32.
_PRECISION = "tf32x3"
_EXPONENT_LIMIT = 49.0  # as in `cpu/intervals.py`

_Line = tuple[Tensor, Tensor, int, int]  # (plan, base, index, runs): the step of a kernel


class Launch:
    """All runs on the device. If `orders` is on the CPU, Triton's interpreter runs the kernels.

    data: each run's rows; flat: (runs, size) packed parameters; orders: permutations on the
    device, to which the plan's lines refer; lines: largest number of lines loaded at once.
    """

    def __init__(
        self,
        data: list[NDArray[np.float32]],
        flat: NDArray[np.float32],
        singular: list[layout.Spectral],
        shape: layout.Shape,
        batch_size: int,
        lines: int,
        orders: Tensor,
        support_decay: float,
        interval_rate: float = 1.0,
        coverage_weight: float = 0.0,
    ) -> None:
        self.shape, self.orders, self.support_decay = shape, orders, support_decay
        self.interval_rate, self.coverage_weight = interval_rate, coverage_weight
        self.blocks = blocks_for(batch_size, shape.features)
        if shape.normalised:  # the normalisation needs the summed gradient
            self.blocks = replace(self.blocks, splits=1)
        self.device = orders.device
        self.runs, self.batch = len(data), padded(batch_size, 2 * self.blocks.rows)
        self.units, self.hidden = padded(shape.units), padded(shape.hidden)
        self.out, self.features4 = padded(shape.features), padded(shape.features, 4)

        self.data = torch.cat([torch.from_numpy(rows) for rows in data]).to(self.device)
        starts = np.cumsum([0] + [len(rows) for rows in data[:-1]])
        self.run_start = torch.tensor(starts, dtype=torch.int64, device=self.device)
        self.has_missing = bool(torch.isnan(self.data).any())
        self.plan = self._zeros(lines, self.runs, 2, dtype=torch.int32)
        self.rates = torch.ones(lines, self.runs, 3, device=self.device)
        self.base = self._zeros(1, dtype=torch.int32)

        self.flat = torch.from_numpy(flat).to(self.device)
        self.moment1, self.moment2 = torch.zeros_like(self.flat), torch.zeros_like(self.flat)
        self.gradient = self._zeros(self.blocks.splits, *flat.shape)
        self.weights, self.gradients = self._named(self.flat), self._named(self.gradient[0])
        self.hidden_left, self.output_left = (
            torch.from_numpy(np.stack(vectors)).to(self.device)
            for vectors in (
                [one.hidden_left for one in singular],
                [one.output_left for one in singular],
            )
        )
        self.support = self._zeros(self.runs, shape.features, self.units)
        self.support_weight = self._zeros(self.runs, shape.features)
        self._allocate_batch(lines)
        self._set_bounds()

        self._side_stream = torch.cuda.Stream() if self.device.type == "cuda" else None
        self._graphs: dict[int, Any] = {}
        if self._side_stream is not None:
            self._step(0)  # compiles the kernels; the empty plan changes no run
            for steps in {1, min(_STEPS_PER_GRAPH, lines)}:
                self._graphs[steps] = self._capture(steps)

    def load(self, plan: NDArray[np.int32], rates: NDArray[np.float32]) -> None:
        """Set the lines that `run` executes: plan (lines, runs, 2), rates (lines, runs, 3)."""
        self.plan[: len(plan)].copy_(torch.from_numpy(plan))
        self.rates[: len(rates)].copy_(torch.from_numpy(rates))
        self.base.zero_()

    def run(self, lines: int) -> None:
        """Queue the next lines of the plan."""
        if not self._graphs:
            for _ in range(lines):
                self._step(0)
                self.base += 1
            return
        most = max(self._graphs)
        for _ in range(lines // most):
            self._graphs[most].replay()
        for _ in range(lines % most):
            self._graphs[1].replay()

    def losses_of(self, lines: int) -> NDArray[np.float64]:
        """(lines, runs) sums of row losses of the first `lines` lines; waits for the device."""
        return np.asarray(self.losses[:lines].double().sum(2).cpu().numpy())

    def results(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The packed parameters (runs, size) and the corrected support (runs, units, features)."""
        if self.shape.normalised:  # the effective weights, normalised one last time
            all_runs = self._zeros(self.runs, dtype=torch.bool) | True
            hidden, output = self._linear_maps(all_runs)
            self.weights.hidden_weight.copy_(hidden.weight)
            self.weights.output_weight.copy_(output.weight)
        weight = self.support_weight.double()
        support = self.support.double() / torch.where(weight > 0, weight, 1.0)[:, :, None]
        support = support[:, :, : self.shape.units].transpose(1, 2).float()
        return self.flat.cpu().numpy(), np.ascontiguousarray(support.cpu().numpy())

    # --- Set-up --------------------------------------------------------------------------------

    def _zeros(self, *size: int, dtype: Any = torch.float32) -> Tensor:
        return torch.zeros(size, dtype=dtype, device=self.device)

    def _named(self, flat: Tensor) -> Any:
        """The named parts of flat (runs, size); the first axis of each is the run."""
        places = layout.views(np.arange(flat.shape[1]), self.shape)
        return layout.Weights(
            *(flat[:, p.flat[0] : p.flat[-1] + 1].unflatten(1, p.shape) for p in places)
        )

    def _allocate_batch(self, lines: int) -> None:
        runs, rows = self.runs, self.batch
        row_blocks = rows // _DECODER_ROWS
        self.x, self.error = (self._zeros(runs, rows, self.out) for _ in range(2))
        self.u, self.v = (self._zeros(runs, self.features4, rows) for _ in range(2))
        self.p, self.q = (self._zeros(runs, self.features4, self.units) for _ in range(2))
        self.log_box, self.code, self.upstream = (
            self._zeros(runs, rows, self.units) for _ in range(3)
        )
        self.activation, self.d_hidden = (self._zeros(runs, rows, self.hidden) for _ in range(2))
        self.scale, self.along = (self._zeros(runs, rows) for _ in range(2))
        self.norm_sums = self._zeros(runs, row_blocks, 2 * self.hidden)
        self.losses = self._zeros(lines, runs, row_blocks)

    def _set_bounds(self) -> None:
        """p and q of the initial intervals."""
        half_width = torch.nn.functional.softplus(self.weights.width_logit)
        lower, upper = self.weights.center - half_width, self.weights.center + half_width
        if not self.shape.by_difference:
            lower, upper = (
                torch.exp((bound / self.shape.temperature).clamp(-_EXPONENT_LIMIT, _EXPONENT_LIMIT))
                for bound in (lower, -upper)
            )
        self.p[:, : self.shape.features].copy_(lower)
        self.q[:, : self.shape.features].copy_(upper)

    def _capture(self, steps: int) -> Any:
        """A graph of the next `steps` lines of the plan."""
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for index in range(steps):
                self._step(index)
            self.base.add_(steps)
        return graph

    # --- One step ------------------------------------------------------------------------------

    def _step(self, index: int) -> None:
        """Queue the step of line base + index."""
        line = (self.plan, self.base, index, self.runs)
        self._gather(line)
        self._encode(line)
        rows = self._rows(index) if self.shape.normalised or self._wide else None
        maps = self._linear_maps(rows > 0 if rows is not None else None)
        if self._wide:
            self._decode_by_torch(index, rows, maps)
        else:
            self._decode(line, maps)
        # The updates of decoder and intervals run in parallel; only Adam must wait until the
        # hidden weights have been used.
        with self._on_side_stream():
            self._decoder_gradients(line, maps)
        self._softmax_gradient(maps)
        with self._on_side_stream():
            self._update_decoder(line)
        self._update_intervals(line)
        if self._side_stream is not None:
            torch.cuda.current_stream().wait_stream(self._side_stream)

    def _gather(self, line: _Line) -> None:
        shape = self.shape
        intervals.gather_rows[(self.batch // 32, _ceil(self.out, 16), self.runs)](
            *(self.data, self.run_start, self.orders),
            *line,
            *(self.x, self.u, self.v, self.batch),
            *(shape.features, self.features4, self.out, 1.0 / shape.temperature),
            shape.by_difference,
            BLOCK_ROWS=32,
            BLOCK_FEATURES=16,
        )

    def _encode(self, line: _Line) -> None:
        shape, size = self.shape, self.blocks
        grid = (self.units // _UNITS, self.batch // (2 * size.rows), self.runs)
        intervals.log_box_memberships[grid](
            *(self.u, self.v, self.p, self.q),
            *line,
            *(self.log_box, self.features4, 1.0 / shape.temperature),
            shape.by_difference,
            BATCH=self.batch,
            UNITS=self.units,
            BLOCK_ROWS=size.rows,
            BLOCK_UNITS=_UNITS,
            STAGES=size.stages,
        )

    def _update_intervals(self, line: _Line) -> None:
        shape, size = self.shape, self.blocks
        grid = (self.units // _UNITS, self.features4 // 4, self.runs)
        intervals.interval_step[grid](
            *(self.u, self.v, self.p, self.q, self.upstream, self.rates),
            *line,
            *(self.flat, self.moment1, self.moment2, self.support, self.support_weight),
            *(shape.features, self.features4, self.flat.shape[1]),
            *(1.0 / shape.temperature, self.support_decay, self.interval_rate),
            self.coverage_weight / (shape.units * shape.features),
            shape.by_difference,
            self.has_missing,
            BATCH=self.batch,
            UNITS=self.units,
            BLOCK_ROWS=size.step_rows,
            BLOCK_UNITS=_UNITS,
            num_warps=size.step_warps,
        )

    @property
    def _wide(self) -> bool:
        return self.hidden > _WIDEST_FUSED_HIDDEN

    @property
    def _covering(self) -> float:
        """Weight of a row's own log box membership in the coverage term, times the batch size."""
        return 2.0 * self.coverage_weight / self.shape.features

    def _rows(self, index: int) -> Tensor:
        """(runs,) rows in the batch of line base + index."""
        return self.plan.index_select(0, self.base + index)[0, :, 1]

    @contextlib.contextmanager
    def _on_side_stream(self) -> Any:
        """Queue work on the side stream, in parallel with the rest of the step."""
        if self._side_stream is None:
            yield
            return
        self._side_stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._side_stream):
            yield

    def _linear_maps(self, active: Any) -> tuple[Linear, Linear]:
        """The effective hidden and output maps; normalised ones after one power iteration."""
        hidden, output = self.weights.hidden_weight, self.weights.output_weight
        if not self.shape.normalised:
            return Linear(hidden), Linear(output)
        return (
            plain.normalised(hidden, self.hidden_left, active),
            plain.normalised(output, self.output_left, active),
        )

    def _decode(self, line: _Line, maps: tuple[Linear, Linear]) -> None:
        shape, size, w = self.shape, self.blocks, self.weights
        hidden, output = (one.weight for one in maps)
        decoder.decode_rows[(self.batch // _DECODER_ROWS, self.runs)](
            *(self.log_box, self.x),
            *(hidden, hidden.stride(0), output, output.stride(0)),
            *(w.hidden_bias, w.norm_gain, w.norm_shift, w.output_bias, self.flat.shape[1]),
            *line,
            *(self.code, self.activation, self.d_hidden, self.error, self.scale, self.along),
            *(self.norm_sums, self.losses, self.batch),
            *(shape.units, self.units, shape.hidden, self.hidden, shape.features, self.out),
            self._covering,
            shape.layer_norm,
            PRECISION=_PRECISION,
            BLOCK_ROWS=_DECODER_ROWS,
            BLOCK_UNITS=size.decoder_units,
            BLOCK_HIDDEN=_power_of_two(self.hidden),
            BLOCK_OUT=size.decoder_out,
            BLOCK_SLICE=size.decoder_slice,
            num_warps=size.decoder_warps,
            num_stages=2,
            maxnreg=size.decoder_registers,
        )

    def _softmax_gradient(self, maps: tuple[Linear, Linear]) -> None:
        size, hidden = self.blocks, maps[0].weight
        grid = (_ceil(self.units, size.softmax_units), self.batch // size.softmax_rows, self.runs)
        decoder.softmax_gradient[grid](
            *(self.d_hidden, hidden, hidden.stride(0), self.code, self.along),
            *(self.upstream, self.batch, self.units, self.hidden),
            PRECISION=_PRECISION,
            BLOCK_ROWS=size.softmax_rows,
            BLOCK_UNITS=size.softmax_units,
            BLOCK_HIDDEN=32,
        )

    def _decode_by_torch(self, index: int, rows: Any, maps: tuple[Linear, Linear]) -> None:
        w = self.weights._replace(hidden_weight=maps[0].weight, output_weight=maps[1].weight)
        results = plain.decode_by_torch(self.log_box, self.x, rows, w, self.shape, self._covering)
        line = (self.base + index).long()
        self.losses[:, :, 0].index_copy_(0, line, results.pop("losses")[None])
        self.norm_sums[:, 0].copy_(results.pop("norm_sums"))
        for name, value in results.items():
            getattr(self, name).copy_(value)

    def _decoder_gradients(self, line: _Line, maps: tuple[Linear, Linear]) -> None:
        size, g = self.blocks, self.gradients
        hidden_tiles = _ceil(self.units, _GRADIENT_LEFT)
        hidden_tiles *= _ceil(self.hidden, _GRADIENT_RIGHT)
        output_tiles = _ceil(self.hidden, _GRADIENT_LEFT) * _ceil(self.out, size.gradient_out)
        norm_tiles = _ceil(2 * self.hidden, 64) if self.shape.layer_norm else 0
        grid = (hidden_tiles + output_tiles + norm_tiles, size.splits, self.runs)
        decoder.decoder_gradients[grid](
            *(self.code, self.d_hidden, self.activation, self.error, self.scale, self.norm_sums),
            *line,
            *(g.hidden_weight, g.hidden_bias, g.output_weight, g.output_bias, g.norm_gain),
            *self.gradient.stride()[:2],
            *(hidden_tiles, output_tiles, self.norm_sums.shape[1]),
            *(self.batch, self.units, self.hidden, self.out),
            SPLITS=size.splits,
            PRECISION=_PRECISION,
            BLOCK_ROWS=32,
            BLOCK_LEFT=_GRADIENT_LEFT,
            BLOCK_RIGHT=_GRADIENT_RIGHT,
            BLOCK_OUT=size.gradient_out,
        )
        if self.shape.normalised:
            plain.through_normalisation(g.hidden_weight, maps[0])
            plain.through_normalisation(g.output_weight, maps[1])

    def _update_decoder(self, line: _Line) -> None:
        start = self.gradients.hidden_weight.storage_offset()  # after the intervals
        count = self.flat.shape[1] - start
        decoder.adam_step[(_ceil(count, 1024), self.runs)](
            *(self.flat, self.moment1, self.moment2, self.gradient, self.rates),
            *line,
            *(*self.gradient.stride()[:2], start, count),
            SPLITS=self.blocks.splits,
            BLOCK=1024,
        )


def _power_of_two(size: int) -> int:
    return 1 << (size - 1).bit_length()


def _ceil(size: int, block: int) -> int:
    return -(-size // block)
