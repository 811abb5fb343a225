import os
import pathlib
import subprocess

import numpy as np
import pytest
import scipy.sparse

import clustergcn as cg


@pytest.fixture(scope="session")
def program():
    path = os.environ.get("CLUSTERGCN_PROGRAM", "")
    if not os.path.exists(path):
        pytest.skip("the program is not built")
    return path


@pytest.fixture(scope="session")
def run_program(program):
    def run(*words):
        return subprocess.run([program, *map(str, words)], check=True, capture_output=True, text=True).stdout
    return run


@pytest.fixture
def small():
    """A symmetric adjacency, features, classes and a split of 300 nodes in three communities."""
    random = np.random.default_rng(1)
    classes = np.arange(300) % 3
    near = random.random((300, 300)) < np.where(classes[:, None] == classes[None, :], 0.06, 0.005)
    near = np.triu(near, 1)
    adjacency = scipy.sparse.csr_matrix((near | near.T).astype(np.float32))
    X = (random.normal(size=(300, 6)) + np.eye(6)[classes]).astype(np.float32)
    split = np.where(np.arange(300) < 180, 0, np.where(np.arange(300) < 240, 1, 2)).astype(np.uint8)
    return adjacency, X, classes, split


@pytest.fixture
def graph(small):
    adjacency, X, y, split = small
    return cg.Graph.from_scipy(adjacency, X, y, split=split)


@pytest.fixture
def settings():
    return dict(recipe="none", layers=2, hidden=16, epochs=8, parts=4, seed=3, verbose=0)


def tensors(path):
    """The bytes behind a safetensors file's header."""
    data = pathlib.Path(path).read_bytes()
    return data[8 + int.from_bytes(data[:8], "little"):]
