"""What a fitted detector can prove: bounds on scores of rows and regions, certain thresholds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

from .core.checks import resolve_jobs
from .core.row_labels import index_of
from .fitted_detector import FittedDetector
from .score.scoring import anomaly_scores

if TYPE_CHECKING:
    from .certify.certain_threshold import CertainThreshold
    from .certify.regions import RegionCertificate
    from .certify.rows import Certificate
    from .certify.verification import Verification


class CertifyingDetector(FittedDetector):
    """A fitted detector with proofs."""

    def certify(self, X: Any, *, active_threshold: float = 0.9, margin: float = 0.2) -> Certificate:
        """Proven lower bounds on the scores of rows; requires ``decoder="certified"``.

        Parameters
        ----------
        X : table of shape (rows, features)
        active_threshold : float, default=0.9
            An interval is active if the mean membership of the training rows is below it (the
            paper's θ). Only flags depend on it.
        margin : float, default=0.2
            How far beyond an interval a value must be to count as outside, in scaled units (the
            paper's η). The bounds hold for every margin.

        Returns
        -------
        certificate : Certificate
            `bound`, `bound_at_row`, their parts and flags; `to_frame()`, `rates()`, `text()`.
        """
        from .certify.rows import certify

        return certify(
            self.prepared,
            self._read(X),
            resolve_jobs(self.n_jobs),
            index_of(X),
            active_threshold=active_threshold,
            margin=margin,
        )

    def certify_region(
        self,
        lower: Any,
        upper: Any,
        *,
        splits: int = 32,
        seconds: float | None = None,
        missing: Sequence[str] = (),
        aim: str = "verdict",
        progress: Callable[[int, int, float], None] | None = None,
    ) -> RegionCertificate:
        """Proven bounds on the score of every row in a region, with any decoder.

        They are much tighter with ``decoder="certified"``.

        Parameters
        ----------
        lower, upper : array-like, mapping or None
            Ends of the region in original units: one per feature, or a mapping from feature names
            to ends. Features not in the mapping are unbounded; with None, all are. An end of a
            category is one of its values.
        splits : int, default=32
            How many times a part of the region may be halved to tighten the bounds.
        seconds : float, default=None
            How long that may take.
        missing : list of str, default=()
            Features that may be missing as well; all others have a value.
        aim : {"verdict", "bounds"}, default="verdict"
            "verdict" ends as soon as the region is decided; "bounds" uses all splits and seconds
            to tighten both bounds.
        progress : callable, default=None
            Called now and then with the splits so far, the parts that are not decided, and seconds.

        Returns
        -------
        certificate : RegionCertificate
            `lower`, `upper` (bounds on the score), `verdict` ("all flagged", "none flagged",
            "mixed" with `rows` as witnesses, or "undecided" with the parts that are), `text()`.
        """
        from .certify.regions import certify_region

        certificate = certify_region(
            self.prepared,
            lower,
            upper,
            splits,
            seconds=seconds,
            missing=missing,
            aim=aim,
            threshold=-self.offset_,
            progress=progress,
        )
        rule = self.rule
        return replace(certificate, false_positive_rate=rule.rate, confidence=rule.confidence)

    def certain_threshold(
        self,
        feature: str,
        side: str = "above",
        *,
        lower: Mapping[str, Any] | None = None,
        upper: Mapping[str, Any] | None = None,
        splits: int = 32,
        seconds: float | None = None,
    ) -> CertainThreshold:
        """From which value of one feature on every row is certain to be flagged.

        Parameters
        ----------
        feature : str
        side : {"above", "below"}, default="above"
            Whether large or small values are looked at.
        lower, upper : mapping from feature names to ends, default=None
            Ends of other features; all others are unbounded.
        splits, seconds : of each region that is tried, about 13
            As in `certify_region`.

        Returns
        -------
        found : CertainThreshold
            `value` (None if it is proven for none), `certificate`, `not_proven`, `passed_row`,
            `text()`.
        """
        from .certify.certain_threshold import certain_threshold

        return certain_threshold(
            self.prepared,
            feature,
            side,
            lower=lower,
            upper=upper,
            splits=splits,
            seconds=seconds,
            threshold=-self.offset_,
        )

    def verify(
        self,
        certificate: RegionCertificate | str | bytes | Mapping[str, Any],
        *,
        progress: Callable[[int, int, float], None] | None = None,
    ) -> Verification:
        """Check a certificate of a region about this model again, by independent code.

        Parameters
        ----------
        certificate : RegionCertificate, str, bytes or mapping
            What `certify_region` returned, or its JSON document (`to_json`, `to_dict`).
        progress : callable, default=None
            Called after each part with the parts checked, all parts, and seconds.

        Returns
        -------
        verification : Verification
            `confirmed`, or the `reason` why it is refused; `text()`.
        """
        from .certify.verification import verify

        check_is_fitted(self, "model_")
        if hasattr(certificate, "to_json"):
            certificate = certificate.to_json()
        return verify(certificate, self.model_, partial(anomaly_scores, self.prepared), progress)
