"""Warnings about a training."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest

from diffint.core.decoder import CertifiedDecoder, FreeDecoder, SpectralDecoder
from diffint.fit.fit_warnings import warn_about_decoder, warn_about_training


def messages(function, *arguments):
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        function(*arguments)
    return [str(w.message) for w in warned]


@pytest.mark.parametrize(
    ("decoder", "error", "instead"),
    [
        (CertifiedDecoder, 0.76, None),
        (CertifiedDecoder, 0.78, "use decoder='free'"),
        (SpectralDecoder, 0.78, "use decoder='certified' or 'free'"),
        (FreeDecoder, 0.99, None),
    ],
)
def test_a_decoder_that_hardly_follows_the_rows(decoder, error, instead):
    """The error of the last epoch, as a share of the rows' distance from the mean: here 2."""
    rows = np.array([[3.0, -1.0], [-1.0, 3.0], [-1.0, -1.0], [3.0, 3.0], [np.nan, 3.0]])
    runs = [SimpleNamespace(rows=rows[:4]), SimpleNamespace(rows=rows[:4])]
    trained = [SimpleNamespace(history=[9.0, 2.0 * (error + more)]) for more in (-0.01, 0.01)]
    found = messages(warn_about_decoder, decoder, runs, trained)
    assert len(found) == (instead is not None)
    assert all(message.endswith(instead) for message in found)


def test_rows_that_do_not_differ_are_followed():
    runs = [SimpleNamespace(rows=np.ones((4, 2)))]
    assert not messages(
        warn_about_decoder, CertifiedDecoder, runs, [SimpleNamespace(history=[1.0])]
    )


def member(history, moved):
    start = SimpleNamespace(center=np.zeros((2, 2)))
    parameters = SimpleNamespace(center=np.full((2, 2), moved))
    return SimpleNamespace(history=history, start=start, parameters=parameters)


@pytest.mark.parametrize(
    ("history", "moved", "says"),
    [
        ([1.0, 0.9], 0.1, None),
        ([1.0, 0.9], 1.01e-3, None),
        ([1.0, 0.9], 0.99e-3, "the intervals hardly moved during training (centers by 0.00099"),
        ([1.0], 0.1, None),  # a single epoch
        ([1.0, 1.0], 0.1, "the loss did not fall (1 in the first epoch, 1 in the last)"),
        ([1.0, 1 - 2e-6], 0.1, None),
        ([1.0, 2.0], 0.1, "the loss did not fall (1 in the first epoch, 2 in the last)"),
    ],
)
def test_a_training_that_learned_nothing(history, moved, says):
    found = messages(warn_about_training, [member(history, moved)] * 2)
    assert [message.startswith(says) for message in found] == [True] * (says is not None)
