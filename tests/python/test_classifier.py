import copy
import json
import pickle
import threading

import numpy as np
import pytest
import scipy.sparse

import clustergcn as cg
from conftest import tensors


def test_it_learns_and_scores(graph, settings):
    model = cg.ClusterGCNClassifier(**{**settings, "epochs": 30}).fit(graph)
    test = graph.nodes_of("test")
    assert model.score(graph, test) > 0.8
    assert model.score(graph, graph.split == 2) == model.score(graph, nodes=test)
    assert model.scores_["test"]["accuracy"] == pytest.approx(model.score(graph, test))
    assert model.evaluate(graph)["test"] == model.scores_["test"]
    probabilities = model.predict_proba(graph)
    assert probabilities.shape == (300, 3) and probabilities.dtype == np.float32
    assert np.allclose(probabilities.sum(1), 1, atol=1e-5)
    assert model.predict(graph).tolist() == model.classes_[probabilities.argmax(1)].tolist()
    assert np.array_equal(model.predict_proba(graph, nodes=[7, 3]), probabilities[[7, 3]])
    assert model.predict_proba(graph, nodes=[]).shape == (0, 3) and model.embed(graph, nodes=[]).shape == (0, 16)
    assert model.predict(graph, nodes=np.zeros(300, bool)).shape == (0,)
    assert model.embed(graph).shape == (300, 16) and model.embed(graph, layer=2).shape == (300, 3)
    assert len(model.history_["loss"]) == 30 and model.history_["loss"][-1] < model.history_["loss"][0]
    assert model.n_features_in_ == 6 and model.n_iter_ == 30


def test_fit_with_features_and_an_adjacency(small, settings):
    adjacency, X, y, split = small
    names = np.array(["red", "green", "blue"])[y]
    model = cg.ClusterGCNClassifier(**settings)
    model.fit(X, names, adjacency=adjacency, train=split == 0, validation=split == 1)
    assert set(model.predict(X, adjacency=adjacency)) <= {"red", "green", "blue"}
    assert 0 <= model.score(X, names, adjacency=adjacency) <= 1


def test_classes_come_back_as_they_were_given(small, settings):
    adjacency, X, y, split = small
    graph = cg.Graph.from_scipy(adjacency, X, y + 1, split=split)
    model = cg.ClusterGCNClassifier(**{**settings, "epochs": 30}).fit(graph)
    assert model.classes_.tolist() == [1, 2, 3] and np.mean(model.predict(graph) == y + 1) > 0.8
    assert pickle.loads(pickle.dumps(model)).classes_.tolist() == [1, 2, 3]


def test_another_graph_is_scored_by_the_names_of_its_classes(small, settings):
    adjacency, X, y, split = small
    names = np.array(["a", "b", "c"])[y]
    model = cg.ClusterGCNClassifier(**{**settings, "epochs": 30}).fit(cg.Graph.from_scipy(adjacency, X, names, split=split))
    some = np.where(y == 0, None, names)
    assert model.score(cg.Graph.from_scipy(adjacency, X, some, split=split)) > 0.8


def test_labels_of_other_folds_do_not_reach_predictions(small, settings):
    adjacency, X, y, _ = small
    y = np.random.default_rng(5).integers(0, 3, len(y))  # that nothing tells but the labels themselves
    graph = cg.Graph.from_scipy(adjacency, X, y, train=np.arange(len(y)))
    fold, validation, held_out = np.split(np.random.default_rng(6).permutation(len(y)), [len(y) // 2, len(y) * 2 // 3])
    model = cg.ClusterGCNClassifier(**{**settings, "epochs": 5, "smooth": "both"}).fit(fold, graph=graph, validation=validation)
    assert np.mean(model.predict(held_out) == y[held_out]) < 0.6


def test_what_is_not_used_is_refused(graph, small, settings):
    adjacency, X, y, split = small
    model = cg.ClusterGCNClassifier(**settings)
    with pytest.raises(cg.Error, match="train=.*not used"):
        model.fit(graph, train=[1, 2])
    with pytest.raises(cg.Error, match="y="):
        model.fit(np.arange(50), 1 - y[:50], graph=graph)
    with pytest.raises(cg.Error, match="bool"):
        model.fit(graph).predict(graph, nodes=(split == 2).astype(int))
    for wrong in ([-1], [1.5], "test", np.zeros(299, bool), [300]):
        with pytest.raises(cg.Error, match="nodes"):
            model.predict(graph, nodes=wrong)
    with pytest.raises(cg.Error, match="threads="):
        cg.ClusterGCNClassifier(threads=-1).fit(graph)


def test_a_thread_that_trains_at_the_end_of_the_program():
    import subprocess
    import sys
    code = ("import threading, time, clustergcn as cg; g = cg.Graph.generate(nodes=500, seed=1); "
            "m = cg.ClusterGCNClassifier(layers=2, hidden=8, epochs=10**6, verbose=0); "
            "threading.Thread(target=m.fit, args=(g,), daemon=True).start(); time.sleep(1)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_under_mpirun_it_does_not_train_in_every_process(graph, settings, monkeypatch):
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "0")
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "2")
    with pytest.raises(cg.Error, match="runs in one process, and mpirun started 2.*CLUSTERGCN_ALONE=1"):
        cg.ClusterGCNClassifier(**settings).fit(graph)
    monkeypatch.setenv("CLUSTERGCN_ALONE", "1")
    assert cg.ClusterGCNClassifier(**settings).fit(graph).history_


def test_several_classes_a_node(small, settings):
    adjacency, X, y, split = small
    labels = np.stack([y == 0, y > 0], axis=1)
    graph = cg.Graph.from_scipy(adjacency, X, labels, split=split)
    model = cg.ClusterGCNClassifier(**settings).fit(graph)
    assert graph.multi_label and model.predict(graph).shape == (300, 2)
    assert model.score(graph, split == 2) == pytest.approx(model.scores_["test"]["micro_f1"])


def test_a_callback_sees_epochs_and_ends_the_training(graph, settings):
    seen = []

    def on_epoch(epoch):
        seen.append(epoch["epoch"])
        return epoch["epoch"] < 3
    model = cg.ClusterGCNClassifier(**settings).fit(graph, on_epoch=on_epoch)
    assert seen == [1, 2, 3] and model.n_iter_ == 3 and model.stopped_early_

    def fails(epoch):
        raise KeyError("mine")
    with pytest.raises(KeyError, match="mine"):
        cg.ClusterGCNClassifier(**settings).fit(graph, on_epoch=fails)


def test_ctrl_c_ends_it(graph, settings, tmp_path):
    import signal

    def on_epoch(epoch):
        if epoch["epoch"] == 2:
            signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        cg.ClusterGCNClassifier(**{**settings, "epochs": 10**6}).fit(graph, on_epoch=on_epoch)


def test_ctrl_c_saves_a_kept_run(graph, settings, tmp_path):
    import signal

    def on_epoch(epoch):
        if epoch["epoch"] == 2:
            signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        cg.ClusterGCNClassifier(**settings).fit(graph, run=tmp_path / "run", on_epoch=on_epoch)
    cg.ClusterGCNClassifier(**settings).fit(graph, run=tmp_path / "run", resume=True)
    cg.ClusterGCNClassifier(**settings).fit(graph, run=tmp_path / "whole")
    assert tensors(tmp_path / "run" / "last.safetensors") == tensors(tmp_path / "whole" / "last.safetensors")


def test_two_trainings_at_once_on_threads(graph, settings):
    alone = cg.ClusterGCNClassifier(**settings).fit(graph)
    models = [cg.ClusterGCNClassifier(**settings) for _ in range(4)]
    threads = [threading.Thread(target=model.fit, args=(graph,)) for model in models]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for model in models:
        assert np.array_equal(model.predict_proba(graph), alone.predict_proba(graph))


def test_parameters_as_scikit_learn_has_them(graph, settings):
    model = cg.ClusterGCNClassifier(hidden=32, seed=1)
    assert model.get_params() == {"recipe": None, "threads": 0, "verbose": 1, "hidden": 32, "seed": 1}
    assert model.set_params(hidden=8, lr=0.1).lr == 0.1
    assert repr(model) == "ClusterGCNClassifier(hidden=8, seed=1, lr=0.1)"
    sklearn = pytest.importorskip("sklearn.base")
    twin = sklearn.clone(model)
    assert twin is not model and twin.get_params() == model.get_params()


# Those of scikit-learn's own checks that ask nothing of fit. The others fit a matrix without a graph, or ask for a signature
# without **options, and cannot apply.
@pytest.mark.parametrize("check", ["check_get_params_invariance", "check_set_params", "check_no_attributes_set_in_init"])
def test_checks_of_scikit_learn(check):
    checks = pytest.importorskip("sklearn.utils.estimator_checks")
    if not hasattr(checks, check):
        pytest.skip("another version of scikit-learn")
    getattr(checks, check)("ClusterGCNClassifier", cg.ClusterGCNClassifier())


def test_graphs_pickle(graph):
    again = pickle.loads(pickle.dumps(graph))
    assert again.hash == graph.hash


@pytest.mark.parametrize("keep", [lambda m, _: pickle.loads(pickle.dumps(m)), lambda m, _: copy.deepcopy(m)])
def test_pickles_are_the_same_model(graph, settings, keep, tmp_path):
    model = cg.ClusterGCNClassifier(**settings).fit(graph)
    assert np.array_equal(keep(model, tmp_path).predict_proba(graph), model.predict_proba(graph))


def test_saved_models_go_to_the_command_line_and_back(graph, settings, tmp_path, run_program):
    model = cg.ClusterGCNClassifier(**settings).fit(graph)
    model.save(tmp_path / "model.safetensors")
    loaded = cg.ClusterGCNClassifier.load(tmp_path / "model.safetensors")
    assert np.array_equal(loaded.predict_proba(graph), model.predict_proba(graph))
    graph.save(tmp_path / "store")
    run_program("predict", tmp_path / "model.safetensors", tmp_path / "store", "--what", "probabilities", "--output",
                tmp_path / "p.npy")
    assert np.array_equal(np.load(tmp_path / "p.npy"), model.predict_proba(graph))


def test_a_run_folder_as_the_command_line_writes_it(graph, settings, tmp_path, run_program):
    model = cg.ClusterGCNClassifier(**settings).fit(graph, run=tmp_path / "run")
    assert model.run_ == str(tmp_path / "run")
    assert (tmp_path / "run" / "config.toml").exists() and (tmp_path / "run" / "metrics.jsonl").exists()
    more = cg.ClusterGCNClassifier(**{**settings, "epochs": 12}).fit(graph, run=tmp_path / "run", resume=True)
    whole = cg.ClusterGCNClassifier(**{**settings, "epochs": 12}).fit(graph, run=tmp_path / "whole")
    assert tensors(tmp_path / "run" / "last.safetensors") == tensors(tmp_path / "whole" / "last.safetensors")
    assert np.array_equal(more.predict_proba(graph), whole.predict_proba(graph))


def test_the_report_of_a_kept_run(graph, settings, tmp_path):
    model = cg.ClusterGCNClassifier(**settings).fit(graph, run=tmp_path / "run")
    assert (tmp_path / "run" / "report.html").read_text().startswith("<!") and (tmp_path / "run" / "clusters.json").exists()
    assert "<iframe" in model.report()._repr_html_()
    with pytest.raises(cg.Error, match="run="):
        cg.ClusterGCNClassifier(**settings).fit(graph).report()


def test_a_forked_process_goes_on(graph, settings):
    import multiprocessing
    model = cg.ClusterGCNClassifier(**settings).fit(graph)
    wanted = model.predict_proba(graph)
    queue = multiprocessing.get_context("fork").Queue()

    def child():
        again = cg.ClusterGCNClassifier(**settings).fit(graph)
        queue.put(np.array_equal(model.predict_proba(graph), wanted) and
                  np.array_equal(again.predict_proba(graph), wanted))
        model.__dict__.clear()  # what the parent has is not this process's to remove
    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    assert queue.get(timeout=60)
    process.join(60)
    assert np.array_equal(model.predict_proba(graph), wanted)


def test_columns_are_matched_by_name(small, settings):
    pandas = pytest.importorskip("pandas")
    adjacency, X, y, split = small
    frame = pandas.DataFrame(X, columns=list("abcdef"))
    model = cg.ClusterGCNClassifier(**settings).fit(cg.Graph.from_scipy(adjacency, frame, y, split=split))
    assert model.feature_names_in_.tolist() == list("abcdef")
    shuffled = cg.Graph.from_scipy(adjacency, frame[list("fedcba")], y, split=split)
    assert np.array_equal(model.predict_proba(shuffled),
                          model.predict_proba(cg.Graph.from_scipy(adjacency, frame, y, split=split)))
    with pytest.raises(cg.Error, match="'?c'?"):
        model.predict(cg.Graph.from_scipy(adjacency, frame[list("abdef")], y, split=split))


def test_errors_name_parameters(graph, settings):
    with pytest.raises(cg.Error, match="did you mean hidden"):
        cg.ClusterGCNClassifier(hiden=3)
    with pytest.raises(cg.Error, match="^hidden=: -3"):
        cg.ClusterGCNClassifier(hidden=-3).fit(graph)
    with pytest.raises(cg.Error, match="^method=: "):
        cg.ClusterGCNClassifier(method="magic").fit(graph)
    with pytest.raises(ValueError):
        cg.ClusterGCNClassifier(epochs="many").fit(graph)
    with pytest.raises(cg.NotFittedError):
        cg.ClusterGCNClassifier().predict(graph)
    with pytest.raises(cg.Error) as caught:
        cg.ClusterGCNClassifier(**settings).fit(cg.Graph.from_scipy(scipy.sparse.csr_matrix((5, 5))))
    assert "--" not in str(caught.value)


def test_a_class_that_only_validation_has(small, settings):
    adjacency, X, y, split = small
    y = y.copy()
    y[split == 1] = 3
    model = cg.ClusterGCNClassifier(**settings).fit(cg.Graph.from_scipy(adjacency, X, y, split=split))
    assert model.predict_proba(cg.Graph.from_scipy(adjacency, X, y, split=split)).shape == (300, 4)


def test_every_method(graph, settings):
    for method in ("full-batch", "cluster", "sgd", "graphsage", "fastgcn", "vrgcn"):
        assert cg.ClusterGCNClassifier(**{**settings, "method": method, "epochs": 2}).fit(graph).n_iter_ == 2


def test_calibration_and_smoothing(graph, settings):
    model = cg.ClusterGCNClassifier(**settings).fit(graph)
    plain, calibrated = model.predict_proba(graph), model.predict_proba(graph, calibrated=True)
    assert not np.array_equal(plain, calibrated) and np.array_equal(plain.argmax(1), calibrated.argmax(1))
    assert "calibrated_error" in model.scores_["test"]
    smoothed = model.predict_proba(graph, smooth="both")
    assert not np.array_equal(plain, smoothed) and np.allclose(smoothed.sum(1), 1, atol=1e-5)
    assert np.array_equal(model.predict_proba(graph, nodes=[5, 2], smooth="both"), smoothed[[5, 2]])
    right = smoothed.argmax(1)[graph.nodes_of("test")] == graph.labels[graph.nodes_of("test")]
    assert model.evaluate(graph, smooth="both")["test"]["accuracy"] == pytest.approx(right.mean())
    again = cg.ClusterGCNClassifier(**settings, smooth="both").fit(graph)  # and then it needs no word more
    assert np.array_equal(again.predict_proba(graph), smoothed) and again.scores_["test"] == model.evaluate(graph, smooth="both")["test"]
    assert np.array_equal(again.predict_proba(graph, smooth="none"), plain)
    assert 0 < smoothed.min() and smoothed.max() < 1  # and they are calibrated
    assert np.array_equal(again.predict_proba(graph, calibrated=True), smoothed)
    assert np.array_equal(again.predict(graph), again.classes_[smoothed.argmax(1)])
    with pytest.raises(cg.Error, match="smooth=.*(not one of|sideways)"):
        model.predict(graph, smooth="sideways")


def test_thresholds_of_labels(small, settings):
    adjacency, X, y, split = small
    bits = np.stack([y == 0, (y == 1) & (np.arange(300) % 5 == 0), y != 2], 1).astype(np.uint8)
    graph = cg.Graph.from_scipy(adjacency, X, bits, split=split)
    model = cg.ClusterGCNClassifier(**settings, thresholds="validation").fit(graph)
    assert set(model.scores_["test"]) >= {"roc_auc", "average_precision"}
    found, here = model.predict(graph), graph.nodes_of("validation")
    right = 2 * np.sum((found[here] == 1) & (bits[here] == 1)) / (found[here].sum() + bits[here].sum())
    assert model.scores_["validation"]["micro_f1"] == pytest.approx(right) == pytest.approx(model.score(graph, here))
    smoothed = cg.ClusterGCNClassifier(**settings, thresholds="validation", smooth="smooth").fit(graph)
    assert smoothed.score(graph) == pytest.approx(smoothed.scores_["test"]["micro_f1"])  # with the thresholds of what is smoothed
    assert smoothed.predict(graph, nodes=[]).shape == (0, 3)


def test_score_leaves_training_nodes_out(small, settings):
    adjacency, X, y, split = small
    graph = cg.Graph.from_scipy(adjacency, X, y, split=split)
    model = cg.ClusterGCNClassifier(**{**settings, "epochs": 3}).fit(graph)
    assert model.score(graph) == pytest.approx(model.scores_["test"]["accuracy"]) != model.score(graph, np.arange(300))
    validated = cg.Graph.from_scipy(adjacency, X, y, train=np.flatnonzero(split == 0), validation=np.flatnonzero(split == 1))
    assert model.score(validated) == pytest.approx(model.scores_["validation"]["accuracy"])
    trained = cg.Graph.from_scipy(adjacency, X, y, train=np.flatnonzero(split == 0))
    assert model.score(trained) == pytest.approx(model.score(graph, split != 0))
    with pytest.raises(cg.Error, match="training nodes only"):
        model.score(cg.Graph.from_scipy(adjacency, X, y, train=np.arange(300)))
    assert model.score(cg.Graph.from_scipy(adjacency, X, y)) == pytest.approx(model.score(graph, np.arange(300)))


def test_a_folder_of_seeds_is_its_best_run(graph, run_program, tmp_path):
    graph.save(tmp_path / "g")
    run_program("train", tmp_path / "g", "--run", tmp_path / "s", "--seeds", 2, "--epochs", 3, "--hidden", 8, "--quiet")
    scores = [json.loads((tmp_path / f"s/seed-{n}/result.json").read_text())["validation"]["micro_f1"] for n in (1, 2)]
    best = cg.ClusterGCNClassifier.load(tmp_path / f"s/seed-{1 + int(np.argmax(scores))}")
    assert np.array_equal(cg.ClusterGCNClassifier.load(tmp_path / "s").predict_proba(graph), best.predict_proba(graph))


def test_regression(small, settings, tmp_path):
    adjacency, X, y, split = small
    value = 100 + 7 * X[:, 0] + y
    value[17] = np.nan
    graph = cg.Graph.from_scipy(adjacency, X, value, split=split, task="regression")
    model = cg.ClusterGCNRegressor(**{**settings, "epochs": 60, "lr": 0.02}).fit(graph)
    test = graph.nodes_of("test")
    assert model.score(graph, test) > 0.8
    assert model.scores_["test"]["r2"] == pytest.approx(model.score(graph, test), abs=1e-5)
    assert model.predict(graph).shape == (300,) and abs(np.mean(model.predict(graph)) - np.nanmean(value)) < 3
    assert np.array_equal(model.predict(graph, nodes=[4, 1]), model.predict(graph)[[4, 1]])
    assert len(model.history_["validation_r2"]) == 60
    model.save(tmp_path / "m.safetensors")
    assert np.array_equal(cg.ClusterGCNRegressor.load(tmp_path / "m.safetensors").predict(graph), model.predict(graph))
    other = cg.ClusterGCNRegressor(**settings).fit(X, value, adjacency=adjacency, train=split == 0, validation=split == 1)
    assert other.score(X, value, adjacency=adjacency) > 0
    with pytest.raises(cg.Error, match="task='regression'"):
        cg.Graph.from_scipy(adjacency, X, value, split=split)
    with pytest.raises(cg.Error, match="graph: has labels that are numbers, and classes are wanted.*ClusterGCNRegressor"):
        cg.ClusterGCNClassifier(**settings).fit(graph)
    assert model.score(graph) == pytest.approx(model.score(graph, test))
    with pytest.raises(cg.Error, match="numbers are wanted"):
        cg.ClusterGCNRegressor(**settings).fit(cg.Graph.from_scipy(adjacency, X, y, split=split))
    with pytest.raises(cg.Error, match="no probabilities"):
        model.predict_proba(graph)
