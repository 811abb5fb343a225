#!/usr/bin/env python3
"""Scores, thresholds, calibration, class weights, smoothing and --seeds against scikit-learn and NumPy: scores_test.py PROGRAM

Skipped (77) without scikit-learn.
"""
import csv
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import sklearn.metrics as metrics
except ImportError:
    print('skipped: scikit-learn is not installed')
    sys.exit(77)

PROGRAM = os.path.abspath(sys.argv[1])
ROLES = {'train': 0, 'validation': 1, 'test': 2}


def call(*arguments, expect=0):
    if arguments[0] == 'train' and not {'--resume', '--recipe'} & set(arguments):
        arguments += ('--recipe', 'none')
    done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=300)
    assert done.returncode == expect, (arguments, done.returncode, done.stdout, done.stderr)
    return done


def close(a, b, tolerance=1e-6, what=''):
    assert abs(a - b) <= tolerance, (what, a, b)


class Graph:
    """What a store holds, as NumPy reads it."""

    def __init__(self, path):
        self.path = path
        load = lambda name: np.load(f'{path}/{name}.npy')
        self.offsets, self.targets = load('adjacency_offsets').astype(int), load('adjacency_targets').astype(int)
        self.n = len(self.offsets) - 1
        self.split = load('split')
        meta = json.load(open(f'{path}/meta.json'))
        self.classes = meta['labels']['classes']
        labels = load('labels')
        self.multi = labels.ndim == 2 or labels.dtype == np.uint8
        if self.multi:
            bits = np.unpackbits(labels.reshape(self.n, -1), axis=1, bitorder='little')[:, :self.classes]
            self.truth = bits.astype(int)
        else:
            self.truth = labels.astype(int)

    def one_hot(self):
        return self.truth.astype(float) if self.multi else (self.truth[:, None] == np.arange(self.classes)).astype(float)


def train(store, run, *more):
    return json.loads(call('train', store, '--run', run, '--hidden', '16', '--parts', '4', '--layers', '2', '--json', '--quiet',
                           *([] if '--epochs' in more else ['--epochs', '15']), *more).stdout)


def probabilities(run, out, *more):
    call('predict', run, '--what', 'probabilities', '--output', out, '--quiet', *more)
    return np.load(out).astype(float)


def calibration_error(confidence, right):
    bins = np.minimum(14, (confidence * 15).astype(int))
    return sum(abs(right[bins == b].sum() - confidence[bins == b].sum()) for b in range(15)) / len(confidence)


def check_scores(graph, run, work):
    """evaluate --json is what scikit-learn says of predict's probabilities and classes."""
    evaluation = json.loads(call('evaluate', run, '--json', '--quiet').stdout)
    p = probabilities(run, f'{work}/p.npy')
    calibrated = probabilities(run, f'{work}/c.npy', '--calibrated')
    call('predict', run, '--output', f'{work}/y.npy', '--quiet')
    predicted = np.load(f'{work}/y.npy').astype(int)
    for part, role in ROLES.items():
        here, scores = graph.split == role, evaluation[part]
        truth, found = graph.truth[here], predicted[here]
        close(scores['micro_f1'], metrics.f1_score(truth, found, average='micro', zero_division=0), what='micro F1')
        if graph.multi:
            some = (truth.sum(0) + found.sum(0)) > 0
            close(scores['macro_f1'], metrics.f1_score(truth[:, some], found[:, some], average='macro', zero_division=0), what='macro F1')
            close(scores['accuracy'], metrics.accuracy_score(truth, found))
            both = (truth.sum(0) > 0) & (truth.sum(0) < len(truth))
            close(scores['roc_auc'], metrics.roc_auc_score(truth[:, both], p[here][:, both], average='macro'), 1e-4, 'ROC-AUC')
            close(scores['average_precision'], metrics.average_precision_score(truth[:, truth.sum(0) > 0], p[here][:, truth.sum(0) > 0]), 1e-4, 'AP')
            close(scores['calibration_error'], calibration_error(p[here].ravel(), truth.ravel()), 1e-3)
            close(scores['calibrated_error'], calibration_error(calibrated[here].ravel(), truth.ravel()), 1e-3)
        else:
            close(scores['macro_f1'], metrics.f1_score(truth, found, average='macro'), what='macro F1')
            right = (found == truth).astype(float)
            close(scores['calibration_error'], calibration_error(p[here].max(1), right), 1e-3)
            close(scores['calibrated_error'], calibration_error(calibrated[here].max(1), right), 1e-3)
            close(scores['loss'], metrics.log_loss(truth, p[here], labels=np.arange(graph.classes)), 1e-4)
            if graph.classes == 2:
                close(scores['roc_auc'], metrics.roc_auc_score(truth, p[here][:, 1]), 1e-4, 'ROC-AUC')
                close(scores['average_precision'], metrics.average_precision_score(truth, p[here][:, 1]), 1e-4, 'AP')
            else:
                assert 'roc_auc' not in scores
    return evaluation, p, predicted


def scores_agree(work):
    for name, options in {'binary': ['--classes', '2'], 'many': ['--classes', '6'], 'bits': ['--classes', '9', '--multi-label']}.items():
        store = f'{work}/{name}'
        call('generate', store, '--nodes', '900', '--edges', '4000', '--features', '12', '--quiet', *options)
        graph = Graph(store)
        result = train(store, f'{work}/{name}-run')
        evaluation, p, _ = check_scores(graph, f'{work}/{name}-run', work)
        for part in ROLES:
            assert result[part]['micro_f1'] == evaluation[part]['micro_f1']
            assert result[part].get('roc_auc') == evaluation[part].get('roc_auc')
        close(result['temperature'], evaluation['temperature'])
        # No other temperature has a lower loss on the validation nodes, whose labels leave 1 / (n + 2) open.
        here = graph.split == 1
        logits = np.log(p[here]) if not graph.multi else np.log(p[here] / (1 - p[here]))

        def loss(t):
            z, doubt = logits / t, 1 / (here.sum() + 2)
            if graph.multi:
                return np.mean(np.logaddexp(0, z) - ((1 - doubt) * graph.truth[here] + doubt / 2) * z)
            own = (1 - doubt) * z[np.arange(len(z)), graph.truth[here]] + doubt * z.mean(1)
            return np.mean(np.log(np.exp(z - z.max(1, keepdims=True)).sum(1)) + z.max(1) - own)
        assert all(loss(result['temperature']) <= loss(t) + 1e-6 for t in np.geomspace(0.05, 20, 200)), name


def thresholds_help(work):
    """Chosen on validation, they do better there and on other nodes, also with smoothing, by the score that is asked for."""
    graph = Graph(f'{work}/bits')
    for name, more in {'plain': [], 'smooth': ['--smooth', 'smooth'], 'macro': ['--select-by', 'macro-f1']}.items():
        run, score = f'{work}/chosen-{name}', 'macro_f1' if name == 'macro' else 'micro_f1'
        fixed = train(f'{work}/bits', f'{work}/fixed-{name}', *more)
        chosen = train(f'{work}/bits', run, '--thresholds', 'validation', *more)
        for part in ('validation', 'test'):
            assert chosen[part][score] > fixed[part][score] + 0.01, (name, part, chosen[part][score], fixed[part][score])
        evaluation = json.loads(call('evaluate', run, '--json', '--quiet').stdout)
        call('predict', run, '--output', f'{work}/y.npy', '--quiet')
        predicted = np.load(f'{work}/y.npy').astype(int)
        for part in ('validation', 'test'):
            here = graph.split == ROLES[part]
            assert chosen[part] == evaluation[part], (name, part)
            close(evaluation[part]['micro_f1'], metrics.f1_score(graph.truth[here], predicted[here], average='micro', zero_division=0), 1e-9, name)
        text = call('predict', run, '--quiet').stdout.splitlines()[1:]
        assert [len(line.split(',')[1].split(';')) if line.split(',')[1] else 0 for line in text] == predicted.sum(1).tolist()
    check_scores(graph, f'{work}/chosen-plain', work)


def select_by_chooses(work):
    for store, score, better in (('binary', 'roc-auc', max), ('binary', 'average-precision', max), ('bits', 'roc-auc', max),
                                 ('many', 'macro-f1', max), ('many', 'loss', min), ('bits', 'accuracy', max)):
        run = f'{work}/by-{store}-{score}'
        result = train(f'{work}/{store}', run, '--select-by', score, '--lr', '0.05')
        key = {'roc-auc': 'roc_auc', 'average-precision': 'average_precision', 'macro-f1': 'macro_f1'}.get(score, score)
        records = [json.loads(line) for line in open(f'{run}/metrics.jsonl')]
        values = [record['validation'][key] for record in records]
        assert values[result['kept_epoch'] - 1] == better(values), (store, score, values, result['kept_epoch'])
        close(result['validation'][key], better(values), 1e-12, score)
    for more in (['--select-by', 'roc-auc'],):
        assert 'needs two classes' in call('train', f'{work}/many', '--run', f'{work}/never', *more, expect=2).stderr
    call('train', f'{work}/binary', '--run', f'{work}/never', '--select-by', 'roc-auc', '--evaluation', 'blocks', expect=2)
    # Stopped and resumed, it chooses the same.
    whole = train(f'{work}/binary', f'{work}/whole', '--select-by', 'roc-auc', '--epochs', '12')
    train(f'{work}/binary', f'{work}/parts', '--select-by', 'roc-auc', '--epochs', '5')
    more = json.loads(call('train', '--run', f'{work}/parts', '--resume', '--epochs', '12', '--json', '--quiet').stdout)
    assert more['kept_epoch'] == whole['kept_epoch'] and more['test'] == whole['test'] and more['temperature'] == whole['temperature']


def weights_count(work):
    """Balanced is what the file with scikit-learn's numbers gives; a wrong file is refused by line."""
    from sklearn.utils.class_weight import compute_class_weight
    graph = Graph(f'{work}/many')
    tensors = lambda run: open(f'{run}/last.safetensors', 'rb').read()[8 + struct.unpack('<Q', open(f'{run}/last.safetensors', 'rb').read(8))[0]:]
    train(f'{work}/many', f'{work}/plain')
    train(f'{work}/many', f'{work}/balanced', '--class-weights', 'balanced')
    truth = graph.truth[graph.split == 0]
    weights = compute_class_weight('balanced', classes=np.arange(graph.classes), y=truth)
    with open(f'{work}/weights.csv', 'w') as file:
        file.write('class,weight\n' + ''.join(f'{c},{np.float32(w)}\n' for c, w in enumerate(weights)))
    train(f'{work}/many', f'{work}/from-file', '--class-weights', f'{work}/weights.csv')
    with open(f'{work}/ones.csv', 'w') as file:
        file.write('0,1\n')
    train(f'{work}/many', f'{work}/ones', '--class-weights', f'{work}/ones.csv')
    assert tensors(f'{work}/balanced') == tensors(f'{work}/from-file') != tensors(f'{work}/plain') == tensors(f'{work}/ones')
    truth = graph.truth
    # A weight of 0 for all but one class: everything becomes that class.
    with open(f'{work}/one.csv', 'w') as file:
        file.write(''.join(f'{c},{int(c == 3)}\n' for c in range(graph.classes)))
    train(f'{work}/many', f'{work}/one-class', '--class-weights', f'{work}/one.csv', '--lr', '0.05')
    call('predict', f'{work}/one-class', '--output', f'{work}/y.npy', '--quiet')
    assert np.mean(np.load(f'{work}/y.npy') == 3) > 0.95
    bits = train(f'{work}/bits', f'{work}/bits-balanced', '--class-weights', 'balanced')
    plain = train(f'{work}/bits', f'{work}/bits-plain')
    recall = lambda result: np.mean([c['recall'] for c in result['validation']['classes']])
    assert recall(bits) > recall(plain) + 0.05  # bits that are set count more
    for text, message in (('0,1\nx,2\n', "no class 'x'"), ('0,1\n0,2\n', 'listed twice'), ('0,1\n1,-2\n', 'not a class and its weight'), ('', 'names no class')):
        with open(f'{work}/bad.csv', 'w') as file:
            file.write(text)
        error = call('train', f'{work}/many', '--run', f'{work}/never', '--class-weights', f'{work}/bad.csv', expect=1).stderr
        assert message in error and 'bad.csv' in error, error
    # A file that changed is seen when the run is resumed.
    with open(f'{work}/weights.csv', 'a') as file:
        file.write('\n')
    call('train', '--run', f'{work}/from-file', '--resume', '--epochs', '16', '--quiet')  # the same weights
    with open(f'{work}/weights.csv', 'w') as file:
        file.write('0,9\n')
    assert 'has changed' in call('train', '--run', f'{work}/from-file', '--resume', '--epochs', '17', expect=1).stderr


def propagate(graph, start, alpha, steps=20):
    degree = np.diff(graph.offsets) + 1.0
    row = np.repeat(np.arange(graph.n), np.diff(graph.offsets))
    now = start
    for _ in range(steps):
        spread = now / np.sqrt(degree)[:, None]
        total = spread.copy()
        np.add.at(total, row, spread[graph.targets])
        now = (1 - alpha) * start + alpha * total / np.sqrt(degree)[:, None]
    return now


def smooth(graph, p, kind, score):
    """Correct and Smooth in NumPy, with the same choice of strengths."""
    y, known, level = graph.one_hot(), graph.split == 0, None
    chosen, best, alphas = {}, score(p) if kind != 'labels' else -np.inf, (0.2, 0.4, 0.6, 0.8, 0.9)
    if kind in ('correct', 'both'):
        errors = np.where(known[:, None], y - p, 0)
        level = np.abs(errors[known]).sum(1).mean()

        def correct(alpha):
            e = propagate(graph, errors, alpha)
            size = np.abs(e).sum(1)
            scale = np.where(size * 1000 > level, level / np.maximum(size, 1e-300), (size > 0).astype(float))
            return p + scale[:, None] * e
        best, alpha = max([(best, 0)] + [(score(correct(a)), a) for a in alphas], key=lambda pair: (pair[0], -pair[1]))
        chosen['correct'] = alpha
        p = correct(alpha) if alpha else p
    if kind != 'correct':
        start = np.where(known[:, None], y, p if kind != 'labels' else 0)
        best, alpha = max([(best, 0)] + [(score(propagate(graph, start, a)), a) for a in alphas], key=lambda pair: (pair[0], -pair[1]))
        chosen['smooth'] = alpha
        p = propagate(graph, start, alpha) if alpha else p
    return p, chosen


def inner(share, least):
    """Shares below the least approach 0 and never reach it."""
    return np.where(share >= least, share, least * least / (2 * least - np.minimum(share, least)))


def losses(graph, z, here):
    """Of each validation node, and the derivative by the inverse temperature where that is 1."""
    z, truth = z[here], graph.truth[here]
    if graph.multi:
        return (np.logaddexp(0, z) - truth * z).sum(1), ((1 / (1 + np.exp(-z)) - truth) * z).sum(1)
    e = np.exp(z - z.max(1, keepdims=True))
    e /= e.sum(1, keepdims=True)
    own = z[np.arange(len(z)), truth]
    return -np.log(e[np.arange(len(z)), truth]), (e * z).sum(1) - own


def calibrate(graph, g):
    """Shares as probabilities: what is below the least, and the temperature, fit the validation nodes best."""
    here, best = graph.split == 1, None
    classes = g.shape[1]
    for factor in (1, 3, 10, 30, 100, 300):
        if graph.multi:
            z = np.log(inner(g, factor * 1e-3)) - np.log(inner(1 - g, factor * 1e-3))
        else:
            total = np.maximum(g, 0).sum(1, keepdims=True)
            z = np.log(inner(g / np.where(total > 0, total, 1), factor * 0.01 / classes))
        low, high = 0.01, 100.0
        for _ in range(60):
            middle = (low * high) ** 0.5
            low, high = (middle, high) if losses(graph, middle * z, here)[1].sum() < 0 else (low, middle)
        loss = losses(graph, low * z, here)[0].sum()
        if best is None or loss < best[0]:
            best = loss, low * z
    z, reserve = best[1], 1 / (here.sum() + 2)
    if graph.multi:
        return (1 - reserve) / (1 + np.exp(-z)) + reserve / 2
    e = np.exp(z - z.max(1, keepdims=True))
    return (1 - reserve) * e / e.sum(1, keepdims=True) + reserve / classes


def smoothing_is_chosen_by(work):
    """--select-by chooses the strengths as it chooses the model, here with scikit-learn's scores of validation nodes."""
    def bits(graph, here, p):
        logits = np.log(inner(p, 1e-3)) - np.log(inner(1 - p, 1e-3))
        return metrics.average_precision_score(graph.truth[here], logits[here], average='macro')

    def loss(graph, here, p):
        if p is not plain[0]:
            p = calibrate(graph, p)
        return -metrics.log_loss(graph.truth[here], p[here], labels=np.arange(p.shape[1]))

    def macro(graph, here, p):
        return metrics.f1_score(graph.truth[here], p[here].argmax(1), average='macro')
    for store, by, name, score in (('bits', 'average-precision', 'average precision', bits), ('many', 'loss', 'loss', loss),
                                   ('many', 'macro-f1', 'macro F1', macro)):
        graph, run = Graph(f'{work}/{store}'), f'{work}/{store}-by-{by}'
        result = train(f'{work}/{store}', run, '--epochs', '3', '--select-by', by, '--smooth', 'both')
        p, here = probabilities(run, f'{work}/p.npy', '--smooth', 'none').astype(float), graph.split == 1
        plain = [p]  # the model's own: not calibrated
        expected, chosen = smooth(graph, p, 'both', lambda q: score(graph, here, q))
        for step, alpha in chosen.items():
            close(result['smoothing'][step], alpha, 0, (store, by, step))
        assert result['smoothing']['score'] == name
        close(abs(result['smoothing']['validation_after']), abs(score(graph, here, expected)), 2e-4, (store, by))
        close(abs(result['smoothing']['validation_before']), abs(score(graph, here, p)), 2e-4, (store, by))


def training_nodes_are_scored_without_smoothing(work):
    """Smoothing knows the labels of training nodes: their scores are those of the model alone."""
    for store in ('many', 'binary'):
        scores = [json.loads(call('evaluate', f'{work}/{store}-weak', '--smooth', kind, '--json', '--quiet').stdout) for kind in ('none', 'both')]
        assert scores[0]['train'] == scores[1]['train'], store
        assert scores[0]['test'] != scores[1]['test'] and scores[1]['train']['accuracy'] < 1, store
    shown = call('evaluate', f'{work}/binary-weak', '--smooth', 'both', '--quiet').stdout
    assert "train has the model's own scores" in shown, shown
    # Of two classes, it is said whose ranking is scored.
    assert scores[0]['test']['positive_class'] == '1' and 'average precision are those of class 1' in shown, shown


def smoothing_is_kept_with_the_model(work):
    """train --smooth tests as evaluate --smooth does; evaluate and predict then do so themselves, also after a resumed run."""
    for store in ('many', 'bits'):
        plain, run = f'{work}/{store}-weak', f'{work}/{store}-smoothed'
        trained = train(f'{work}/{store}', run, '--epochs', '2', '--smooth', 'both')
        trained = json.loads(call('train', '--run', run, '--resume', '--epochs', '3', '--json', '--quiet').stdout)
        asked = json.loads(call('evaluate', plain, '--smooth', 'both', '--json', '--quiet').stdout)
        itself = json.loads(call('evaluate', run, '--json', '--quiet').stdout)
        alone = json.loads(call('evaluate', plain, '--json', '--quiet').stdout)
        for part in ('train', 'validation', 'test'):
            assert trained[part]['micro_f1'] == asked[part]['micro_f1'] == itself[part]['micro_f1'], (store, part)
        assert trained['smoothing'] == asked['smoothing'] == itself['smoothing'], store
        assert trained['smoothing']['test_before'] == alone['test']['micro_f1'] and 'smoothing' not in alone
        smoothed = probabilities(plain, f'{work}/s.npy', '--smooth', 'both')
        assert np.array_equal(probabilities(run, f'{work}/t.npy'), smoothed), store
        assert np.array_equal(probabilities(run, f'{work}/t.npy', '--calibrated'), smoothed), store  # they are
        for more in ([], ['--calibrated']):
            assert np.array_equal(probabilities(run, f'{work}/t.npy', '--smooth', 'none', *more), probabilities(plain, f'{work}/u.npy', *more)), store
    # A graph without validation nodes to choose by has the model's own output.
    meta = json.load(open(f'{work}/many/meta.json'))
    call('generate', f'{work}/other', '--nodes', '300', '--edges', '900', '--features', str(meta['features']['columns']), '--classes',
         str(meta['labels']['classes']), '--split', '60/0/40', '--quiet')
    assert 'no smoothing' in call('evaluate', f'{work}/many-smoothed', f'{work}/other').stderr
    assert 'smoothing' not in json.loads(call('evaluate', f'{work}/many-smoothed', f'{work}/other', '--json').stdout)


def smoothing_is_correct_and_smooth(work):
    for store in ('many', 'bits', 'binary'):
        graph, run = Graph(f'{work}/{store}'), f'{work}/{store}-weak'
        train(f'{work}/{store}', run, '--epochs', '3')  # a model that leaves something to correct
        p = probabilities(run, f'{work}/p.npy')
        here = graph.split == 1

        def score(q):
            if graph.multi:
                return metrics.f1_score(graph.truth[here], q[here] > 0.5, average='micro', zero_division=0)
            return float(np.mean(q[here].argmax(1) == graph.truth[here]))
        for kind in ('correct', 'smooth', 'both', 'labels'):
            expected, chosen = smooth(graph, p, kind, score)
            result = json.loads(call('evaluate', run, '--smooth', kind, '--json', '--quiet').stdout)
            for step, alpha in chosen.items():
                close(result['smoothing'][step], alpha, 0, (store, kind, step))
            close(result['smoothing']['validation_after'], score(expected), 1e-9, (store, kind))
            test = graph.split == 2
            if graph.multi:
                close(result['test']['micro_f1'], metrics.f1_score(graph.truth[test], expected[test] > 0.5, average='micro'), 2e-3)
            else:
                close(result['test']['micro_f1'], np.mean(expected[test].argmax(1) == graph.truth[test]), 1e-9, (store, kind))
            found = probabilities(run, f'{work}/s.npy', '--smooth', kind)
            assert np.abs(found - calibrate(graph, expected)).max() < 2e-3, (store, kind, np.abs(found - calibrate(graph, expected)).max())
            if graph.multi:
                error = calibration_error(found[test].ravel(), graph.truth[test].ravel())
            else:
                error = calibration_error(found[test].max(1), found[test].argmax(1) == graph.truth[test])
            close(result['test']['calibration_error'], error, 1e-3, (store, kind))
            assert error < 0.15 and 'calibrated_error' not in result['test'], (store, kind, error)
            assert 0 < found.min() and found.max() < 1, (store, kind)
            # The same bytes with any threads, in little memory, and for some nodes.
            again = [probabilities(run, f'{work}/t.npy', '--smooth', kind, *more) for more in (['--threads', '1'], ['--memory', '120M'])]
            assert all(np.array_equal(found, other) for other in again), (store, kind)
            with open(f'{work}/ids.txt', 'w') as ids:
                ids.write('7\n3\n')
            assert np.array_equal(probabilities(run, f'{work}/t.npy', '--smooth', kind, '--nodes', f'{work}/ids.txt'), found[[7, 3]])
    smoothing_is_kept_with_the_model(work)
    smoothing_is_chosen_by(work)
    training_nodes_are_scored_without_smoothing(work)
    call('generate', f'{work}/unvalidated', '--nodes', '300', '--edges', '900', '--features', '5', '--split', '60/0/40', '--quiet')
    train(f'{work}/unvalidated', f'{work}/unvalidated-run')
    assert 'no labelled validation nodes' in call('evaluate', f'{work}/unvalidated-run', '--smooth', 'both', expect=2).stderr
    assert 'has no temperature' in call('predict', f'{work}/unvalidated-run', '--what', 'probabilities', '--calibrated', expect=2).stderr
    call('evaluate', f'{work}/many-weak', '--smooth', 'both', '--evaluation', 'blocks', expect=2)


def seeds_have_a_mean(work):
    arguments = ['train', f'{work}/many', '--run', f'{work}/seeds', '--seeds', '3', '--seed', '5', '--hidden', '16', '--parts', '4',
                 '--layers', '2', '--epochs', '6', '--quiet']
    result = json.loads(call(*arguments, '--json').stdout)
    assert [run['seed'] for run in result['seeds']] == [5, 6, 7]
    alone = train(f'{work}/many', f'{work}/alone', '--seed', '6', '--epochs', '6')
    assert alone['test']['micro_f1'] == result['seeds'][1]['test']['micro_f1']
    values = np.array([run['test']['micro_f1'] for run in result['seeds']])
    spread = result['scores']['test']['micro_f1']
    close(spread['mean'], values.mean(), 1e-12)
    close(spread['deviation'], values.std(ddof=1), 1e-12)
    half = 4.302653 * values.std(ddof=1) / np.sqrt(3)
    close(spread['confidence_95'][0], values.mean() - half, 1e-5)
    close(spread['confidence_95'][1], values.mean() + half, 1e-5)
    assert json.load(open(f'{work}/seeds/seeds.json')) == result
    assert 'already exists' in call(*arguments, expect=1).stderr
    # The folder stands for the seed with the best validation score.
    best = max(result['seeds'], key=lambda run: run['validation']['micro_f1'])
    done = call('evaluate', f'{work}/seeds', '--json')
    assert json.loads(done.stdout)['run'] == best['run'] and json.loads(done.stdout)['test']['micro_f1'] == best['test']['micro_f1']
    assert f"seed {best['seed']} of 3, the best by validation F1" in call('evaluate', f'{work}/seeds').stderr
    assert call('predict', f'{work}/seeds', '--quiet').stdout == call('predict', best['run'], '--quiet').stdout
    call('report', f'{work}/seeds', '--output', f'{work}/seeds.html', '--quiet')
    call('train', f'{work}/many', '--run', f'{work}/by-loss', '--seeds', '3', '--select-by', 'loss', '--hidden', '4', '--epochs', '2', '--quiet')
    losses = [json.load(open(f'{work}/by-loss/seed-{n}/result.json'))['validation']['loss'] for n in (1, 2, 3)]
    assert f'seed {1 + int(np.argmin(losses))} of 3, the best by validation loss {min(losses):.4f}' in call('evaluate', f'{work}/by-loss').stderr
    os.mkdir(f'{work}/no-run')
    call('evaluate', f'{work}/no-run', expect=1)
    # Fewer seeds than there are: all of them are kept.
    call('train', '--run', f'{work}/seeds', '--resume', '--seeds', '2', '--quiet')
    kept = json.load(open(f'{work}/seeds/seeds.json'))
    assert [run['seed'] for run in kept['seeds']] == [5, 6, 7] and kept['scores']['test'] == result['scores']['test']
    # A seed that is missing is trained, the others are there.
    shutil.rmtree(f'{work}/seeds/seed-6')
    text = call('train', '--run', f'{work}/seeds', '--resume', '--seeds', '3').stdout
    again = json.load(open(f'{work}/seeds/seeds.json'))
    assert again['scores']['test'] == result['scores']['test']
    assert re.search(r'Mean   test F1 [\d.]+ ± [\d.]+ % of 3 seeds; 95 % confidence interval of the mean [\d.-]+ to [\d.]+ %', text), text


def regression_predicts_numbers(work):
    """Numbers from CSV and .npy, and scores as scikit-learn has them; in any unit the same model."""
    rng = np.random.default_rng(3)
    n, folder = 700, f'{work}/numbers-source'
    os.mkdir(folder)
    x = rng.normal(size=(n, 6)).astype(np.float32)
    ends = np.stack([np.arange(n), (np.arange(n) + rng.integers(1, 9, n)) % n], 1)
    neighbours = np.zeros((n, 6))
    np.add.at(neighbours, ends[:, 0], x[ends[:, 1]])
    np.add.at(neighbours, ends[:, 1], x[ends[:, 0]])
    value = 1000 + 40 * (x[:, 0] + neighbours[:, 1] + 0.1 * rng.normal(size=n))
    value[::50] = np.nan
    np.savetxt(f'{folder}/edges.csv', ends, '%d', ',')
    np.savetxt(f'{folder}/features.csv', x, '%.9g', ',')
    with open(f'{folder}/labels.csv', 'w') as file:
        file.write('id,price\n' + ''.join(f'{v},{"" if np.isnan(value[v]) else repr(float(np.float32(value[v])))}\n' for v in range(n)))
    call('import', f'{folder}/edges.csv', f'{work}/numbers', '--split', '60/20/20', '--task', 'regression', '--quiet')
    np.save(f'{work}/y.npy', value)
    call('import', f'{folder}/edges.csv', f'{work}/numbers-npy', '--labels', f'{work}/y.npy', '--split', '60/20/20', '--task', 'regression', '--quiet')
    same = [json.load(open(f'{work}/{name}/meta.json'))['content_hash'] for name in ('numbers', 'numbers-npy')]
    assert same[0] == same[1]
    assert 'numbers (regression)' in call('info', f'{work}/numbers').stdout
    options = ['--lr', '0.02', '--epochs', '40']
    split, truth = np.load(f'{work}/numbers/split.npy'), np.load(f'{work}/numbers/labels.npy').astype(float)
    for loss in ('mse', 'mae'):
        run = f'{work}/numbers-{loss}'
        result = train(f'{work}/numbers', run, '--loss', loss, *options)
        evaluation = json.loads(call('evaluate', run, '--json', '--quiet').stdout)
        call('predict', run, '--output', f'{work}/v.npy', '--quiet')
        found = np.load(f'{work}/v.npy')
        assert found.shape == (n,) and found.dtype == np.float32
        text = call('predict', run, '--quiet').stdout.splitlines()
        assert text[0] == 'id,value' and np.float32(text[8].split(',')[1]) == found[7]
        for part, role in ROLES.items():
            here = (split == role) & ~np.isnan(truth)
            for scores in (result[part], evaluation[part]):
                assert scores['nodes'] == here.sum()
                close(scores['r2'], metrics.r2_score(truth[here], found[here]), 1e-5)
                close(scores['mae'], metrics.mean_absolute_error(truth[here], found[here]), 1e-3)
                close(scores['rmse'], metrics.mean_squared_error(truth[here], found[here]) ** 0.5, 1e-3)
        assert result['test']['r2'] > 0.5, result['test']
        records = [json.loads(line)['validation']['r2'] for line in open(f'{run}/metrics.jsonl')]
        assert records[result['kept_epoch'] - 1] == max(records)
        if loss == 'mse':
            squared = found
    assert not np.array_equal(squared, found)
    # In memory that is short, and stopped and resumed: the same numbers.
    train(f'{work}/numbers', f'{work}/numbers-small', '--memory', '130M', *options)
    train(f'{work}/numbers', f'{work}/numbers-parts', '--lr', '0.02', '--epochs', '11')
    call('train', '--run', f'{work}/numbers-parts', '--resume', '--epochs', '40', '--quiet')
    for run in ('numbers-small', 'numbers-parts'):
        call('predict', f'{work}/{run}', '--output', f'{work}/w.npy', '--quiet')
        assert np.array_equal(np.load(f'{work}/w.npy'), squared), run
    by = train(f'{work}/numbers', f'{work}/numbers-by', '--select-by', 'mae', *options)
    records = [json.loads(line)['validation']['mae'] for line in open(f'{work}/numbers-by/metrics.jsonl')]
    assert records[by['kept_epoch'] - 1] == min(records)
    assert re.search(r'R².*MAE', call('evaluate', f'{work}/numbers-by').stdout)
    call('report', f'{work}/numbers-by', '--output', f'{work}/numbers.html', '--quiet')
    for arguments in (['predict', f'{work}/numbers-by', '--what', 'probabilities'], ['predict', f'{work}/numbers-by', '--calibrated'], ['evaluate', f'{work}/numbers-by', '--smooth', 'both'],
                      ['train', f'{work}/numbers', '--class-weights', 'balanced'], ['train', f'{work}/numbers', '--select-by', 'macro-f1'],
                      ['train', f'{work}/many', '--select-by', 'r2']):
        done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, cwd=work)
        assert done.returncode == 2, (arguments, done.returncode, done.stderr)
        assert arguments[0] != 'predict' or 'the model predicts numbers' in done.stderr, done.stderr


def rare_classes(work):
    """A class that is never predicted is named after training, in the result and in the report; weights help."""
    rng = np.random.default_rng(1)
    n, folder = 600, f'{work}/rare-source'
    os.mkdir(folder)
    label = np.where(np.arange(n) % 25 == 0, 'rare', np.where(np.arange(n) % 2 == 0, 'a', 'b'))
    x = rng.normal(size=(n, 3)) + 0.7 * np.stack([label == 'a', label == 'b', label == 'rare'], 1)
    np.savetxt(f'{folder}/edges.csv', np.stack([np.arange(n), rng.integers(0, n, n)], 1), '%d', ',')
    np.savetxt(f'{folder}/features.csv', x, '%.5f', ',')
    with open(f'{folder}/labels.csv', 'w') as file:
        file.write('label\n' + ''.join(f'{name}\n' for name in label))
    call('import', f'{folder}/edges.csv', f'{work}/rare', '--split', '60/20/20', '--quiet')
    options = ['train', f'{work}/rare', '--layers', '1', '--lr', '0.02', '--epochs', '60', '--dropout', '0']
    said = 'class rare is never predicted: try --class-weights balanced'
    assert 'Note   ' + said in call(*options, '--run', f'{work}/never-rare').stdout
    assert json.load(open(f'{work}/never-rare/result.json'))['never_predicted'] == said
    assert said in open(f'{work}/never-rare/report.html').read()
    assert 'never predicted' not in call(*options, '--run', f'{work}/weighted', '--class-weights', 'balanced').stdout
    assert 'never_predicted' not in json.load(open(f'{work}/weighted/result.json'))
    # Probabilities that are far off are named, unless they are calibrated.
    call('train', f'{work}/rare', '--run', f'{work}/unsure', '--layers', '1', '--lr', '0.001', '--epochs', '2')
    temperature = json.load(open(f'{work}/unsure/result.json'))['temperature']
    assert temperature > 1.5, temperature
    for more, expected in (([], True), (['--calibrated'], False)):
        said = call('predict', f'{work}/unsure', '--what', 'probabilities', '--output', f'{work}/unsure.npy', *more).stderr
        assert ('are too sure: --calibrated' in said) == expected, said


def unusual_words(work):
    """Shares of a split that do not add up to 100, directions, and labels of one class are said."""
    folder = f'{work}/unusual'
    os.mkdir(folder)
    n, rng = 300, np.random.default_rng(2)
    np.savetxt(f'{folder}/edges.csv', np.stack([np.arange(n), rng.integers(0, n, n)], 1), '%d', ',')
    np.savetxt(f'{folder}/features.csv', rng.normal(size=(n, 3)), '%.5f', ',')
    np.savetxt(f'{folder}/labels.csv', np.ones(n), '%d', header='label', comments='')
    said = call('import', f'{folder}/edges.csv', f'{work}/unusual-store', '--split', '60/20/30', '--directed').stdout
    assert '54.5 %, 18.2 % and 27.3 % of the labelled nodes, since the shares add up to 110' in said, said
    assert 'a node sees the targets of its edges' in said, said
    usual = call('import', f'{folder}/edges.csv', f'{work}/usual', '--split', '0.6/0.2/0.2').stdout
    assert 'add up' not in usual and 'targets' not in usual, usual
    trained = call('train', f'{work}/unusual-store', '--run', f'{work}/unusual-run', '--epochs', '30', '--recipe', 'auto', '--hidden', '8')
    assert 'networks tried' in trained.stderr, trained.stderr
    assert trained.stderr.count('all labelled training nodes are of class 1: there is nothing to tell apart') == 1, trained.stderr


def balanced_classes(work):
    """Weights of classes are no help if the one that is never predicted is as large as the others."""
    folder = f'{work}/balanced-source'
    os.mkdir(folder)
    n, rng = 300, np.random.default_rng(3)
    np.savetxt(f'{folder}/edges.csv', np.stack([np.arange(n), rng.integers(0, n, n)], 1), '%d', ',')
    np.savetxt(f'{folder}/features.csv', np.zeros((n, 2)), '%g', ',')
    np.savetxt(f'{folder}/labels.csv', np.arange(n) % 3, '%d', header='label', comments='')
    call('import', f'{folder}/edges.csv', f'{work}/equal', '--split', '60/20/20')
    said = call('train', f'{work}/equal', '--run', f'{work}/equal-run', '--epochs', '5').stdout
    assert 'never predicted' in said and '--class-weights' not in said, said


def choices_are_grouped(work):
    """What auto chose for one reason is one line; --smooth is told in words that differ from its label."""
    call('generate', f'{work}/few', '--nodes', '3000', '--edges', '12000', '--features', '16', '--classes', '5', '--split', '3/10/87', '--quiet')
    done = subprocess.run([PROGRAM, 'train', f'{work}/few', '--run', f'{work}/few-run', '--epochs', '5', '--smooth', 'smooth'], capture_output=True, text=True)
    lines = [line for line in done.stderr.splitlines() if line.startswith('auto: ')]
    reasons = [line.split(': ', 2)[2] for line in lines]
    assert len(set(reasons)) == len(reasons) > 1, lines
    assert any(len(re.findall(r' --', line)) > 2 for line in lines), lines
    chosen = {word for line in lines for word in re.findall(r'--([\w-]+)', line.split(': ')[1])}
    assert {'conv', 'dropout', 'layers'} <= chosen, chosen
    assert re.search(r'^Smooth labels 0\.\d: validation F1', done.stdout, re.M) and 'mooth smooth' not in done.stdout, done.stdout


def main():
    work = tempfile.mkdtemp(dir='/dev/shm' if os.path.isdir('/dev/shm') else None)
    try:
        for test in (scores_agree, thresholds_help, select_by_chooses, weights_count, smoothing_is_correct_and_smooth,
                     seeds_have_a_mean, rare_classes, unusual_words, balanced_classes,
                     choices_are_grouped, regression_predicts_numbers):
            named = [word for word in sys.argv[2:] if not os.path.isdir(word)]  # a folder of real graphs, which others use
            if named and test.__name__ not in named and test is not scores_agree:
                continue
            test(work)
            print('ok', test.__name__, flush=True)
    finally:
        shutil.rmtree(work)


if __name__ == '__main__':
    main()
