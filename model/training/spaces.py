"""Target spaces: each training run chooses the axes of its own (train.py, `targets`)."""

import numpy as np


def goal_of(table):
    """The targets that a table was trained for; they lie beside it."""
    return np.load(table.replace(".npy", ".goal.npy")).astype(np.float32)


def brought(table, goal):
    """A table in the space of other targets, to which a linear map leads."""
    own = goal_of(table)
    return np.load(table) @ np.linalg.lstsq(own.T @ own, own.T @ goal, rcond=None)[0]
