"""The soft-interval operation: its definition and its fast versions.

For a value x, an interval [lower, upper] and a temperature τ the membership is
``I = σ((x − lower)/τ) · σ((upper − x)/τ)``, never taken below `MIN_MEMBERSHIP`; a missing value
(NaN) has membership 1. A unit's log box membership is the sum of log I over the features.
"""

MIN_MEMBERSHIP = 1e-8
