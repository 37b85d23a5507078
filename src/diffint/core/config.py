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
    epochs: passes over the rows; ``"auto"`` makes 100, fewer where that is over 1,000 steps.
    learning_rate, schedule: of the optimiser (Adam); constant, or a half cosine over all steps.
    batch_size: rows per step; ``"auto"`` takes 64, or 256 for tables of over 10,000 rows,
        ``"paper"`` 64, 512 or 1024 for up to 10,000, up to 20,000, or more rows.
    support_decay: decay of the running mean of memberships (ρ).
    interval_rate: how many times the learning rate the intervals move with.
    coverage_weight: of the term that trades the intervals' width against how well each row is
        covered by its own boxes (λ); 0 leaves the intervals to the reconstruction alone.
    box_coverage: share of the left-out rows that lie wholly inside their own box. Boxes are the
        intervals with their half-widths multiplied until that holds; 0 takes the intervals as
        they are.
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
    epochs: int | Literal["auto"] = "auto"
    learning_rate: float = 2e-3
    schedule: Schedule = "cosine"
    batch_size: int | Literal["auto", "paper"] = "auto"
    support_decay: float = 0.999
    interval_rate: float = 3.0
    coverage_weight: float = 0.2
    box_coverage: float = 0.8
    calibration: CalibrationKind = "members"

    def __post_init__(self) -> None:
        # Plain numbers, whatever NumPy scalars came in: they are saved as JSON.
        for name in ("n_units", "n_members", "hidden_width"):
            self._set(name, _integer(name, getattr(self, name)))
        if not isinstance(self.epochs, str) or self.epochs != "auto":
            self._set("epochs", _integer("epochs", self.epochs, "'auto'"))
        if not isinstance(self.batch_size, str) or self.batch_size not in ("auto", "paper"):
            self._set("batch_size", _integer("batch_size", self.batch_size, "'auto' or 'paper'"))
        for name in ("temperature", "learning_rate", "interval_rate"):
            self._set(name, _real(name, getattr(self, name), above=0.0))
        self._set(
            "support_decay", _real("support_decay", self.support_decay, at_least=0.0, below=1)
        )
        self._set("box_coverage", _real("box_coverage", self.box_coverage, at_least=0.0, below=1))
        self._set("coverage_weight", _real("coverage_weight", self.coverage_weight, at_least=0.0))
        for name, kind in _CHOICES.items():
            value = getattr(self, name)
            if not isinstance(value, str) or value not in get_args(kind):
                options = ", ".join(repr(o) for o in get_args(kind))
                raise InputError(f"{name}={value!r} is not one of {options}")
            self._set(name, str(value))

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def settled(self, n_rows: int, n_trained: int) -> Config:
        """The same with batch size and epochs as numbers.

        n_rows: rows of the table; n_trained: those that a member trains on.
        """
        batch_size, epochs = self.batch_size, self.epochs
        if batch_size == "paper":
            batch_size = paper_batch_size(n_rows)
        elif batch_size == "auto":
            batch_size = 64 if n_rows <= 10_000 else 256
        if epochs == "auto":
            steps_per_epoch = -(-n_trained // batch_size)
            epochs = min(_MOST_EPOCHS, max(1, round(_ENOUGH_STEPS / steps_per_epoch)))
        return replace(self, batch_size=batch_size, epochs=epochs)

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


# More steps than this hardly raise the accuracy of the recommended configuration
# (docs/results/training_length.md).
_ENOUGH_STEPS = 1_000
_MOST_EPOCHS = 100


def paper_batch_size(n_rows: int) -> int:
    """The paper's batch size for a table of ``n_rows`` rows."""
    if n_rows <= 10_000:
        return 64
    return 512 if n_rows <= 20_000 else 1024


def check_false_positive_rate(rate: object) -> float:
    """`rate` as a float strictly between 0 and 1, or an error that says so."""
    return _real("false_positive_rate", rate, above=0.0, below=1.0)


def _integer(name: str, value: object, otherwise: str = "") -> int:
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 1:
        alternative = f", or {otherwise}" if otherwise else ""
        raise InputError(f"{name}={value!r} must be a whole number of at least 1{alternative}")
    return int(value)


def _real(
    name: str,
    value: object,
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
) -> float:
    wanted = "a finite number"
    if above is not None:
        wanted += f" above {above:g}"
    if at_least is not None:
        wanted += f" of at least {at_least:g}"
    if below is not None:
        wanted += f" and below {below:g}"
    try:
        is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
        number = float(value) if is_number else math.nan  # type: ignore[arg-type]
    except OverflowError:
        number = math.inf
    if (
        not math.isfinite(number)
        or (above is not None and not number > above)
        or (at_least is not None and not number >= at_least)
        or (below is not None and not number < below)
    ):
        raise InputError(f"{name}={str(value)[:40]!s} must be {wanted}")
    return number


RECOMMENDED = Config()
PAPER = replace(
    RECOMMENDED,
    n_members=1,
    init="gaussian",
    error="clipped",
    epochs=1000,
    learning_rate=5e-5,
    schedule="constant",
    batch_size="paper",
    interval_rate=1.0,
    coverage_weight=0.0,
    box_coverage=0.0,
    calibration="training",
)
PRESETS = {"recommended": RECOMMENDED, "paper": PAPER}
