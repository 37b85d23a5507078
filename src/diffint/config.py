"""What a detector is made with: every setting, its meaning, and the two presets."""

from __future__ import annotations

import math
import numbers
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, get_args

from .errors import InputError

Decoder = Literal["free", "certified"]
Scaling = Literal["minmax", "unit", "standard", "none"]
Init = Literal["data", "gaussian"]
ErrorKind = Literal["unclipped", "clipped"]
Schedule = Literal["cosine", "constant"]
CalibrationKind = Literal["members", "holdout", "training"]


@dataclass(frozen=True)
class Config:
    """The settings that shape a fitted model. The defaults are the recommended preset.

    Attributes
    ----------
    n_units: interval units in the bottleneck (the paper's K).
    temperature: softness of an interval's edges, in scaled units (τ).
    n_members: independently trained networks whose scores are averaged.
    hidden_width: width of the decoder's hidden layer (h).
    decoder: ``"free"`` (LayerNorm) or ``"certified"`` (spectrally normalised, no LayerNorm).
    scaling: ``"minmax"`` to [−1, 1], ``"unit"`` to [0, 1], ``"standard"`` or ``"none"``.
    init: intervals start at training rows (``"data"``) or near zero (``"gaussian"``).
    error: score against the ``"unclipped"`` or the ``"clipped"`` scaled row.
    epochs, learning_rate, schedule: the optimiser (Adam).
    batch_size: rows per step; ``None`` chooses 64, 512 or 1024 by the number of rows.
    support_decay: decay of the running mean of memberships (ρ).
    calibration: which rows give the threshold: each member's own left-out rows
        (``"members"``), one common ``"holdout"``, or the (optimistic) ``"training"`` rows.
    """

    n_units: int = 200
    temperature: float = 0.1
    n_members: int = 3
    hidden_width: int = 128
    decoder: Decoder = "free"
    scaling: Scaling = "minmax"
    init: Init = "data"
    error: ErrorKind = "unclipped"
    epochs: int = 100
    learning_rate: float = 2e-3
    schedule: Schedule = "cosine"
    batch_size: int | None = None
    support_decay: float = 0.999
    calibration: CalibrationKind = "members"

    def __post_init__(self) -> None:
        for name in ("n_units", "n_members", "hidden_width", "epochs"):
            _require_integer(name, getattr(self, name))
        if self.batch_size is not None:
            _require_integer("batch_size", self.batch_size)
        for name in ("temperature", "learning_rate"):
            _require_real(name, getattr(self, name), above=0.0)
        _require_real("support_decay", self.support_decay, above=None, at_least=0.0, below=1.0)
        for name, kind in _CHOICES.items():
            if getattr(self, name) not in get_args(kind):
                options = ", ".join(repr(o) for o in get_args(kind))
                raise InputError(f"{name}={getattr(self, name)!r} is not one of {options}")

    def to_dict(self) -> dict[str, Any]:
        """The settings as plain values."""
        return asdict(self)

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The names of all settings, in order."""
        return tuple(f.name for f in fields(cls))


_CHOICES: dict[str, Any] = {
    "decoder": Decoder,
    "scaling": Scaling,
    "init": Init,
    "error": ErrorKind,
    "schedule": Schedule,
    "calibration": CalibrationKind,
}


def batch_size_for(n_rows: int) -> int:
    """The paper's batch size for a table of ``n_rows`` rows."""
    if n_rows <= 10_000:
        return 64
    return 512 if n_rows <= 20_000 else 1024


def check_false_positive_rate(rate: object) -> float:
    """`rate` as a float strictly between 0 and 1, or an error that says so."""
    _require_real("false_positive_rate", rate, above=0.0, below=1.0)
    return float(rate)  # type: ignore[arg-type]


def _require_integer(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 1:
        raise InputError(f"{name}={value!r} must be a whole number of at least 1")


def _require_real(
    name: str,
    value: object,
    above: float | None,
    at_least: float | None = None,
    below: float | None = None,
) -> None:
    wanted = "a finite number"
    if above is not None:
        wanted += f" above {above:g}"
    if at_least is not None:
        wanted += f" of at least {at_least:g}"
    if below is not None:
        wanted += f" and below {below:g}"
    good = isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)
    if (
        not good
        or (above is not None and not value > above)  # type: ignore[operator]
        or (at_least is not None and not value >= at_least)  # type: ignore[operator]
        or (below is not None and not value < below)  # type: ignore[operator]
    ):
        raise InputError(f"{name}={value!r} must be {wanted}")


RECOMMENDED = Config()
PAPER = replace(
    RECOMMENDED,
    n_members=1,
    init="gaussian",
    error="clipped",
    epochs=1000,
    learning_rate=5e-5,
    schedule="constant",
    calibration="training",
)
PRESETS = {"recommended": RECOMMENDED, "paper": PAPER}
