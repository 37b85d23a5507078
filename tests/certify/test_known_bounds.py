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
from diffint.certify.interval_layer import encoder_lipschitz_bound
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
    "kept rows": {"decoder": "certified", "missing": "ignored"},
    "category": {"decoder": "certified"},
}
# For each model the sums over the regions of: the lower and the upper bound; the same after halving
# them; the lower bounds of the second computation without and with a search, and the upper one.
# Then of one region: both bounds after 40 splits, and in how many parts it was tried to decide it;
# and how fast codes can change.
# Of a certified decoder also the sums over rows of these parts of their certificate.
SUMMED = (
    *("bound", "bound_at_row", "image_distance", "distance", "beside_error", "rounding", "slack"),
    *("slack_at_row", "kappa", "code_distance", "out_of_support", "strict", "n_beyond"),
)
KNOWN = {
    "certified": [
        5.85589147919,
        12.5085411608,
        6.09126773133,
        11.8970860941,
        4.8564778686,
        5.88707046304,
        12.4918848397,
        0.452291422582,
        1.2884366747,
        41.0,
        10.3568361029,
        254.217516826,
        254.470546156,
        490.841082995,
        545.427757522,
        17.5939506569,
        0.00177965410566,
        974.128789708,
        624.408037477,
        618.136034407,
        371.185378747,
        280.0,
        15.0,
        0.0,
    ],
    "free": [
        7.51075978665,
        20.6977986925,
        8.36369210979,
        18.7834147167,
        6.59248773648,
        7.55105283884,
        20.2282054971,
        0.600263220833,
        2.30171665765,
        41.0,
        10.3568361029,
    ],
    "differences": [
        6.00817650433,
        11.7721571076,
        6.3756221562,
        11.0797058257,
        5.00295368599,
        6.03278973413,
        11.736073119,
        0.52391745169,
        1.21626472093,
        16.0,
        68.7210417137,
        222.322185256,
        222.611396894,
        427.050419856,
        476.825574653,
        17.5939506569,
        0.00178933494828,
        1008.60683413,
        834.372685339,
        644.266234369,
        518.110124697,
        257.0,
        15.0,
        0.0,
    ],
    "unclipped": [
        6.2418119662,
        220.776521843,
        6.67953909999,
        219.44198421,
        5.74857545952,
        6.28393643582,
        220.365366753,
        0.0345069100003,
        100.0,
        10.0,
        10.3827407919,
    ],
    "kept rows": [
        5.30930820775,
        14.7829625684,
        6.08579469909,
        13.7549585636,
        4.9225139649,
        5.30945138822,
        14.4586461734,
        0.452727574964,
        1.53010100232,
        41.0,
        10.1995480206,
        274.370117223,
        274.499067429,
        451.821699581,
        542.749069578,
        96.918534864,
        0.00231920530714,
        1399.36364547,
        1095.92405421,
        575.32160671,
        457.069133955,
        299.0,
        0.0,
        0.0,
    ],
    "category": [
        4.8787611492,
        27.8267142176,
        5.31945116815,
        26.6869594247,
        4.40103259533,
        4.88358396325,
        27.8319000033,
        0.639482953951,
        3.19849127486,
        4.0,
        9.48116354868,
        485.329685968,
        486.37042162,
        444.660404044,
        521.586129077,
        525.998967892,
        0.00205040178503,
        1284.69409414,
        705.178544648,
        600.5187243,
        327.109020688,
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
    # Nothing that the fit draws stays in the model: all rows are trained on, and none is kept.
    settings = {"scaling": "unit", "calibration": "training", **MODELS[name]}
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
        kept = 0.5 + drawn(np.empty((6 if name in ("kept rows", "category") else 0, 5)), 0.3)
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
            kept_missing=np.zeros(kept.shape, dtype=bool),
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
    lipschitz = encoder_lipschitz_bound(detector.model_)
    sums = np.append(sums, [*searches, lipschitz])
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


@pytest.mark.parametrize(("place", "is_tried"), [(0, True), (199, True), (200, False)])
def test_two_hundred_stored_rows_are_tried(place, is_tried):
    model = detector_of("certified").model_
    sample = np.full((300, 5), 0.5)
    sample[place] = 9.0
    usual, odd = anomaly_scores(PreparedModel(model), sample[[place - 1, place]])
    model = replace(model, calibration=replace(model.calibration, sample=sample))
    region = certify_region(PreparedModel(model), None, None, 0, threshold=(usual + odd) / 2)
    assert region.passed_row.tolist() == [0.5] * 5
    assert (region.flagged_row is not None) == is_tried
