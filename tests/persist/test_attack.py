"""A small part of the attack on the reader of model files, with fixed seeds."""

from benchmarks.attacks.model_files import attack


def test_damaged_and_forged_files():
    outcomes = attack(120, seed=0)
    problems = outcomes.pop("problems")
    assert not problems
    assert outcomes["tried"] == 120
    expected = ("refused", "loaded unchanged", "loaded as another model")
    assert sum(outcomes[name] for name in expected) == 120
    assert min(outcomes[name] for name in expected) > 3
