"""Certificates as documents: what is proven is confirmed, and what was changed is refused."""

import copy
import json
import re

import numpy as np
import pandas as pd
import pytest

from diffint import DiffInt, InputError
from diffint.certify.coverage import find_gap
from diffint.certify.reference_bounds import ReferenceBounds

from ..conftest import QUICK, make_rows
from .test_regions import random_region, rows_in


@pytest.fixture(scope="module")
def detector() -> DiffInt:
    return DiffInt(**QUICK, decoder="certified", false_positive_rate=0.05).fit(make_rows())


@pytest.fixture(scope="module")
def flagged(detector) -> dict:
    """A region far away: all of its rows are flagged."""
    row = make_rows().mean(axis=0) + 6 * make_rows().std(axis=0)
    return detector.certify_region(row, 1.2 * row, splits=6, aim="bounds").to_dict()


@pytest.fixture(scope="module")
def mixed(detector) -> dict:
    found = detector.certify_region({"x0": 90.0}, {"x0": 200.0}, splits=6)
    assert found.verdict == "mixed"
    return found.to_dict()


def changed(document: dict, path: str, value) -> dict:
    document = copy.deepcopy(document)
    *places, last = path.split(".")
    inner = document
    for place in places:
        inner = inner[int(place) if isinstance(inner, list) else place]
    last = int(last) if isinstance(inner, list) else last
    inner[last] = value(inner[last]) if callable(value) else value
    return document


def reason(detector: DiffInt, document: dict) -> str | None:
    return detector.verify(json.dumps(document)).reason


def test_certificates_of_every_verdict_are_confirmed(detector, flagged, mixed):
    row = np.median(make_rows(), axis=0)
    passed = detector.certify_region(row - 1e-3, row + 1e-3)
    assert (flagged["statement"], passed.verdict) == ("all flagged", "none flagged")
    for certificate in (flagged, mixed, passed, passed.to_json(), passed.to_dict()):
        found = detector.verify(certificate)
        assert found.confirmed
        assert found.lower <= found.upper
        assert found.to_dict()["upper"] == found.upper
        assert found.text().startswith("Confirmed")


def test_an_unbounded_region_and_one_row_are_confirmed(detector):
    row = make_rows()[0]
    for certificate in (detector.certify_region(None, None), detector.certify_region(row, row)):
        assert detector.verify(certificate).confirmed


def test_the_text_keeps_every_digit_and_infinite_ends(detector, tmp_path):
    certificate = detector.certify_region({"x1": 0.1 + 0.2}, None, splits=3)
    certificate.save(tmp_path / "region.json")
    written = json.loads((tmp_path / "region.json").read_text())
    assert written == certificate.to_dict()
    text = certificate.to_json()
    assert text.startswith('{\n "diffint_certificate": ')
    assert text.count("\n   [") == 2 * certificate.n_boxes  # a line for each part
    assert written["region"] == [{"feature": "x1", "lower": 0.1 + 0.2, "upper": "inf"}]
    assert written["parts"]["count"] == certificate.n_boxes == len(written["parts"]["lower"])


def test_a_loaded_model_confirms_it(detector, flagged, tmp_path):
    detector.save(tmp_path / "model.diffint")
    assert DiffInt.load(tmp_path / "model.diffint").verify(flagged).confirmed


@pytest.mark.parametrize(
    ("why", "path", "value"),
    [
        ("version", "diffint_certificate", 2),
        ("version", "diffint_certificate", True),
        ("version", "versions.diffint", "9.9"),
        ("version", "method", "guess"),
        ("model", "model.sha256", "0" * 64),
        ("threshold", "threshold.value", lambda t: t * 0.99),
        ("threshold", "threshold.value", lambda t: np.nextafter(t, 0)),
        ("threshold", "threshold.false_positive_rate", 0.2),
        ("threshold", "threshold.false_positive_rate", None),
        ("threshold", "threshold.confidence", 0.99),
        ("region", "region.0.lower", lambda end: np.nextafter(end, -np.inf)),
        ("region", "region.0.upper", lambda end: end + 1.0),
        ("region", "region.0.upper", "inf"),
        ("region", "missing", ["x0"]),
        ("parts", "parts.count", lambda n: n + 1),
        ("bounds", "bounds.lower", lambda bound: bound * 1.3),
        ("bounds", "bounds.upper", lambda bound: bound * 0.7),
        ("statement", "statement", "none flagged"),
        ("statement", "statement", "mixed"),
    ],
)
def test_a_changed_certificate_is_refused_with_its_reason(detector, flagged, why, path, value):
    found = detector.verify(json.dumps(changed(flagged, path, value)))
    assert found.reason == why
    assert why in found.text()
    assert found.to_dict()["confirmed"] is False


def test_a_part_that_is_left_out_is_a_gap(detector, flagged):
    for place in range(flagged["parts"]["count"]):
        document = copy.deepcopy(flagged)
        for which in ("lower", "upper"):
            del document["parts"][which][place]
        assert reason(detector, document) == "parts"
        document["parts"]["count"] -= 1
        assert reason(detector, document) in ("parts", "region")


def test_a_part_that_is_made_smaller_is_a_gap(detector, flagged):
    lower, upper = (np.array(flagged["parts"][which]) for which in ("lower", "upper"))
    inner = np.argwhere(upper < upper.max(axis=0))  # ends that are not those of the region
    for i, j in inner[:5]:
        smaller = changed(flagged, f"parts.upper.{i}.{j}", np.nextafter(upper[i, j], -np.inf))
        parts = [np.array(smaller["parts"][which]) for which in ("lower", "upper")]
        gap = find_gap(lower.min(axis=0), upper.max(axis=0), *parts)
        # The next part begins at the same value, unless the boxes around it cover this one too.
        assert reason(detector, smaller) == ("parts" if gap else None)
        smaller = changed(flagged, f"parts.upper.{i}.{j}", (lower[i, j] + upper[i, j]) / 2)
        assert reason(detector, smaller) == "parts"


@pytest.mark.parametrize("which", ["flagged", "passed"])
def test_a_changed_witness_is_refused(detector, mixed, which):
    other = "passed" if which == "flagged" else "flagged"
    outside = changed(mixed, f"witnesses.{which}.x0", 500.0)
    assert reason(detector, outside) == "witness"
    wrong = changed(mixed, f"witnesses.{which}", mixed["witnesses"][other])
    assert reason(detector, wrong) == "witness"
    assert reason(detector, changed(mixed, f"witnesses.{which}", None)) == "statement"


@pytest.mark.parametrize(("rate", "confidence"), [(2.0, None), (0.0, 0.9), (0.05, 1.0)])
def test_rates_that_are_not_possible(detector, flagged, rate, confidence):
    document = changed(flagged, "threshold.false_positive_rate", rate)
    found = detector.verify(changed(document, "threshold.confidence", confidence))
    assert found.detail == "its false-positive rate or confidence is not possible"


@pytest.fixture(scope="module")
def narrow(detector) -> dict:
    row = make_rows().mean(axis=0) + 6 * make_rows().std(axis=0)
    return detector.certify_region(row - 1e-3, row + 1e-3, splits=0).to_dict()


@pytest.mark.parametrize(("which", "factor"), [("lower", 1.1), ("upper", 0.9)])
def test_bounds_that_a_row_disproves(detector, narrow, which, factor):
    row = (make_rows().mean(axis=0) + 6 * make_rows().std(axis=0))[None]
    found = detector.verify(changed(narrow, f"bounds.{which}", lambda bound: bound * factor))
    side, score = {"lower": "below", "upper": "above"}[which], detector.anomaly_score(row)[0]
    says, proves = found.detail.split(", but a row of the region scores ")
    assert says.startswith(f"it says that no row scores {side} ")
    assert float(proves) == pytest.approx(score, abs=1e-9)


@pytest.mark.parametrize("which", ["lower", "upper"])
def test_bounds_that_are_not_disproved_but_cannot_be_proven(detector, which):
    """The score of the only row: the same row may score a little more or less beside others."""
    row = make_rows().mean(axis=0) + 6 * make_rows().std(axis=0)
    document = detector.certify_region(row, row).to_dict()
    score = float(detector.anomaly_score(row[None])[0])
    found = detector.verify(changed(document, f"bounds.{which}", score))
    assert found.reason == "bounds"
    assert re.search("but only [0-9.]+ can be proven, in its part 1$", found.detail)


def test_another_model_is_refused(detector, flagged):
    other = DiffInt(**QUICK, decoder="certified", false_positive_rate=0.05).fit(make_rows(seed=1))
    assert reason(other, flagged) == "model"


@pytest.mark.parametrize(
    "part", ["kept_rows", "kept_weight", "missing_error", "distance_weight", "scaler", "decoder"]
)
def test_every_part_of_the_model_that_scores_depend_on_is_in_its_checksum(detector, part):
    from dataclasses import fields, replace

    def moved(value):
        if isinstance(value, (float, np.ndarray)):
            return value + np.asarray(1e-3, dtype=getattr(value, "dtype", float))
        name = fields(value)[0].name
        return replace(value, **{name: moved(getattr(value, name))})

    model = detector.model_
    member = replace(model.members[0], **{part: moved(getattr(model.members[0], part))})
    assert replace(model, members=(member, *model.members[1:])).identity != model.identity
    assert replace(model, members=model.members).identity == model.identity


@pytest.mark.parametrize(
    "content",
    [
        *("", "[]", "{}", "not json", '{"diffint_certificate": 1}', "[" * 100_000),
        '{"diffint_certificate": 1, "diffint_certificate": 1}',
        *('["diffint_certificate"]', '"diffint_certificate"', "7"),
    ],
)
def test_what_is_not_a_certificate_is_an_error(detector, content):
    with pytest.raises(InputError, match="not a certificate"):
        detector.verify(content)


@pytest.mark.parametrize(
    ("path", "name"), [("statement", "'statement'"), ("bounds.lower", "'bounds.lower'")]
)
def test_an_error_names_what_is_wrong(detector, flagged, path, name):
    with pytest.raises(InputError, match=f"{name} cannot be true"):
        detector.verify(changed(flagged, path, True))


def test_wrong_types_are_an_error(detector, flagged):
    def paths(value, path=""):
        items = value.items() if isinstance(value, dict) else enumerate(value[:1])
        for key, inner in items:
            yield f"{path}{key}"
            if isinstance(inner, (dict, list)):
                yield from paths(inner, f"{path}{key}.")

    for path in paths(flagged):
        for value in (True, "?", {}, [None], float("nan"), 1e400):
            document = changed(flagged, path, value)
            try:
                found = detector.verify(json.dumps(document))
            except InputError:
                continue
            # A version that is unknown, or what is for people alone.
            assert not found.confirmed or path == "versions.numpy", path


def test_no_stronger_statement_is_ever_confirmed(detector, flagged, mixed):
    """Numbers are changed by small random amounts; what is confirmed still holds."""
    rng = np.random.default_rng(0)
    confirmed = 0
    for _ in range(25):
        document = copy.deepcopy(flagged if rng.random() < 0.7 else mixed)
        which = rng.choice(["bounds", "region", "parts", "threshold", "witnesses"])
        by = 1.0 + rng.choice([-1, 1]) * 10.0 ** rng.uniform(-9, -1)
        side = str(rng.choice(["lower", "upper"]))
        if which == "bounds":
            document["bounds"][side] *= by
        elif which == "region":
            document["region"][int(rng.integers(len(document["region"])))][side] *= by
        elif which == "parts":
            row = document["parts"][side][int(rng.integers(document["parts"]["count"]))]
            j = int(rng.integers(len(row)))
            row[j] = row[j] if isinstance(row[j], str) else row[j] * by
        elif which == "threshold":
            document["threshold"]["value"] *= by
        elif document["witnesses"]["flagged"]:
            row = document["witnesses"]["flagged"]
            row["x1"] *= by
        try:
            found = detector.verify(json.dumps(document))
        except InputError:
            continue
        if found.confirmed:
            confirmed += 1
            claimed, kept = found.document, document["bounds"]
            rows = rows_in(claimed.region_lower, claimed.region_upper, make_rows(), rng, 2_000)
            scores = detector.anomaly_score(rows)
            assert kept["lower"] <= scores.min()
            assert scores.max() <= kept["upper"]
            assert claimed.threshold == detector.rule.threshold
    assert confirmed  # weaker statements are


def test_the_reference_bounds_hold_and_need_no_code_of_the_fast_ones():
    rng = np.random.default_rng(0)
    for k, decoder in enumerate(("free", "certified", "free", "certified")):
        x = make_rows(150, 4, seed=k)
        x[::7, 1] = np.nan
        scaling = ("adaptive", "standard", "unit", "minmax")[k]
        found = DiffInt(**QUICK, decoder=decoder, scaling=scaling).fit(x)
        reference = ReferenceBounds(found.model_)
        for _ in range(6):
            lower, upper = random_region(x, rng)
            low, high = reference.bounds(lower, upper, 4)
            scores = found.anomaly_score(rows_in(lower, upper, x, rng, 1_000))
            assert low <= scores.min()
            assert scores.max() <= high


def test_missing_values_and_categories_are_confirmed():
    x = make_rows(200, 4)
    x[::5, 1] = np.nan
    found = DiffInt(**QUICK).fit(pd.DataFrame(x, columns=list("abcd")))
    certificate = found.certify_region({"a": 100}, {"a": 101}, missing=["b", "c"], splits=3)
    assert found.verify(certificate).confirmed
    document = certificate.to_dict()
    assert any(None in part for part in document["parts"]["lower"])
    document["missing"] = ["b"]
    assert reason(found, document) == "region"

    table = pd.DataFrame({"cut": ["Ideal", "Fair", "Good"] * 60, "x": x[:180, 0]})
    found = DiffInt(**QUICK).fit(table)
    certificate = found.certify_region({"cut": "Ideal", "x": 90.0}, {"cut": "Ideal", "x": 99.0})
    document = certificate.to_dict()
    assert document["region"][0]["values"] == ["Ideal"]
    assert found.verify(document).confirmed
    document["region"][0]["values"] = ["Fair"]
    assert reason(found, document) == "region"


@pytest.fixture(scope="module")
def codes() -> tuple[DiffInt, dict]:
    """A category of numbers, and the certificate of one of them: at position 1."""
    table = pd.DataFrame({"x": make_rows(180, 1)[:, 0], "zip": ["10", "20", "30"] * 60})
    found = DiffInt(**QUICK, false_positive_rate=0.05).fit(table)
    ends = {"zip": "20", "x": 130.0}
    return found, found.certify_region(ends, {**ends, "x": 200.0}, splits=3).to_dict()


def moved(document: dict, lower, upper, **entry) -> dict:
    """The region and all parts with other ends of the category, and what these are said to be."""
    document = copy.deepcopy(document)
    document["region"][1] |= {"lower": lower, "upper": upper, **entry}
    for which, end in (("lower", lower), ("upper", upper)):
        for part in document["parts"][which]:
            part[1] = end
    return document


def test_ends_of_a_category_are_positions_of_values(codes):
    detector, document = codes
    assert detector.verify(document).confirmed
    # An attacker claims what is true of the rows at such a position, where no row is.
    nothing = {"values": [], "new_values": False}
    for lower, upper in [(20, 20), (3.5, 3.5), (-5, -5), (0.5, 0.5), (3, 4), (0, "inf")]:
        for said in (nothing, {**nothing, "new_values": True}, {**nothing, "values": ["20"]}):
            weak = changed(moved(document, lower, upper, **said), "bounds.upper", "inf")
            weak |= {"statement": "undecided"}
            weak["bounds"]["lower"] = 0.0
            with pytest.raises(
                InputError, match=r"category 'zip' has no value at position .* 3 for"
            ):
                detector.verify(weak)
    unnamed = copy.deepcopy(document)
    del unnamed["region"][1]["values"]
    with pytest.raises(InputError, match=r"region\[1\] lacks 'values'"):
        detector.verify(unnamed)
    for lower, upper in [(20.0, 20.0), (3.5, 3.5), (-5.0, 2.0), (1.0, 1.5)]:
        with pytest.raises(
            InputError, match=r"no value at position .* 0 to 2, 3 for any new value"
        ):
            detector.certify_region([130.0, lower], [200.0, upper])


def test_what_is_said_of_a_category_is_what_was_proven(codes):
    detector, _ = codes
    first, second, third = detector.model_.categories[1]
    for lower, upper, said in [
        (0, 0, f"zip = {first}"),
        (0, 1, f"zip one of {first}, {second}"),
        (1, 2, f"zip one of {second}, {third}"),
        (2, 3, f"zip one of {third}, a new value"),
        (3, 3, "zip = a new value"),
    ]:
        certificate = detector.certify_region([130.0, lower], [200.0, upper], splits=3)
        assert f", {said} scores" in certificate.text()
        found = detector.verify(certificate)
        assert found.confirmed
        assert said in found.text()
        for wrong in ([first, third], [third, "a new value"]):
            other = changed(certificate.to_dict(), "region.1.values", wrong)
            assert reason(detector, other) == "region"
        other = changed(certificate.to_dict(), "region.1.new_values", lambda new: not new)
        assert reason(detector, other) == "region"
    everything = detector.certify_region([130.0, -np.inf], [200.0, np.inf], splits=3)
    assert "zip" not in everything.text()
    assert len(everything.to_dict()["region"]) == 1
    assert detector.verify(everything).confirmed


def test_a_row_that_is_shown_has_values_of_its_category(codes):
    detector, _ = codes
    certificate = detector.certify_region([90.0, -np.inf], [200.0, np.inf], splits=40)
    assert certificate.verdict == "mixed"
    document = certificate.to_dict()
    for row in document["witnesses"].values():
        assert row["zip"] in ("10", "20", "30", 3.0)
    for wrong in (20, 1, 2.5, -1, "40", None, True):
        with pytest.raises(InputError, match=r"'witnesses.passed' cannot be"):
            detector.verify(changed(document, "witnesses.passed.zip", wrong))
    assert set(certificate.rows["zip"]) <= {"10", "20", "30", "a new value"}


def test_no_two_values_of_a_category_are_said_in_the_same_words():
    long = "a" * 60
    values = ["a", "b", "a, b", 'a" b', "a new value", "a  b", f"{long}1{long}", f"{long}2{long}"]
    table = pd.DataFrame({"v": values * 30, "x": make_rows(240, 1)[:, 0]})
    found = DiffInt(**QUICK).fit(table)
    said, n = set(), len(values)
    for lower in range(n + 1):
        for upper in range(lower, n + 1):
            text = found.certify_region([lower, 90.0], [upper, 99.0], splits=0).text()
            said.add(text.partition(" scores between ")[0])
    assert len(said) == (n + 1) * (n + 2) / 2


def test_a_region_without_a_finite_value_is_refused(detector, flagged):
    """Its text would be that of all rows."""
    for end in ("inf", "-inf"):
        document = copy.deepcopy(flagged)
        document["region"][0] |= {"lower": end, "upper": end}
        for which in ("lower", "upper"):
            for part in document["parts"][which]:
                part[0] = end
        with pytest.raises(InputError, match=r"not a certificate.*no finite value of feature 'x0'"):
            detector.verify(document)
        with pytest.raises(InputError, match="has an unknown entry 'values'"):
            detector.verify(changed(flagged, "region.0.values", ["a"]))


def test_a_region_ends_with_the_training_times():
    """Later times have no position: a region beyond them would be about no row."""
    x = make_rows(60, 1)[:, 0]
    table = pd.DataFrame({"t": pd.date_range("2020-01-01", periods=60, freq="7h"), "x": x})
    found = DiffInt(**QUICK, false_positive_rate=0.05).fit(table)
    name = "t (days since 2020-01-01)"
    certificate = found.certify_region({"x": 90.0}, {"x": 99.0}, splits=2)
    assert f"{name} in [0, 17.2" in certificate.text()
    document = certificate.to_dict()
    assert found.verify(document).confirmed
    place = [entry["feature"] for entry in document["region"]].index(name)
    at = document["features"].index(name)
    later = changed(document, f"region.{place}.upper", 400.0)
    for part in later["parts"]["upper"]:
        part[at] = 400.0
    with pytest.raises(InputError, match=r"from 0 to 17\.2.*times outside"):
        found.verify(later)
    with pytest.raises(InputError, match="times outside"):
        found.certify_region({name: 400.0}, None)
    with pytest.raises(InputError, match="no threshold: times outside"):
        found.certain_threshold(name)


def test_rows_of_a_model_with_categories_are_complete(codes):
    detector, document = codes
    document = copy.deepcopy(document) | {"missing": ["x"]}
    document["region"][1] = {**document["region"][1], "values": ["20"], "new_values": False}
    for which in ("lower", "upper"):
        document["parts"][which] += [[None, 1.0]]
    document["parts"]["count"] += 1
    with pytest.raises(InputError, match="complete rows only"):
        detector.verify(document)


def test_an_object_is_read_like_its_text(detector, flagged):
    for value in (np.float32(1.0), {1, 2}, float("nan"), object()):
        with pytest.raises(InputError, match="not a certificate"):
            detector.verify({**flagged, "statement": value})


def test_new_values_of_a_category_are_in_the_bounds():
    rng = np.random.default_rng(0)
    a = rng.choice(["p", "q", "r", "s"], 300)
    table = pd.DataFrame({"a": a, "b": np.char.add("B", a), "x": rng.normal(size=300)})
    found = DiffInt(**QUICK).fit(table)
    row = table.iloc[[int(np.argmax(a == "p"))]].assign(b="never seen")
    place = float(found.model_.categories[0].index("p"))
    certificate = found.certify_region([place, 1.0, -np.inf], [place, np.inf, np.inf])
    assert certificate.lower <= found.anomaly_score(row)[0] <= certificate.upper


def test_texts_say_what_predict_considers_beside_the_threshold():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(300, 2)), columns=["a", "b"])
    noisy = np.arange(300) % 2 == 0
    table[noisy] *= 3
    table["store"] = np.where(noisy, "noisy", "calm")
    found = DiffInt(**QUICK, false_positive_rate=0.1).fit(table, segments="store")
    segments = "threshold of all rows together; those of the segments differ"
    region = found.certify_region({"a": 90.0}, {"a": 99.0})
    assert segments in region.text()
    assert segments in found.certain_threshold("a").text()
    assert "accepted" not in region.text()
    assert segments in found.verify(region).text()

    plain = DiffInt(**QUICK).fit(table[["a", "b"]])
    ends = {"a": 90.0, "b": 0.0}
    region = plain.certify_region(ends, ends)
    assert region.verdict == "all flagged"
    assert region.text().count("\n") == 1
    plain.accept(pd.DataFrame([ends]))
    assert plain.predict(pd.DataFrame([ends]))[0] == 1
    accepted = "Rows like accepted ones are not flagged; this is not considered here."
    assert plain.certify_region(ends, ends).text().endswith(accepted)
    assert plain.verify(region).text().endswith(accepted)


def test_gaps_are_found_where_they_are():
    low, high = np.zeros(2), np.ones(2)
    lower = np.array([[0, 0], [0.5, 0], [0.5, 0.5]])
    upper = np.array([[0.5, 1], [1, 0.5], [1, 1.0]])
    assert find_gap(low, high, lower, upper) is None
    assert find_gap(low, high, lower, upper - [0, 1e-9]) is not None
    gap = find_gap(low, high, lower[[0, 2]], upper[[0, 2]])
    np.testing.assert_array_equal(gap[1], [1, np.nextafter(0.5, 0)])
    after = np.nextafter(0.5, 1)
    assert find_gap(low, high, np.array([[0, 0], [after, 0]]), np.array([[0.5, 1], [1, 1]])) is None
    # Pinwheel: every cut goes through a box.
    lower = np.array([[0, 0], [2, 0], [1, 2], [0, 1], [1, 1]]) / 3
    upper = np.array([[2, 1], [3, 2], [3, 3], [1, 3], [2, 2]]) / 3
    assert find_gap(low, high, lower, upper) is None
    assert find_gap(low, high, lower[:-1], upper[:-1]) is not None
