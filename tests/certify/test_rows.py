"""The clipping margin: no row scores below its bound."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from diffint import DiffInt, InputError, ModelFileError
from diffint.certify.rows import lipschitz_bounds
from diffint.engine.reference import intervals as reference

from ..conftest import QUICK, make_rows
from ..persist.forging import forge


def probes(x: np.ndarray, n_rows: int = 600, seed: int = 0) -> np.ndarray:
    """Rows like those of x, rows far outside, and rows with missing values."""
    rng = np.random.default_rng(seed)
    center, spread = np.nanmean(x, axis=0), np.nanstd(x, axis=0) + 1e-3
    reach = 10.0 ** rng.uniform(-1, 3, size=(n_rows, 1))
    rows = center + spread * reach * rng.standard_normal((n_rows, x.shape[1]))
    rows[::5][rng.random(rows[::5].shape) < 0.4] = np.nan
    rows[3] = np.nan
    return np.vstack([x, rows])


@pytest.fixture(scope="module")
def certified(rows):
    return DiffInt(**QUICK, decoder="certified").fit(rows)


@pytest.mark.filterwarnings("ignore:.*no value:diffint.core.errors.InputWarning")
@pytest.mark.parametrize("error", ["clipped", "unclipped"])
@pytest.mark.parametrize("scaling", ["adaptive", "minmax", "unit", "standard", "none"])
@pytest.mark.parametrize("temperature", [0.02, 0.1, 1.0])
def test_no_row_scores_below_its_bound(scaling, error, temperature):
    x = np.random.default_rng(0).normal(size=(150, 4))
    x[::9, 1] = np.nan
    x[:, 2] = 7.0
    settings = {"scaling": scaling, "error": error, "temperature": temperature}
    detector = DiffInt(**QUICK, decoder="certified", **settings).fit(x)
    new = probes(x)
    certificate = detector.certify(new)
    np.testing.assert_array_equal(certificate.score, detector.anomaly_score(new))
    assert (certificate.bound <= certificate.score).all()
    assert (certificate.bound_at_row <= certificate.score).all()
    assert (certificate.bound <= certificate.bound_at_row).all()
    assert (certificate.bound >= 0).all()
    assert (certificate.code_distance <= certificate.kappa + 1e-9).all()


@pytest.mark.parametrize("n_features", [1, 3, 70])
@pytest.mark.parametrize("units", [1, 2, 30])
def test_other_sizes(n_features, units):
    x = (
        make_rows(120, n_features, seed=1)
        if n_features < 10
        else np.random.default_rng(1).normal(size=(120, n_features))
    )
    detector = DiffInt(**{**QUICK, "n_units": units, "n_members": 3}, decoder="certified").fit(x)
    certificate = detector.certify(probes(x))
    assert (certificate.bound <= certificate.score).all()
    assert (certificate.bound_at_row <= certificate.score).all()


def test_bounds_of_distant_rows_are_large(certified, rows):
    far = rows[:100] + 20 * np.ptp(rows, axis=0)
    certificate = certified.certify(far)
    assert (certificate.bound > 0.5 * certificate.score).all()
    assert certificate.bound_at_row.mean() > 0.8 * certificate.score.mean()


def test_one_unit_gives_equality(rows):
    detector = DiffInt(**{**QUICK, "n_units": 1}, decoder="certified").fit(rows)
    certificate = detector.certify(rows)
    np.testing.assert_allclose(certificate.bound, certificate.score, rtol=1e-4, atol=1e-6)
    assert (certificate.bound <= certificate.score).all()


def test_a_row_with_a_single_distant_value(certified, rows):
    x = rows[:50].copy()
    x[:, 1:] = np.nan
    x[:, 0] = 1e9
    certificate = certified.certify(x)
    assert (certificate.bound <= certificate.score).all()
    assert (certificate.bound > 0).all()


def test_parts_add_up_to_the_bound(certified, rows):
    model = certified.model_
    certificate = certified.certify(probes(rows))
    rest = certificate.distance - certificate.slack - certificate.rounding
    bound = (np.maximum(rest, certificate.image_distance) + certificate.beside_error).mean(axis=0)
    np.testing.assert_allclose(certificate.bound, bound)
    assert certificate.rounding.max() < 1e-4 * (1 + certificate.score.max())
    for m, member in enumerate(model.members):
        weights = member.decoder.hidden_weight, member.decoder.output_weight
        exact = np.prod([np.linalg.norm(w.astype(float), 2) for w in weights])
        assert exact <= certificate.lipschitz_bound[m] <= exact * (1 + 1e-9)
        assert np.prod(lipschitz_bounds(member.decoder)) == certificate.lipschitz_bound[m]


def test_pattern_and_code_distance_match_their_definitions(certified, rows):
    new = probes(rows)
    certificate = certified.certify(new)
    temperature = certified.temperature
    for m, member in enumerate(certified.model_.members):
        x = member.scaler.transform(new)[0].astype(float)
        lower, upper = member.lower.astype(float), member.upper.astype(float)
        above, below = x > upper.max(axis=0) + 0.2, x < lower.min(axis=0) - 0.2
        np.testing.assert_array_equal(certificate.pattern[m], above.astype(int) - below)
        logits = (above.astype(float) @ upper.T - below.astype(float) @ lower.T) / temperature
        logs = reference.log_memberships(x, lower, upper, temperature)
        clamped = (np.where(np.isnan(x)[:, None], 0, logs) <= np.log(1e-8)).all(axis=1)
        plain = ~(clamped & (above | below)).any(axis=1)  # no feature beyond the clamp
        empty = np.exp(logits - logits.max(axis=1, keepdims=True))
        empty /= empty.sum(axis=1, keepdims=True)
        codes = reference.codes(x, lower, upper, temperature)
        distance = np.linalg.norm(codes - empty, axis=1)
        np.testing.assert_allclose(certificate.code_distance[m][plain], distance[plain], atol=1e-9)


def test_flags_match_their_definitions(certified, rows):
    new = probes(rows)
    certificate = certified.certify(new)
    beta = 1 / (1 + np.exp(0.2 / certified.temperature))
    out, strict, envelope = [], [], []
    for member in certified.model_.members:
        x = member.scaler.transform(new)[0].astype(float)
        lower, upper = member.lower.astype(float), member.upper.astype(float)
        logs = reference.log_box_memberships(x, lower, upper, certified.temperature)
        out.append((logs < np.log(beta)).all(axis=1))
        active = member.mean_membership < 0.9
        value = x[:, None, :]
        beyond = (value < lower - 0.2) | (value > upper + 0.2)
        hit = (beyond | ~active).all(axis=2) & active.any(axis=1)
        strict.append(hit.any(axis=1))
        side = (x > upper.max(axis=0) + 0.2) | (x < lower.min(axis=0) - 0.2)
        constrained = active.any(axis=0)
        envelope.append((side | ~constrained).all(axis=1) & constrained.any())
    np.testing.assert_array_equal(certificate.out_of_support, np.all(out, axis=0))
    np.testing.assert_array_equal(certificate.strict, np.all(strict, axis=0))
    np.testing.assert_array_equal(certificate.strict_envelope, np.all(envelope, axis=0))


@pytest.mark.parametrize(("active_threshold", "margin"), [(0.7, 0.2), (0.95, 0.05), (0.9, 1.0)])
def test_other_thresholds_and_margins(certified, rows, active_threshold, margin):
    new = probes(rows)
    given = {"active_threshold": active_threshold, "margin": margin}
    certificate = certified.certify(new, **given)
    assert (certificate.bound <= certificate.score).all()
    assert (certificate.bound_at_row <= certificate.score).all()
    strict = []
    for m, member in enumerate(certified.model_.members):
        x = member.scaler.transform(new)[0].astype(float)
        lower, upper = member.lower.astype(float), member.upper.astype(float)
        active = member.mean_membership < active_threshold
        value = x[:, None, :]
        beyond = (value < lower - margin) | (value > upper + margin)
        strict.append(((beyond | ~active).all(axis=2) & active.any(axis=1)).any(axis=1))
        above, below = x > upper.max(axis=0) + margin, x < lower.min(axis=0) - margin
        np.testing.assert_array_equal(certificate.pattern[m], above.astype(int) - below)
        assert certificate.n_vacuous_units[m] == (~active.any(axis=1)).sum()
    np.testing.assert_array_equal(certificate.strict, np.all(strict, axis=0))
    # The rates in the model are of the usual threshold and margin.
    assert certificate.inlier_rates is None
    assert certificate.rates()["inlier_rate"].isna().all()


def test_the_usual_threshold_and_margin_are_the_papers(certified, rows):
    usual, given = (
        certified.certify(rows),
        certified.certify(rows, active_threshold=0.9, margin=0.2),
    )
    np.testing.assert_array_equal(usual.bound, given.bound)
    assert (usual.active_threshold, usual.margin) == (0.9, 0.2)
    assert given.inlier_rates == usual.inlier_rates


@pytest.mark.parametrize(
    "given", [{"margin": 0.0}, {"margin": -1}, {"margin": np.inf}, {"active_threshold": np.nan}]
)
def test_impossible_thresholds_and_margins(certified, rows, given):
    with pytest.raises(InputError, match=next(iter(given))):
        certified.certify(rows, **given)


def test_inlier_rates_are_measured_on_the_training_rows(certified, rows, tmp_path):
    certificate = certified.certify(rows)
    table = certificate.rates().set_index("flag")
    np.testing.assert_allclose(table["share"], table["inlier_rate"])
    assert certificate.inlier_rates.n_rows == len(rows)
    certified.save(tmp_path / "m")
    assert DiffInt.load(tmp_path / "m").certify(rows).inlier_rates == certificate.inlier_rates


def test_a_model_file_without_rates(certified, rows):
    from dataclasses import replace

    from diffint.certify.rows import certify
    from diffint.score.prepared import PreparedModel

    certificate = certify(PreparedModel(replace(certified.model_, flag_rates=None)), rows + 1e6)
    assert certificate.rates()["inlier_rate"].isna().all()
    assert "unknown for training rows" in certificate.text(0)


@pytest.mark.parametrize(
    "change",
    [
        lambda rates: [],
        lambda rates: {"n_rows": 3},
        lambda rates: {**rates, "n_rows": 0},
        lambda rates: {**rates, "strict": 2.0},
        lambda rates: {**rates, "strict": float("nan")},
    ],
)
def test_a_file_with_invalid_rates_does_not_load(certified, tmp_path, change):
    path = tmp_path / "m"
    certified.save(path)
    forge(path, describe=lambda m: m.update(flag_rates=change(m["flag_rates"])))
    with pytest.raises(ModelFileError, match="description is damaged"):
        DiffInt.load(path)


def test_certificates_do_not_depend_on_threads_or_other_rows(certified):
    x = make_rows(5_000, seed=3)
    whole = certified.set_params(n_jobs=2).certify(x)
    single = certified.set_params(n_jobs=1).certify(x[4_000:4_100])
    np.testing.assert_allclose(whole.bound[4_000:4_100], single.bound, rtol=1e-12, atol=1e-15)


def test_frame_and_text(rows):
    frame = pd.DataFrame(rows, columns=list("abcde"))
    detector = DiffInt(**QUICK, decoder="certified").fit(frame)
    far = frame.iloc[:3] + 1e7
    certificate = detector.certify(far)
    table = certificate.to_frame()
    assert list(table.columns[:4]) == ["row", "score", "bound", "bound_at_row"]
    assert len(table) == len(certificate) == 3
    for name in ("distance", "beside_error", "slack", "slack_at_row", "rounding"):
        np.testing.assert_array_equal(table[name], getattr(certificate, name).mean(axis=0))
    for name in ("n_beyond", "out_of_support", "strict", "strict_envelope"):
        np.testing.assert_array_equal(table[name], getattr(certificate, name))
    text = certificate.text(0)
    assert "proven to be at least" in text
    assert "% of the training rows" in text
    with pytest.raises(ValueError, match="read-only"):
        certificate.bound[0] = 1.0


def test_numbers_in_the_text_are_proven(certified, rows):
    certificate = certified.certify(probes(rows, 60))
    for row in range(len(certificate)):
        text = certificate.text(row).replace(",", "")
        bounds = re.search(r"at least (\S+) from its features alone \((\S+) using", text)
        assert float(bounds[1]) <= certificate.bound[row]
        assert float(bounds[2]) <= certificate.bound_at_row[row]
        error = re.search(r"its error is at least (\S+)\.", text)
        assert float(error[1]) <= certificate.bound[row]
        parts = re.search(r"Its distance .* is (\S+); up to (\S+) of .* bound (\S+)\)\.", text)
        if parts is None:
            continue
        assert float(parts[1]) <= certificate.distance[:, row].mean()
        assert float(parts[2]) >= certificate.slack[:, row].mean()
        assert float(parts[3]) >= certificate.lipschitz_bound.mean()


def test_text_of_one_row_and_of_all_rows(certified, rows):
    certificate = certified.certify(rows[:3])
    texts = [certificate.text(row) for row in range(3)]
    assert certificate.text() == "\n\n".join(texts)
    assert certificate.text(-1) == texts[2]
    assert texts[2].startswith("Row 2: ")
    with pytest.raises(InputError, match="row=3 does not exist; 3 rows certified"):
        certificate.text(3)
    with pytest.raises(InputError, match=r"row=0\.5 must be a whole number"):
        certificate.text(0.5)


def test_bad_input(fitted, certified, rows):
    with pytest.raises(InputError, match=r'DiffInt\(decoder="certified"\)'):
        fitted.certify(rows)
    with pytest.raises(NotFittedError):
        DiffInt(decoder="certified").certify(rows)
    with pytest.raises(InputError, match="infinity"):
        certified.certify(np.full((2, 5), np.inf))
    with pytest.raises(ValueError, match="features"):
        certified.certify(rows[:, :3])
