"""Colours stand out from what is behind them, and from each other, for everybody."""

import itertools

import numpy as np
import pytest

from lance_memory.report.palette import CHANGES, DARK, LIGHT, STATES

# Machado, Oliveira and Fernandes 2009, severity 1.0; linear RGB.
EYES = {
    "most": np.eye(3),
    "protan": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deutan": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritan": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)
SCHEMES = pytest.mark.parametrize("scheme", [LIGHT, DARK], ids=["light", "dark"])


def linear(colour):
    values = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def lab(values):
    x, y, z = XYZ @ np.clip(values, 0, 1) / [0.95047, 1.0, 1.08883]
    x, y, z = (v ** (1 / 3) if v > 0.008856 else 7.787 * v + 16 / 116 for v in (x, y, z))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def contrast(one, other):
    """WCAG 2.2."""
    light, dark = sorted((float(XYZ[1] @ linear(c)) for c in (one, other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@SCHEMES
def test_marks_and_letters_stand_out(scheme):
    marks = [contrast(colour, scheme.card) for colour in (*scheme.series, scheme.quiet)]
    letters = [
        contrast(colour, ground)
        for colour in (scheme.ink, scheme.faint, scheme.series[0])
        for ground in (scheme.card, scheme.ground)
    ]
    assert min(marks) >= 3.0
    assert min(letters) >= 4.5


@SCHEMES
@pytest.mark.parametrize("eyes", EYES)
def test_any_two_marks_are_told_apart(scheme, eyes):
    seen = [lab(EYES[eyes] @ linear(colour)) for colour in (*scheme.series, scheme.quiet)]
    nearest = min(np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2))
    assert nearest >= 15  # CIE 1976; what is below 10 needs a second look


def test_charts_take_their_colours_from_the_palette():
    named = {*LIGHT.series, LIGHT.quiet}
    assert set(STATES.values()) <= named
    assert set(CHANGES.values()) <= named
    assert len(set(STATES.values())) == len(STATES)
    assert LIGHT.variables().keys() == DARK.variables().keys()
