"""The energy of a pendulum, and its gradient by hand, in NumPy."""

import numpy as np


def energy(theta, omega, m=2.0, length=0.5, g=9.81):
    kinetic = m * (length * omega) ** 2 / 2
    potential = m * g * length * (1 - np.cos(theta))
    return kinetic + potential


def gradient(theta, omega, m=2.0, length=0.5, g=9.81):
    return m * g * length * np.sin(theta), m * length * omega
