"""Checks a certificate of a region again, by independent code.

What is checked, in this order: the versions, the model's checksum, the threshold, that the parts
make up the region without a gap, that the witnesses are in the region and on the right side of the
threshold, that bounds and witnesses imply the statement, and the bounds of every part
(`reference_bounds`). Where the reference proves less than is claimed for a part, it splits the part
further; a claim that it cannot prove so is refused.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.formatting import exact_number, printable
from ..core.model import FittedModel
from ..core.version import __version__
from . import document as documents
from .coverage import find_gap
from .document import FORMAT_KEY, FORMAT_VERSION, METHOD, Document
from .reference_bounds import ReferenceBounds

Array = NDArray[np.float64]
Score = Callable[[Array], Array]
"""Scores of rows (rows, features) → (rows,), as the library computes them."""
Progress = Callable[[int, int, float], None]
"""Called after each part with (parts checked, all parts, seconds)."""

_STEPS = (2, 8, 30)  # of the search for a good bound, tried one after the other
_MOST_SPLITS = 64  # of parts whose bounds cannot be proven at once, all together
_ALONE = 1e-9  # a row's score may differ by this between being scored alone and with others


@dataclass(frozen=True)
class Verification:
    """Whether a certificate is confirmed.

    reason: why it is refused, in a word: "version", "model", "threshold", "region", "parts",
    "witness", "statement" or "bounds"; None if it is confirmed. detail: the same as a sentence.
    lower, upper: the bounds that the reference proved itself; None if it did not come to that.
    n_parts: parts in the certificate; n_splits: how often one was split further; seconds: taken.
    document: what is confirmed or refused, None if it was refused before it was read.
    not_considered: as in `RegionCertificate`, for the model as it is now.
    """

    reason: str | None
    detail: str
    lower: float | None
    upper: float | None
    n_parts: int
    n_splits: int
    seconds: float
    document: Document | None = None
    not_considered: tuple[str, ...] = ()

    @property
    def confirmed(self) -> bool:
        """Whether everything that the certificate claims is proven."""
        return self.reason is None

    def __repr__(self) -> str:
        return "Verification(confirmed)" if self.confirmed else f"Verification({self.reason!r})"

    def text(self) -> str:
        """The result as text."""
        from ..show.wording.certificates import verification_text

        return verification_text(self)

    def to_dict(self) -> dict[str, Any]:
        """The result, of values that JSON has."""
        keys = ("confirmed", "reason", "detail", "lower", "upper", "n_parts", "n_splits", "seconds")
        result = {key: getattr(self, key) for key in keys}
        if self.upper is not None and not np.isfinite(self.upper):
            result["upper"] = "inf"
        if self.document is not None:
            result["statement"] = self.document.statement
        return result


class _Refused(Exception):
    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason, self.detail = reason, detail


def verify(
    certificate: str | bytes | Mapping[str, Any],
    model: FittedModel,
    score: Score,
    progress: Progress | None = None,
) -> Verification:
    """Check a certificate against the model that it is about.

    certificate: its JSON text, or the object in it. Raises an `InputError` if it cannot be read.
    score: scores of rows by the library, for witnesses and for parts that are a single row
    """
    started = time.monotonic()
    raw = documents.parse(certificate)
    document, checked = None, None
    reason, detail = None, "everything that it claims is proven"
    try:
        _check_origin(raw, model)
        document = documents.read(raw, model)
        _check_threshold(document, model)
        _check_parts(document)
        _check_witnesses(document, score)
        _check_statement(document)
        checked = _Checked(document, ReferenceBounds(model), score)
        for i in range(document.n_parts):
            checked.check(i)
            if progress is not None:
                progress(i + 1, document.n_parts, time.monotonic() - started)
    except _Refused as refused:
        reason, detail = refused.reason, refused.detail
    proven = checked is not None and reason is None
    return Verification(
        reason=reason,
        detail=detail,
        lower=checked.low if checked is not None and proven else None,
        upper=checked.high if checked is not None and proven else None,
        n_parts=0 if document is None else document.n_parts,
        n_splits=0 if checked is None else checked.n_splits,
        seconds=time.monotonic() - started,
        document=document,
        not_considered=documents.not_considered(model),
    )


def _check_origin(raw: Mapping[str, Any], model: FittedModel) -> None:
    version = raw[FORMAT_KEY]
    if version != FORMAT_VERSION or isinstance(version, bool):
        raise _Refused(
            "version",
            f"it has format version {str(version)[:20]}, and this diffint reads version "
            f"{FORMAT_VERSION} only",
        )
    if documents.method_of(raw) != METHOD:
        raise _Refused("version", f"its method {documents.method_of(raw)[:60]!r} is unknown")
    written_by = documents.version_of(raw)
    if written_by != __version__:
        raise _Refused(
            "version",
            f"it is about scores of diffint {printable(written_by[:20])}, and this is diffint "
            f"{__version__}; verify it with that version, or make it again with this one",
        )
    of_model = documents.model_of(raw)
    if of_model != model.identity:
        raise _Refused(
            "model",
            f"it is about another model: its checksum is {printable(of_model[:16])}…, that of this "
            f"model {model.identity[:16]}…",
        )


def _check_threshold(document: Document, model: FittedModel) -> None:
    rate, confidence = document.false_positive_rate, document.confidence
    if document.threshold is None:
        return
    if rate is None:
        raise _Refused("threshold", "it does not say to which rate its threshold belongs")
    if not 0 < rate < 1 or not (confidence is None or 0 < confidence < 1):
        raise _Refused("threshold", "its false-positive rate or confidence is not possible")
    threshold = model.calibration.threshold(rate, confidence)
    if threshold != document.threshold:
        raise _Refused(
            "threshold",
            f"its threshold is {exact_number(document.threshold)}, but that of this model at its "
            f"rate is {exact_number(threshold)}",
        )


def _check_parts(document: Document) -> None:
    """Raise an error if the parts are not a cover of the region."""
    d, names = document, document.feature_names
    if not d.values_agree:
        raise _Refused("region", "the values of a category are not those between its ends")
    if len(d.parts_lower) != d.n_parts or not d.n_parts:
        raise _Refused("parts", f"it should have {d.n_parts} parts, but has {len(d.parts_lower)}")
    absent = np.isnan(d.parts_lower)
    for n in range(len(d.missing) + 1):
        for chosen in itertools.combinations(d.missing, n):
            pattern = np.isin(np.arange(len(names)), chosen)
            own = (absent == pattern).all(axis=1)
            left = ~pattern
            low, high = d.parts_lower[own][:, left], d.parts_upper[own][:, left]
            region = d.region_lower[left], d.region_upper[left]
            if not own.any():
                raise _Refused("region", "there is no part for some of the features it may lack")
            differs = (low.min(axis=0) != region[0]) | (high.max(axis=0) != region[1])
            if differs.any():
                name = printable(np.array(names, dtype=object)[left][differs][0])
                raise _Refused(
                    "region",
                    f"its region is not the one that its parts make up: {name} has other ends",
                )
            gap = find_gap(*region, low, high)
            if gap is not None:
                raise _Refused(
                    "parts",
                    f"its parts do not cover the region: {_place(d, left, *gap)} is left out",
                )
    beyond = absent & ~np.isin(np.arange(len(names)), d.missing)
    if beyond.any():
        raise _Refused("region", "its parts lack values that the rows of its region have")


def _place(d: Document, kept: NDArray[np.bool_], low: Array, high: Array) -> str:
    """Where a gap is, by its first feature that does not have the whole range of the region."""
    names = [name for name, keep in zip(d.feature_names, kept, strict=True) if keep]
    whole = (low == d.region_lower[kept]) & (high == d.region_upper[kept])
    j = int(np.argmin(whole))
    ends = f"{exact_number(low[j])} to {exact_number(high[j])}"
    return f"{printable(names[j])} from {ends}"


def _check_witnesses(d: Document, score: Score) -> None:
    for name, row in (("flagged", d.flagged_row), ("passed", d.passed_row)):
        if row is None:
            continue
        inside = (row >= d.region_lower) & (row <= d.region_upper)
        if not (inside | np.isnan(row)).all():
            j = int(np.argmin(inside | np.isnan(row)))
            raise _Refused(
                "witness",
                f"the row that it calls {name} is not in the region: "
                f"{printable(d.feature_names[j])} = {exact_number(row[j])}",
            )
        found = float(score(row[None])[0])
        if d.threshold is None or (found > d.threshold) != (name == "flagged"):
            raise _Refused(
                "witness", f"the row that it calls {name} is not: it scores {exact_number(found)}"
            )


def _check_statement(d: Document) -> None:
    both = d.flagged_row is not None and d.passed_row is not None
    follows = {
        "all flagged": d.threshold is not None and d.lower > d.threshold,
        "none flagged": d.threshold is not None and d.upper <= d.threshold,
        "mixed": both,
        "undecided": True,
    }
    if not follows[d.statement]:
        raise _Refused(
            "statement", f"its bounds and rows do not show what it states, {d.statement!r}"
        )


class _Checked:
    """The parts of a document that have been checked.

    low, high: bounds of their rows; n_splits: how often one was split further.
    """

    def __init__(self, document: Document, reference: ReferenceBounds, score: Score) -> None:
        self._document, self._reference, self._score = document, reference, score
        self.low, self.high, self.n_splits = np.inf, -np.inf, 0

    def check(self, part: int) -> None:
        """Prove the bounds of a part, or raise an error."""
        d = self._document
        boxes = [(d.parts_lower[part], d.parts_upper[part])]
        while boxes:
            lower, upper = boxes.pop()
            low, high = self._bounds(lower, upper)
            if low >= d.lower and high <= d.upper:
                self.low, self.high = min(self.low, low), max(self.high, high)
                continue
            self._refuse_if_disproved(lower, upper)
            halves = self._halves(lower, upper) if self.n_splits < _MOST_SPLITS else None
            if halves is None:
                which, claimed, proven = (
                    ("below", d.lower, low) if low < d.lower else ("above", d.upper, high)
                )
                raise _Refused(
                    "bounds",
                    f"it says that no row scores {which} {exact_number(claimed)}, but only "
                    f"{exact_number(proven)} can be proven, in its part {part + 1}",
                )
            self.n_splits += 1
            boxes += halves

    def _bounds(self, lower: Array, upper: Array) -> tuple[float, float]:
        """Proven bounds of a box, no better than what is claimed needs."""
        d = self._document
        for steps in _STEPS:
            low, high = self._reference.bounds(lower, upper, steps)
            if low >= d.lower and high <= d.upper:
                break
        else:
            if self._reference.is_one_row(lower, upper):
                score = float(self._score(_some_row(lower, upper)[None])[0])
                if low <= score <= high:  # else the scorer itself is wrong
                    margin = _ALONE * (1.0 + score)
                    return max(score - margin, 0.0), score + margin
        return low, high

    def _refuse_if_disproved(self, lower: Array, upper: Array) -> None:
        d, row = self._document, _some_row(lower, upper)
        for j in d.categories:  # a row has one of the values, or a new one
            row[j] = np.floor(row[j])
        inside = (row >= lower) & (row <= upper)
        score = float(self._score(row[None])[0])
        margin = _ALONE * (1.0 + score)
        wrong = score + margin < d.lower or score - margin > d.upper
        if wrong and (inside | np.isnan(row)).all():
            which = "below" if score < d.lower else "above"
            claimed = d.lower if score < d.lower else d.upper
            raise _Refused(
                "bounds",
                f"it says that no row scores {which} {exact_number(claimed)}, but a row of the "
                f"region scores {exact_number(score)}",
            )

    def _halves(self, lower: Array, upper: Array) -> list[tuple[Array, Array]] | None:
        """A box split on the feature with the widest scaled range; None if it cannot be split."""
        for j in self._reference.widest(lower, upper):
            cut = self._reference.middle(lower[j], upper[j], int(j))
            if not lower[j] < cut < upper[j]:
                continue
            left, right = upper.copy(), lower.copy()
            left[j] = right[j] = cut
            return [(lower, left), (right, upper)]
        return None


def _some_row(lower: Array, upper: Array) -> Array:
    """A row in the middle of a box, NaN where it has no value. → (features,)"""
    with np.errstate(invalid="ignore"):
        middle = lower / 2 + upper / 2
    ends = np.where(np.isfinite(lower), lower, np.where(np.isfinite(upper), upper, 0.0))
    row = np.where(np.isfinite(middle), np.clip(middle, lower, upper), ends)
    return np.asarray(np.where(np.isnan(lower), np.nan, row))
