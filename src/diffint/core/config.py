"""Every setting: its name, default, meaning, check, and when to change it.

This is the only place where a setting is defined. The docstrings of `DiffInt` and of the PyOD
detector, the command's help, the report's list of settings and the model file's checks are
generated from it.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, fields, replace
from functools import partial
from typing import Any

from .checks import check_choice, check_real, check_whole, check_words
from .decoder import DECODERS
from .scaling import SCALERS


@dataclass(frozen=True)
class Setting:
    """One setting.

    kind: its type, as shown in the documentation.
    meaning: what it is, in one short sentence.
    advice: when to change it.
    check: returns the value to store, or raises an error that says what is wrong with it.
    since: the first version of the model file that has it; before: its value in older files.
    """

    name: str
    default: Any
    kind: str
    meaning: str
    advice: str
    check: Callable[[str, object], Any] | None = None
    since: int = 4
    before: Any = None

    def numpydoc(self) -> str:
        """The setting as a numpydoc parameter."""
        text = textwrap.fill(f"{self.meaning} {self.advice}", 84)
        return f"{self.name} : {self.kind}, default={self.default!r}\n" + textwrap.indent(
            text, "    "
        )


def _setting(
    default: Any,
    kind: str,
    check: Callable[[str, object], Any],
    meaning: str,
    advice: str,
    **later: Any,
) -> Any:
    """A field of `Config` that carries its own description; later: `since` and `before`."""
    return field(
        default=default,
        metadata={"kind": kind, "check": check, "meaning": meaning, "advice": advice, **later},
    )


def _choice(*choices: str) -> tuple[str, Callable[[str, object], str]]:
    """The documented type and the check of a setting that is one of these words."""
    return "{" + ", ".join(map(repr, choices)) + "}", partial(check_choice, choices=choices)


def _whole_or(*words: str, **limits: int) -> Callable[[str, object], int | str]:
    """The check of a setting that is a whole number within limits, or one of these words."""

    def check(name: str, value: object) -> int | str:
        if isinstance(value, str) and value in words:
            return str(value)
        return check_whole(name, value, " or ".join(map(repr, words)), **limits)

    return check


def _share_or_auto(name: str, value: object) -> float | str:
    """The check of a share below one half, or 'auto'."""
    if isinstance(value, str) and value == "auto":
        return "auto"
    return check_real(name, value, at_least=0.0, below=0.5, otherwise="'auto'")


# Beyond these limits every edge is a step, or no interval has an edge; 1/τ must fit float32.
_TEMPERATURE = partial(check_real, at_least=1e-9, below=1e9)
_POSITIVE = partial(check_real, above=0.0)
_SHARE = partial(check_real, at_least=0.0, below=1.0)
# What text files usually have in cells without a value.
MISSING_WORDS = ("NA", "n/a", "NaN", "null", "-", "?", "#N/A", "<NA>")
CALIBRATIONS = ("members", "holdout", "training")  # how scores are obtained


@dataclass(frozen=True)
class Config:
    """The settings that shape a fitted model; the defaults are the recommended preset."""

    n_units: int = _setting(
        200,
        "int",
        check_whole,
        "Interval units in the bottleneck of each member (the paper's K).",
        "More units learn more patterns; try 500 on large tables with few columns. Time grows in "
        "proportion.",
    )
    temperature: float = _setting(
        0.1,
        "float",
        _TEMPERATURE,
        "Softness of the intervals' edges, in scaled units (the paper's τ).",
        "Smaller values make the edges sharper; 0.05 to 0.2 is the useful range.",
    )
    n_members: int | str = _setting(
        "auto",
        "int or 'auto'",
        _whole_or("auto", at_most=1_000),
        "Independently trained networks whose scores are averaged; 'auto' means 5 up to 2,000 rows "
        "and 3 for more.",
        "More members are a little more accurate and take proportionally longer.",
    )
    hidden_width: int = _setting(
        128,
        "int",
        check_whole,
        "Width of the decoder's hidden layer.",
        "Rarely worth changing.",
    )
    decoder: str = _setting(
        "free",
        *_choice(*DECODERS),
        "Kind of decoder: free; certified for scores with proven lower bounds; or spectral, the "
        "paper's certified decoder.",
        "Use 'certified' if you need `certify` or tight bounds on regions.",
    )
    scaling: str = _setting(
        "adaptive",
        *_choice(*SCALERS),
        "How features are scaled: 'adaptive' and 'minmax' to [-1, 1], the former along a curve "
        "where a feature has long tails; 'unit' to [0, 1]; 'standard' to mean 0 and deviation 1; "
        "or not at all.",
        "'minmax' if extremes matter more than the order of values. 'standard' and 'none' do not "
        "clip values to the training range; they are meant for comparisons.",
    )
    init: str = _setting(
        "data",
        *_choice("data", "gaussian"),
        "Initial intervals: around training rows, or near zero as in the paper.",
        "Keep 'data' unless you reproduce the paper.",
    )
    error: str = _setting(
        "unclipped",
        *_choice("unclipped", "clipped"),
        "What the error of a value beyond the training range is measured against: the value, or "
        "the end of the range.",
        "Keep 'unclipped' unless you reproduce the paper.",
    )
    missing: str = _setting(
        "signal",
        *_choice("signal", "ignored"),
        "What a missing cell means: 'signal' adds to the score where training rows hardly ever "
        "miss the value, and is neutral elsewhere; 'ignored' leaves the cell out.",
        "'ignored' if values will be missing at random in new rows but not in training rows.",
    )
    kept_rows: int | str = _setting(
        "auto",
        "int or 'auto'",
        _whole_or("auto", at_least=0, at_most=1_000_000),
        "Training rows that each member keeps in the model; the distance from the nearest of them "
        "is part of the score. 'auto' means as many as have 36,000 cells, from 250 to 4,000.",
        "0 if no training rows may be stored; the detector is then a little less accurate.",
    )
    epochs: int | str = _setting(
        "auto",
        "int or 'auto'",
        _whole_or("auto"),
        "Passes over the training rows; 'auto' means about 1,500 steps up to 4,000 rows, and up to "
        "4,000 steps for more, half as many for more than 300 features, and at most 100 passes.",
        "Raise it when a warning says that the loss did not fall or the intervals did not move.",
    )
    learning_rate: float = _setting(
        2e-3,
        "float",
        _POSITIVE,
        "Step size of the optimiser (Adam).",
        "Lower it when training diverges.",
    )
    schedule: str = _setting(
        "cosine",
        *_choice("cosine", "constant"),
        "How the step size changes: down to 0 along a half cosine, or not at all.",
        "Keep 'cosine' unless you reproduce the paper.",
    )
    batch_size: int | str = _setting(
        "auto",
        "int or {'auto', 'paper'}",
        _whole_or("auto", "paper"),
        "Rows per step; 'auto' means 64, or 256 for more than 10,000 rows; 'paper' means 64 for up "
        "to 10,000 rows, 512 for up to 20,000, 1024 for more.",
        "Rarely worth changing.",
    )
    support_decay: float = _setting(
        0.999,
        "float",
        _SHARE,
        "Decay of the running mean of memberships, per step (the paper's ρ).",
        "Rarely worth changing.",
    )
    interval_rate: float = _setting(
        3.0,
        "float",
        _POSITIVE,
        "Learning rate of the intervals, as a multiple of `learning_rate`.",
        "Raise it when a warning says that the intervals hardly moved.",
    )
    coverage_weight: float = _setting(
        0.02,
        "float",
        partial(check_real, at_least=0.0),
        "Weight of the loss term that fits intervals tightly around the rows of their boxes (λ).",
        "0 trains the intervals by the reconstruction error alone, which can be more accurate and "
        "less readable.",
    )
    box_coverage: float = _setting(
        0.8,
        "float",
        _SHARE,
        "Share of left-out rows that lie entirely inside their own box.",
        "Raise it for wider, more lenient ranges; 0 uses the trained intervals unchanged.",
    )
    importance: str = _setting(
        "boxes",
        *_choice("boxes", "paper"),
        "How the importance of ranges and features is computed: from the boxes that are shown, or "
        "by the paper's formula from the trained intervals.",
        "Keep 'boxes' unless you reproduce the paper; scores do not depend on it.",
        since=5,
        before="boxes",
    )
    calibration: str = _setting(
        "auto",
        *_choice("auto", *CALIBRATIONS),
        "Rows whose scores set the threshold: 'holdout' are rows that no member sees, 'members' "
        "those that each member leaves out, 'training' the training rows; 'auto' is 'holdout' from "
        "5,000 rows on, else 'members'.",
        "'holdout' has proven error rates in tables of any size, at a small loss of accuracy in "
        "small ones; 'training' uses every row, but its p-values are optimistic.",
    )
    suspected_share: float | str = _setting(
        0.0,
        "float or 'auto'",
        _share_or_auto,
        "Share of the rows to leave out because they may be anomalies: those with the highest "
        "scores by members that were not trained on them; 'auto' leaves out the rows that stand "
        "out clearly.",
        "Set it, or use 'auto', if the table may contain anomalies that are not marked.",
    )
    missing_words: tuple[str, ...] = _setting(
        (),
        "list of str",
        check_words,
        "Words that stand for a missing cell in text files and workbooks that are scored with this "
        "model; data frames have missing values of their own.",
        "Name them if the files that you will score have such cells. In columns of numbers and "
        "times, the usual words (NA, null, ?, …) always do.",
        since=6,
        before=MISSING_WORDS,
    )

    def __post_init__(self) -> None:
        # The checks also turn NumPy scalars into plain values, which can be saved as JSON.
        for f in fields(self):
            object.__setattr__(self, f.name, f.metadata["check"](f.name, getattr(self, f.name)))

    def for_table(
        self, n_rows: int, n_features: int, n_groups: int | None = None, every_row: bool = False
    ) -> Config:
        """A copy with the calibration, and the number of members and of kept rows as numbers.

        n_groups: of rows that are not split; every_row: whether each row is to be left out by some
        member but not by all
        """
        n_members, kept_rows, calibration = self.n_members, self.kept_rows, self.calibration
        if calibration == "auto":
            count = n_rows if n_groups is None else n_groups
            enough = count >= _ENOUGH_TO_HOLD_OUT and not every_row
            calibration = "holdout" if enough else "members"
        if n_members == "auto":
            n_members = _MEMBERS_OF_SMALL_TABLES if n_rows <= SMALL_TABLE else _MEMBERS
        if kept_rows == "auto":
            kept_rows = min(max(_KEPT_CELLS // n_features, _FEWEST_KEPT), _MOST_KEPT)
        return replace(self, n_members=n_members, kept_rows=kept_rows, calibration=calibration)

    def resolved(self, n_rows: int, n_trained: int, n_features: int = 1) -> Config:
        """A copy with batch size and epochs as numbers.

        n_rows: rows of the table; n_trained: rows that one member trains on.
        """
        batch_size, epochs = self.batch_size, self.epochs
        if batch_size == "paper":
            batch_size = paper_batch_size(n_rows)
        elif batch_size == "auto":
            batch_size = 64 if n_rows <= 10_000 else 256
        if epochs == "auto":
            steps_per_epoch = -(-n_trained // int(batch_size))
            epochs = round(usual_steps(n_trained, n_features) / steps_per_epoch)
            epochs = min(max(epochs, 1), MAX_EPOCHS)
        return replace(self, batch_size=batch_size, epochs=epochs)

    def to_dict(self) -> dict[str, Any]:
        """The settings as plain values."""
        return asdict(self)

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The names of all settings, in order."""
        return tuple(f.name for f in fields(cls))


# What a row costs at scoring bounds both; small tables gain most from more members.
_MEMBERS, _MEMBERS_OF_SMALL_TABLES, SMALL_TABLE = 3, 5, 2_000
_ENOUGH_TO_HOLD_OUT = 5_000  # rows or groups, from which holding some out costs no accuracy
_KEPT_CELLS, _FEWEST_KEPT, _MOST_KEPT = 36_000, 250, 4_000
# More steps hardly improve the accuracy of the recommended configuration (docs/recommended.md).
_FEW_STEPS, _FEW_ROWS, _MANY_STEPS = 1_500, 4_000, 4_000
_MANY_FEATURES = 300  # a step takes time in proportion to the features
MAX_EPOCHS = 100  # small tables are not learned by heart


def usual_steps(n_trained: int, n_features: int = 1) -> float:
    """Training steps for so many rows and features, if the epochs do not limit them."""
    steps = _FEW_STEPS * math.sqrt(max(n_trained / _FEW_ROWS, 1.0))
    return min(steps, _MANY_STEPS) / (2 if n_features > _MANY_FEATURES else 1)


def paper_batch_size(n_rows: int) -> int:
    """The paper's batch size for a table of ``n_rows`` rows."""
    if n_rows <= 10_000:
        return 64
    return 512 if n_rows <= 20_000 else 1024


def check_false_positive_rate(rate: object) -> float:
    """The rate as a float strictly between 0 and 1; raises an error otherwise."""
    return check_real("false_positive_rate", rate, above=0.0, below=1.0)


def check_confidence(confidence: object) -> float | None:
    """The confidence as a float strictly between 0 and 1, or None; raises an error otherwise."""
    if confidence is None:
        return None
    return check_real("confidence", confidence, above=0.0, below=1.0)


RECOMMENDED = Config()
PAPER = replace(
    RECOMMENDED,
    n_members=1,
    scaling="minmax",
    init="gaussian",
    error="clipped",
    missing="ignored",
    kept_rows=0,
    epochs=1000,
    learning_rate=5e-5,
    schedule="constant",
    batch_size="paper",
    interval_rate=1.0,
    coverage_weight=0.0,
    box_coverage=0.0,
    importance="paper",
    calibration="training",
)
PRESETS = {"recommended": RECOMMENDED, "paper": PAPER}

# --- All settings, for documentation and the command's help ---------------------------------------

MODEL_SETTINGS = {
    f.name: Setting(name=f.name, default=f.default, **f.metadata) for f in fields(Config)
}
RUN_SETTINGS = {
    setting.name: setting
    for setting in (
        Setting(
            "categories",
            "auto",
            "list of str or 'auto'",
            "Names of columns that are categories also if they have numbers; 'auto' means only the "
            "columns of a data frame that have text.",
            "Name columns of numbers that are codes, such as postal codes.",
        ),
        Setting(
            "confidence",
            None,
            "float or None",
            "Probability with which the false-positive rate holds for this fit; None means that "
            "it holds on average over fits.",
            "0.95 flags fewer rows; needs about three times as many calibration rows.",
        ),
        Setting(
            "false_positive_rate",
            0.01,
            "float",
            "Share of normal rows that may be flagged.",
            "Set it by how many false alarms you can handle; it can be changed after fitting.",
        ),
        Setting(
            "device",
            "auto",
            "{'auto', 'cpu', 'cuda', 'cuda:N', 'ray'}",
            "Where to train: 'cpu', 'cuda', or 'auto' for a GPU if it is worthwhile; 'ray' trains "
            "each member on a worker of a Ray cluster.",
            "Scoring always runs on the CPU.",
        ),
        Setting(
            "random_state",
            None,
            "int, RandomState, Generator or None",
            "The only source of randomness; on one machine the same seed gives the same model.",
            "None uses a new seed for every fit.",
        ),
        Setting(
            "n_jobs",
            -1,
            "int or None",
            "Threads for training and scoring; -1 uses all cores.",
            "None is 1. The number does not change any result.",
        ),
        Setting(
            "verbose",
            0,
            "int",
            "1 shows the progress of training.",
            "It is a bar on a terminal; elsewhere a line at the start and one at the end.",
        ),
    )
}
SETTINGS = {**MODEL_SETTINGS, **RUN_SETTINGS}


def parameters_section(settings: Iterable[Setting] = tuple(SETTINGS.values())) -> str:
    """The parameters section of a numpydoc docstring."""
    return "\n".join(setting.numpydoc() for setting in settings)


Config.__doc__ = f"""{Config.__doc__}

Parameters
----------
{parameters_section(MODEL_SETTINGS.values())}
"""
