"""Bounds of made-up models: they contain all scores, and are as tight as they have been so far.

No definition says how tight bounds are. These numbers are to be replaced if bounds become tighter,
and only then.
"""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from diffint import DiffInt
from diffint.certify.branch_and_bound import Parts
from diffint.certify.reference_bounds import ReferenceBounds
from diffint.certify.regions import certify_region
from diffint.certify.rows import certify
from diffint.score.prepared import PreparedModel
from diffint.score.scoring import anomaly_scores

from ..conftest import QUICK

MODELS = {
    "certified": {"decoder": "certified"},
    "free": {},
    "differences": {"decoder": "certified", "temperature": 0.02, "error": "clipped"},
    "unclipped": {"scaling": "standard"},
    "kept rows": {"decoder": "certified", "kept_rows": 6, "missing": "ignored"},
    "category": {"decoder": "certified", "kept_rows": 6},
}
# For each model the sums over the regions of: the lower and the upper bound; the same after halving
# them; the lower bounds of the second computation without and with a search, and the upper one.
# Then of one region: both bounds after 40 splits, and in how many parts it was tried to decide it.
# Of a certified decoder also the sums over rows of these parts of their certificate.
SUMMED = (
    *("bound", "bound_at_row", "image_distance", "distance", "beside_error", "rounding", "slack"),
    *("slack_at_row", "kappa", "code_distance", "out_of_support", "strict", "n_beyond"),
)
KNOWN = {
    "certified": [
        5.83390559562,
        12.5039705422,
        6.0672594199,
        11.8918224673,
        4.8346246738,
        5.86525318223,
        12.487836671,
        0.449843368806,
        1.28699100736,
        41.0,
        254.28346814,
        254.53649747,
        490.972985623,
        545.598417934,
        17.5939506569,
        0.00177965409799,
        974.128789708,
        624.282063697,
        618.136034407,
        371.117739724,
        280.0,
        15.0,
        0.0,
    ],
    "free": [
        7.49308244743,
        20.6978235747,
        8.3441110146,
        18.7923745122,
        6.57358359929,
        7.53314018676,
        20.2296616218,
        0.597121408879,
        2.31020792238,
        41.0,
    ],
    "differences": [
        5.99670386457,
        11.7657046526,
        6.36452346727,
        11.0690441146,
        4.99139773823,
        6.02168417141,
        11.7294233687,
        0.523718181241,
        1.21664204392,
        16.0,
        222.227341578,
        222.516553216,
        426.860732499,
        476.678490765,
        17.5939506569,
        0.00178933493566,
        1008.60683413,
        834.550030411,
        644.266234369,
        518.206739404,
        257.0,
        15.0,
        0.0,
    ],
    "unclipped": [
        6.1209560447,
        220.647481937,
        6.55574935168,
        219.311844076,
        5.63506978291,
        6.16084284591,
        220.230813817,
        0.0275685717206,
        100.0,
        8.0,
    ],
    "kept rows": [
        5.28643859358,
        14.7706575669,
        6.05915184235,
        13.7386773793,
        4.90164683868,
        5.28658179265,
        14.4465480247,
        0.449877654544,
        1.52851134848,
        41.0,
        274.685834692,
        274.814784898,
        451.950421673,
        542.911890236,
        97.4212477108,
        0.00231920530549,
        1399.36364547,
        1096.72076005,
        575.32160671,
        457.451912314,
        299.0,
        0.0,
        0.0,
    ],
    "category": [
        4.85183511589,
        27.2518732258,
        5.29360119791,
        25.9987570439,
        4.3726379292,
        4.85555348612,
        27.2575409756,
        0.636132239503,
        3.11554358405,
        1.0,
        472.472010301,
        473.508821997,
        445.077077849,
        522.043453231,
        499.866942752,
        0.00205040179317,
        1284.69409414,
        705.284826907,
        600.5187243,
        327.162602819,
        299.0,
        0.0,
        0.0,
    ],
}


def detector_of(name):
    """Three units, four hidden values and five features, of which one may be a category."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(np.round(rng.uniform(0, 1, (60, 5)), 3), columns=list("abcde"))
    table.loc[[0, 1]] = [[0.0] * 5, [1.0] * 5]
    table["c"] = 0.5
    if name == "category":
        table["e"] = np.array(["x", "y", "z"])[(3 * table["a"].to_numpy() - 1e-9).astype(int)]
    else:
        table.loc[::7, "b"] = np.nan
    settings = {"scaling": "unit", "kept_rows": 0, **MODELS[name]}
    members = {"n_members": 2, "n_units": 3, "hidden_width": 4, "epochs": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        detector = DiffInt(**{**QUICK, **settings, **members}).fit(table)

    def drawn(like, size):
        return np.float32(np.round(size * rng.normal(size=like.shape), 3))

    def made(member):
        decoder = member.decoder
        found = {
            name: drawn(getattr(decoder, name), 0.7)
            for name in ("hidden_weight", "hidden_bias", "output_weight", "output_bias")
        }
        found |= {name: 1 + drawn(getattr(decoder, name), 0.2) for name in ("norm_gain",)}
        found["norm_shift"] = 0.5 + drawn(decoder.norm_shift, 0.2)
        kept = 0.5 + drawn(member.kept_rows, 0.3)
        found_with = member.associations
        if name == "category":
            weight = 0.1 + 0.2 * np.arange(len(found_with.columns))
            is_category = np.isin(found_with.columns, found_with.categories)
            unseen = np.where(is_category, 2.0, 0.0)
            found_with = replace(found_with, weight=weight, unseen=unseen)
        counts = {}
        if settings.get("missing") != "ignored":
            counts = {
                "missing_error": np.round(rng.uniform(0, 1, 5), 3),
                "missing_surprise": np.round(rng.uniform(0, 1, 5), 3),
            }
        return replace(
            member,
            center=0.5 + drawn(member.center, 0.3),
            half_width=np.abs(drawn(member.half_width, 0.2)) + np.float32(0.05),
            decoder=replace(decoder, **found),
            kept_rows=kept,
            distance_weight=0.3 if len(kept) else 0.0,
            associations=found_with,
            **counts,
        )

    detector.model_ = replace(detector.model_, members=tuple(map(made, detector.model_.members)))
    return detector


def regions(name):
    """Narrow and wide ones, some without an end, without values, or with one value only."""
    rng = np.random.default_rng(1)
    for width in (1e-6, 1e-3, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0):
        lower = np.round(rng.uniform(0, 1, 5), 3) - width / 2
        upper = lower + width
        lower[2] = upper[2] = 0.5
        if width in (0.1, 0.5):
            upper[rng.integers(4)] = np.inf
            lower[rng.integers(4)] = -np.inf
        if width in (0.05, 0.3) and name != "category":
            lower[1] = upper[1] = np.nan
        if width in (0.01, 0.2):
            lower[2] -= 0.1
        if name == "category":
            lower[4], upper[4] = sorted(rng.integers(0, 4, 2))
        yield width, lower, upper


def found(detector, name):
    """The numbers of `KNOWN`, while scores of rows in the regions are seen to be inside."""
    reference, sums = ReferenceBounds(detector.model_), np.zeros(7)
    rng = np.random.default_rng(2)
    prepared = PreparedModel(detector.model_)
    for width, lower, upper in regions(name):
        quick = Parts.bounded(prepared, lower[None], upper[None])
        first, searched = reference.bounds(lower, upper, 0), reference.bounds(lower, upper, 8)
        parts, _ = quick.halves(prepared)
        ends = np.nan_to_num(np.clip([lower, upper], -3.0, 4.0))
        rows = rng.uniform(*ends, (300, 5))
        rows[:100] = np.where(rng.random((100, 5)) < 0.5, *ends)
        rows[:, np.isnan(lower)] = np.nan
        if name == "category":
            rows[:, 4] = np.round(rows[:, 4])
        scores = anomaly_scores(prepared, rows)
        for low, high in (np.ravel(quick.score), first, searched):
            assert low <= scores.min()
            assert scores.max() <= high
        halves = parts.score if len(parts) else quick.score
        ends = *np.ravel(quick.score), halves[0].min(), halves[1].max(), first[0], *searched
        sums += np.minimum(ends, 100.0)  # without an end, errors may have none
        if width == 0.5:
            whole, threshold = (
                certify_region(prepared, lower, upper, 40, aim="bounds"),
                np.mean(first),
            )
            decided = certify_region(prepared, lower, upper, 40, threshold=threshold)
            searches = whole.lower, min(whole.upper, 100.0), decided.n_boxes
    sums = np.append(sums, searches)
    if detector.model_.config.decoder != "certified":
        return sums
    if name != "category":
        rows[::5, 1] = np.nan
    rows[7] = np.nan
    certificate = certify(prepared, rows)
    return np.append(sums, [getattr(certificate, name).sum() for name in SUMMED])


@pytest.mark.parametrize("name", MODELS)
def test_bounds_hold_and_are_as_tight_as_before(name):
    np.testing.assert_allclose(found(detector_of(name), name), KNOWN[name], rtol=1e-9)


def test_rows_that_scale_to_the_same_values_may_be_in_different_bins():
    """Between the largest number of one bin and the smallest of the next: two rows, two scores."""
    detector = detector_of("category")
    prepared = PreparedModel(detector.model_)
    edges = detector.model_.members[0].associations.edges[0]
    n_different = 0
    for edge in edges[~np.isnan(edges)]:
        ends = [np.array([[end, 0.4, 0.5, 0.6, 1.0]]) for end in (np.nextafter(edge, 0), edge)]
        scores = anomaly_scores(prepared, np.concatenate(ends))
        score = Parts.bounded(prepared, *ends).score
        n_different += abs(scores[0] - scores[1]) > 1e-3
        assert score.low <= scores.min()
        assert scores.max() <= score.high
    assert n_different
