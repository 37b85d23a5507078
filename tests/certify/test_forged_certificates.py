"""A small part of the attack on the check of certificates, with fixed seeds."""

from benchmarks.attacks.certificates import attack


def test_what_is_confirmed_of_changed_certificates_is_true():
    outcomes = attack(80, seed=0)
    assert not outcomes.pop("problems")
    assert outcomes["tried"] == 80
    assert min(outcomes.values()) > 3
