"""For one seed and the same options, fit and `clustergcn train` give the same weights."""
import ctypes

import numpy as np
import pytest
import scipy.sparse

import clustergcn as cg
from conftest import tensors


@pytest.mark.parametrize("features", ["dense", "half", "sparse", "none"])
@pytest.mark.parametrize("threads", [1, 2])
def test_fit_and_train_give_the_same_bits(small, settings, features, threads, tmp_path, run_program):
    adjacency, X, y, split = small
    X = {"dense": X, "half": X.astype(np.float16), "sparse": scipy.sparse.csr_matrix(np.where(X > 0, X, 0)),
         "none": None}[features]
    graph = cg.Graph.from_scipy(adjacency, X, y, split=split)
    graph.save(tmp_path / "store")
    cg.ClusterGCNClassifier(**settings, threads=threads).fit(graph, run=tmp_path / "python")
    run_program("train", tmp_path / "store", "--run", tmp_path / "line", "--layers", 2, "--hidden", 16, "--epochs", 8,
                "--parts", 4, "--seed", 3, "--threads", 3 - threads, "--recipe", "none", "--quiet")
    for name in ("last.safetensors", "best.safetensors"):
        assert tensors(tmp_path / "python" / name) == tensors(tmp_path / "line" / name)


def test_a_model_in_bfloat16_predicts_as_the_program_does(small, settings, tmp_path, run_program):
    adjacency, X, y, split = small
    graph = cg.Graph.from_scipy(adjacency, X, y, split=split)
    graph.save(tmp_path / "store")
    model = cg.ClusterGCNClassifier(**settings).fit(graph, run=tmp_path / "run")
    run_program("predict", tmp_path / "run", tmp_path / "store", "--what", "probabilities", "--precision", "bfloat16",
                "--output", tmp_path / "half.npy", "--quiet")
    half = model._fitted().in_precision("bfloat16").probabilities(graph._core, None, False, "trained", 1, None)
    assert np.array_equal(half, np.load(tmp_path / "half.npy"))
    full = model.predict_proba(graph)
    assert not np.array_equal(half, full) and np.allclose(half, full, atol=0.05)


# What is chosen from the graph is the same, too; without a name it is chosen.
@pytest.mark.parametrize("recipe", [None, "auto", "none", "small"])
def test_recipes_give_the_same_bits(small, recipe, tmp_path, run_program):
    adjacency, X, y, split = small
    graph = cg.Graph.from_scipy(adjacency, X, y, split=split)
    graph.save(tmp_path / "store")
    cg.ClusterGCNClassifier(recipe=recipe, epochs=3, verbose=0).fit(graph, run=tmp_path / "python")
    named = ["--recipe", recipe] if recipe else []
    run_program("train", tmp_path / "store", "--run", tmp_path / "line", *named, "--epochs", 3, "--quiet")
    assert tensors(tmp_path / "python" / "last.safetensors") == tensors(tmp_path / "line" / "last.safetensors")
    config = [(tmp_path / name / "config.toml").read_text() for name in ("python", "line")]
    assert config[0] == config[1]
    assert ("transductive = true" in config[0]) == (recipe != "none")


# NumPy may use the same OpenBLAS: its number of threads and its kernels are its own.
def test_numpys_openblas_is_left_alone(small, settings):
    paths = {line.split()[-1] for line in open("/proc/self/maps") if "libopenblas" in line and "deleted" not in line}
    if not paths:
        pytest.skip("NumPy uses another BLAS here")
    library = ctypes.CDLL(paths.pop())
    library.openblas_get_corename.restype = ctypes.c_char_p
    before = library.openblas_get_corename()
    library.openblas_set_num_threads(2)
    adjacency, X, y, split = small
    cg.ClusterGCNClassifier(**settings).fit(cg.Graph.from_scipy(adjacency, X, y, split=split))
    assert library.openblas_get_corename() == before
    assert library.openblas_get_num_threads() == 2
