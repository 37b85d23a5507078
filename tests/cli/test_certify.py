"""`diffint certify` and `diffint verify`: what they print and write, exit codes and bad input."""

import json

import numpy as np
import pytest

from diffint import DiffInt
from diffint.certify.regions import RegionCertificate

from .conftest import make_payments

# Young people who pay much
REGION = (
    *("--at-least", "amount=4000", "--at-most", "amount=9000", "--equal", "city=Oslo"),
    *("--at-most", "age=25", "--at-least", "age=20"),
)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("certify") / "m.diffint"
    payments = make_payments(600, 2).query("fraud == 0")
    train = payments[["age", "amount", "visits"]].copy()
    train["city"] = np.resize(["Lyon", "Oslo", "Rome"], len(train))
    train["a=b"] = train["age"] / 2
    detector = DiffInt(random_state=0, epochs=10, n_units=24, n_members=2, decoder="certified")
    detector.fit(train).save(path)
    return path


@pytest.fixture
def certificate(run, model, tmp_path):
    path = tmp_path / "region.json"
    done = run("certify", model, *REGION, "-o", path)
    assert done.code == 0, done.err
    assert "all of them are certain to be flagged" in done.out
    assert done.out.endswith(f"Certificate: {path}\n")
    return path


def test_a_certificate_is_made_and_confirmed(run, model, certificate):
    done = run("verify", certificate, model)
    assert done.code == 0, done.err
    assert done.out.startswith("Confirmed")
    assert "city = Oslo" in done.out
    found = json.loads(run("verify", certificate, model, "--json").out)
    assert found["confirmed"] is True
    assert found["statement"] == "all flagged"
    made = json.loads(certificate.read_text())
    done = run("certify", model, *REGION, "--json")
    assert json.loads(done.out) == made


def test_a_changed_certificate_is_refused(run, model, certificate):
    document = json.loads(certificate.read_text())
    document["bounds"]["lower"] *= 2
    certificate.write_text(json.dumps(document))
    done = run("verify", certificate, model)
    assert (done.code, done.err) == (1, "")
    assert done.out.startswith("Refused (bounds)")
    done = run("verify", certificate, model, "--json")
    assert done.code == 1
    assert json.loads(done.out)["reason"] == "bounds"


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[1]", b"\xff\xfe", b'{"diffint_certificate": NaN}']
)
def test_an_unreadable_certificate_is_an_error(run, model, certificate, content):
    certificate.write_bytes(content)
    done = run("verify", certificate, model)
    assert (done.code, done.out) == (2, "")
    assert "not a certificate" in done.err
    assert done.err.count("\n") == 1


def test_an_undecided_region_has_its_own_exit_code(run, model, monkeypatch, tmp_path):
    monkeypatch.setattr(RegionCertificate, "verdict", property(lambda _: "undecided"))
    done = run("certify", model, *REGION, "-o", tmp_path / "region.json")
    assert done.code == 3
    assert "do not decide" in done.out
    assert run("verify", tmp_path / "region.json", model).code == 0


def test_seconds_and_names_with_equals_signs(run, model):
    done = run("certify", model, "--at-least", "a=b=1e6", "--seconds", "5")
    assert done.code == 0, done.err
    assert "a=b ≥ 1,000,000" in done.out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--at-least", "nothing=3"), "'nothing'"),
        (("--at-least", "amount"), "NAME=VALUE"),
        (("--at-least", "amount=much"), "not a number"),
        (("--at-least", "amount=nan"), "not finite"),
        (("--at-least", "amount=1", "--at-least", "amount=2"), "twice"),
        (("--at-least", "amount=3", "--at-most", "amount=1"), "empty"),
        (("--at-least", "amount=3", "--equal", "amount=4"), "--equal"),
        (("--at-least", "city=2"), "--equal"),
        (("--equal", "city=Kyiv"), "'Kyiv'"),
        (("--splits", "-1"), "splits"),
        (("--missing", "age"), "complete rows"),
        (("--seconds", "0"), "seconds"),
        (("-o", "-"), "--json"),
    ],
)
def test_bad_input(run, model, options, message):
    done = run("certify", model, *options)
    assert (done.code, done.out) == (2, "")
    assert message in done.err


def test_the_model_is_not_overwritten(run, model):
    before = model.read_bytes()
    assert run("certify", model, "--at-least", "age=1e9", "-o", model).code == 2
    assert model.read_bytes() == before
