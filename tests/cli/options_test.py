#!/usr/bin/env python3
"""No option is parsed and ignored: options_test.py PROGRAM

Goes through every option of every command, as `clustergcn options` lists them. Given on the command line with a value of its
own, an option must change the result, be refused, or be named in a note as having no effect. `train` is tried in many
settings; an option must change something in at least one of them.

A new option needs a value in VALUES unless it is a flag or a choice.
"""
import concurrent.futures
import hashlib
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

PROGRAM = os.path.abspath(sys.argv[1])
VERBOSE = '-v' in sys.argv

# Another value than the default, for options that are neither flags nor choices. (command, option) is more special.
VALUES = {
    'parts': '3', 'from': '{work}/clusters.txt', 'imbalance': '3', 'partition-seed': '7', 'partition-name': 'mine',
    'batches-per-step': '2', 'peer-timeout': '7', 'batch-nodes': '50', 'fanout': '1', 'layer-nodes': '20', 'layers': '4', 'hidden': '24', 'lambda': '5',
    'dropout': '0.5', 'per-batch': '2', 'epochs': '4', 'lr': '0.02', 'step-epochs': '2', 'step-factor': '0.1',
    'clip': '0.01', 'patience': '1', 'seed': '9', 'checkpoint-seconds': '0', 'evaluation-blocks': '7', 'eval-every': '2',
    'beta1': '0.5', 'warmup': '3', 'input-dropout': '0.7', 'initial-residual': '0.3', 'identity-mapping': '0.5', 'beta2': '0.9', 'epsilon': '0.1', 'weight-decay': '0.1', 'memory': '900M', 'threads': '1',
    'recipe': 'small', 'config': '{work}/other.toml', 'live-port': '1', 'run': '{out}/elsewhere',
    'layer': '1', 'nodes': '{work}/ids.txt', ('generate', 'nodes'): '150', 'output': '{out}/written.csv',
    ('report', 'output'): '{out}/written.html', ('reproduce', 'output'): '{out}/written',
    'scale': '0.5', 'edges': '900', 'features': '{work}/other-features.csv', ('generate', 'features'): '7',
    'classes': '3', 'graphs': '3', 'split': '40/30/30', 'format': 'ogb', 'labels': '{work}/other-labels.csv',
    'split-file': '{work}/roles.npy', 'name': 'another', 'folder': '{out}/arrived', 'base-url': 'http://127.0.0.1:1/',
    'data': '{work}/nothing',
    'class-weights': 'balanced', 'seeds': '2',
    'id-column': 'none', 'label-column': 'kind', 'drop-columns': 'age', ('import', 'like'): '{work}/tables-store',
}

# By design these change no result, and what they do change is shown elsewhere.
ELSEWHERE = {
    'threads': 'bits are the same for any number of threads (TrainerTest.ThreadsDoNotChangeABit)',
    'memory': 'bits are the same in any memory (Memory.PeakStaysUnderTheBudgetAndNoBitChanges)',
    'checkpoint-seconds': 'when a run is saved (EndToEnd.AKilledRun…)',
    'peer-timeout': 'several processes: tests/dist', 'resume': 'Runs.*', 'live': 'LiveServer.*', 'quiet': 'notes on stderr', 'force': 'EndToEnd.*',
    ('download', None): 'needs a server: download_test.py; the options are those of import',
    ('reproduce', None): 'runs for minutes: Reproduce.*',
}

# A real effect that another value need not have on a graph this small: once in all settings is enough.
MAY_COINCIDE = {'imbalance', 'objective', 'node-weights', 'partitioner', 'partition-seed', 'draw', 'per-batch', 'patience', 'keep',
                'importance', 'control-variate', 'transductive', 'dense-adam', 'evaluation', 'evaluation-blocks', 'clip',
                'header', 'features-header', 'labels-header', 'first-layer',
                'select-by', 'thresholds', 'smooth',
                ('evaluate', 'precision'), ('predict', 'precision'),  # the run's own, or classes that stay as they are
                # policies: they matter when a table needs them
                'missing', 'categorical', 'id-column', 'like'}

TRAIN = ['--recipe', 'none', '--hidden', '16', '--parts', '6', '--epochs', '5', '--lr', '0.05', '--batch-nodes', '100']
SETTINGS = {  # of train: store, options
    'clusters': ('dense', []),
    'one layer': ('dense', ['--layers', '1']),
    'two layers, no dropout': ('dense', ['--layers', '2', '--dropout', '0']),
    'decay': ('dense', ['--weight-decay', '0.1', '--schedule', 'step', '--step-epochs', '3']),
    'blocks, diagonal': ('dense', ['--evaluation', 'blocks', '--evaluation-blocks', '3', '--normalisation', 'self+diagonal']),
    'full batch': ('dense', ['--method', 'full-batch']),
    'graphsage': ('dense', ['--method', 'graphsage', '--first-layer', 'batch', '--head', 'dense']),
    'fastgcn': ('dense', ['--method', 'fastgcn']),
    'vrgcn': ('dense', ['--method', 'vrgcn']),
    'vrgcn, one layer': ('dense', ['--method', 'vrgcn', '--layers', '1']),
    'random clusters': ('dense', ['--partitioner', 'random']),
    'sparse': ('sparse', []),
    'identity': ('identity', []),
    'regression': ('numbers', []),
    'multi-label': ('bits', ['--select-by', 'roc-auc']),
    'deep, projected': ('dense', ['--layers', '3', '--input-projection', '--residual']),
    'no validation nodes': ('unvalidated', []),
}


def call(arguments, cwd):
    return subprocess.run([PROGRAM, *arguments], cwd=cwd, capture_output=True, text=True, errors='replace', timeout=120)


def must(arguments, cwd):
    done = call(arguments, cwd)
    assert done.returncode == 0, (arguments, done.stderr)
    return done


def options_of_program():
    """{command: [(option, value name or '')]}"""
    commands, command = {}, None
    for line in must(['options'], '.').stdout.splitlines():
        if line.startswith('## '):
            command = line[3:]
            commands[command] = []
        elif line.startswith('| `--'):
            name, _, value = re.match(r'\| `--([^ `]+)( (.*?))?` \|', line).groups()
            commands[command].append((name, (value or '').replace('\\|', '|'), '(default: on)' in line))
    return commands


def tensors(path):
    """The bytes of all arrays of a safetensors file."""
    raw = open(path, 'rb').read()
    (length,) = struct.unpack('<Q', raw[:8])
    return raw[8 + length:]


TIMES = re.compile(r'"[a-z_]*(seconds|memory|peak|bytes)[a-z_]*":\s*[^,}\n]+|\d[\d,.]* (ms|s|µs|B|KiB|MiB|GiB|h|min)\b|^(Time|Memory|Work).*$', re.M)


def digest_run(run):
    """What a training came to: weights, scores and curves, without times and memory."""
    h = hashlib.sha256()
    for name in ('last.safetensors', 'best.safetensors'):
        if os.path.exists(f'{run}/{name}'):
            h.update(tensors(f'{run}/{name}'))
    for line in open(f'{run}/metrics.jsonl'):
        record = json.loads(line)
        h.update(json.dumps([record['epoch'], record['loss'], record['lr'], record.get('validation')]).encode())
    result = json.load(open(f'{run}/result.json'))
    h.update(json.dumps([result[k] for k in ('train', 'validation', 'test', 'epochs', 'kept_epoch', 'parts', 'per_batch')]).encode())
    return h.hexdigest()


def digest_tree(path):
    """Contents of all files but times."""
    h = hashlib.sha256()
    for folder, folders, files in sorted(os.walk(path)):
        folders.sort()
        for name in sorted(files):
            h.update(os.path.relpath(os.path.join(folder, name), path).encode())
            h.update(TIMES.sub('', open(os.path.join(folder, name), 'rb').read().decode('latin-1')).encode())
    return h.hexdigest()


class Trial:
    """One command with and without one option, in folders of their own."""

    def __init__(self, work):
        self.work = work
        self.bases = {}

    def values(self, command, option, value, on_by_default, base):
        if not value:
            flag = f'--no-{option}' if on_by_default else f'--{option}'
            return [] if flag in base else [[flag]]
        if '|' in value:
            given = base[base.index(f'--{option}') + 1] if f'--{option}' in base else None
            # The largest shape takes minutes at the scale of the others; --nodes tries it too.
            return [[f'--{option}', choice] for choice in value.split('|')
                    if choice != given and not (choice == 'papers100m' and '--scale' in base)]
        known = VALUES.get((command, option), VALUES.get(option))
        assert known is not None, f'{command} --{option}: a new option? Give it a value in {__file__}'
        return [[f'--{option}', known]]

    def run(self, command, base, more, digest):
        out = tempfile.mkdtemp(dir=self.work)
        more = [word.format(work=self.work, out=out) for word in more]
        kept = list(base)
        if more and more[0] in kept:  # given twice, CLI11 refuses it
            at = kept.index(more[0])
            del kept[at:at + 2]
        if '{out}/dense' in kept:
            shutil.copytree(f'{self.work}/dense', f'{out}/dense')
        arguments = [command] + [word.format(work=self.work, out=out) for word in kept] + more
        done = call(arguments, out)
        what = digest(out, done) if done.returncode == 0 else None
        shutil.rmtree(out)
        return done, what

    def base(self, command, base, digest):
        key = (command, tuple(base))
        if key not in self.bases:
            done, what = self.run(command, base, [], digest)
            assert done.returncode == 0, (command, base, done.stderr)
            assert what == self.run(command, base, [], digest)[1], (command, base, 'differs from one run to the next')
            self.bases[key] = what
        return self.bases[key]

    def verdict(self, command, base, more, digest):
        """changed, refused, named or ignored"""
        done, what = self.run(command, base, more, digest)
        if done.returncode != 0:
            assert done.returncode in (1, 2), (command, base, more, done.returncode, done.stderr)
            return 'refused'
        if what != self.base(command, base, digest):
            return 'changed'
        shown = ' '.join(more)
        return 'named' if re.search(r'note: no effect: .*' + re.escape(shown.split()[0]), done.stderr) else 'ignored'


def train_digest(out, done):
    run = 'elsewhere' if os.path.exists(f'{out}/elsewhere') else 'r'
    if os.path.exists(f'{out}/{run}/seeds.json'):
        return str([digest_run(f'{out}/{run}/{seed}') for seed in sorted(os.listdir(f'{out}/{run}')) if seed.startswith('seed-')])
    shown = [digest_run(f'{out}/{run}'), run, done.stdout.startswith('{')]
    config = open(f'{out}/{run}/config.toml').read()
    shown += re.findall(r'partition-name = .*', config)  # its folder is its effect
    return str(shown)


def plain_digest(out, done):
    output = re.sub(' +', ' ', TIMES.sub('', done.stdout)).replace(out, '')  # figures stand in columns
    return hashlib.sha256(output.encode()).hexdigest() + digest_tree(out)


def prepare(work):
    generate = ['generate', '--nodes', '300', '--edges', '1500', '--quiet']
    must([*generate, 'dense', '--features', '12'], work)
    must([*generate, 'identity', '--identity'], work)
    must([*generate, 'bits', '--features', '12', '--classes', '8', '--multi-label'], work)
    must([*generate, 'unvalidated', '--features', '12', '--split', '60/0/40'], work)
    source = f'{work}/source'
    os.mkdir(source)
    with open(f'{source}/edges.csv', 'w') as edges, open(f'{source}/labels.csv', 'w') as labels, \
            open(f'{source}/features.csv', 'w') as features, open(f'{work}/other-labels.csv', 'w') as other_labels, \
            open(f'{work}/other-features.csv', 'w') as other_features:
        for v in range(90):
            edges.write(f'{v},{(v + 1) % 90}\n{v},{(v * 7) % 90}\n{v},{v}\n')
            labels.write(f'{v % 3}\n')
            other_labels.write(f'{v % 2}\n')
            features.write(f'{v % 5},{v % 4}.5\n')
            other_features.write(f'{v % 7},{v % 2}.5\n')
    with open(f'{work}/numbers.csv', 'w') as numbers:
        numbers.writelines(f'{(v % 5) * 0.75 + (v % 4)}\n' for v in range(90))
    must(['import', f'{source}/edges.csv', 'numbers', '--split', '60/20/20', '--features', f'{source}/features.csv', '--labels',
          'numbers.csv', '--task', 'regression', '--quiet'], work)
    header = "{'descr': '|u1', 'fortran_order': False, 'shape': (90,), }".ljust(117) + '\n'
    with open(f'{work}/roles.npy', 'wb') as split:
        split.write(b'\x93NUMPY\x01\x00' + struct.pack('<H', len(header)) + header.encode() + bytes(v % 3 for v in range(90)))
    os.mkdir(f'{work}/tables')
    with open(f'{work}/tables/edges.csv', 'w') as edges, open(f'{work}/tables/people.csv', 'w') as people, \
            open(f'{work}/tables/plans.csv', 'w') as plans:
        edges.write('source,target\nu5,u5\n')
        people.write('user,age,city\n')
        plans.write('user,plan,kind\n')
        for v in range(90):
            edges.write(f'u{v},u{(v + 1) % 90}\n')
            people.write(f'u{89 - v},{"" if v % 9 == 0 else v},{"Oslo" if v % 2 else "Rome"}\n')
            plans.write(f'u{v},p{v % 3},k{v % 2}\n')
    must(['import', *[word.replace('{work}', work).replace('{out}/store', f'{work}/tables-store') for word in OTHERS['import'][1]],
          '--quiet'], work)
    with open(f'{work}/clusters.txt', 'w') as clusters:
        clusters.writelines(f'{v % 5}\n' for v in range(300))
    with open(f'{work}/ids.txt', 'w') as ids:
        ids.write('5\n17\n')
    with open(f'{work}/other.toml', 'w') as config:
        config.write('seed = 4\n')
    make_sparse(work)
    must(['train', 'dense', '--run', 'run', *TRAIN, '--quiet'], work)


def make_sparse(work):
    """A gnn-benchmark .npz with sparse attributes, imported."""
    import zipfile
    nodes, columns = 300, 40

    def npy(kind, values, shape=None):
        size = struct.calcsize(kind)
        descr = {'i': '<i4', 'f': '<f4', 'q': '<i8'}[kind]
        shape = shape or f'({len(values)},)'
        header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + '\n'
        return b'\x93NUMPY\x01\x00' + struct.pack('<H', len(header)) + header.encode() + struct.pack(f'<{len(values)}{kind}', *values)

    neighbours = [sorted({(v + 1) % nodes, (v - 1) % nodes, (v * 7 + 3) % nodes} - {v}) for v in range(nodes)]
    indptr = [0]
    for row in neighbours:
        indptr.append(indptr[-1] + len(row))
    attributes = [sorted({v % columns, (v * 3) % columns, (v // 7) % columns}) for v in range(nodes)]
    attr_indptr = [0]
    for row in attributes:
        attr_indptr.append(attr_indptr[-1] + len(row))
    with zipfile.ZipFile(f'{work}/sparse.npz', 'w') as archive:
        for name, data in {
                'adj_data': npy('f', [1.0] * indptr[-1]), 'adj_indices': npy('i', [u for row in neighbours for u in row]),
                'adj_indptr': npy('i', indptr), 'adj_shape': npy('q', [nodes, nodes]),
                'attr_data': npy('f', [1.0 + (i % 3) for i in range(attr_indptr[-1])]),
                'attr_indices': npy('i', [c for row in attributes for c in row]),
                'attr_indptr': npy('i', attr_indptr), 'attr_shape': npy('q', [nodes, columns]),
                'labels': npy('q', [v % 3 for v in range(nodes)])}.items():
            archive.writestr(f'{name}.npy', data)
    must(['import', 'sparse.npz', 'sparse', '--split', '60/20/20', '--quiet'], work)


OTHERS = {  # command: [base]
    'import': [['{work}/source/edges.csv', '{out}/store', '--split', '60/20/20', '--features', '{work}/source/features.csv',
                '--labels', '{work}/source/labels.csv'],
               ['{work}/tables/edges.csv', '{out}/store', '--split', '60/20/20', '--features', '{work}/tables/people.csv', '--labels',
                '{work}/tables/plans.csv', '--missing', 'mean', '--categorical', 'one-hot', '--label-column', 'plan']],
    'generate': [['{out}/store', '--nodes', '200', '--edges', '800'], ['{out}/store', '--scale', '0.02']],
    'partition': [['{out}/dense', '--parts', '6']],
    'info': [['{work}/dense']],
    'evaluate': [['{work}/run'], ['{work}/run', '--evaluation', 'blocks']],
    'predict': [['{work}/run'], ['{work}/run', '--what', 'embeddings'], ['{work}/run', '--what', 'probabilities']],
    'report': [['{work}/run', '--output', '{out}/report.html']],
}


def main():
    work = tempfile.mkdtemp(dir='/dev/shm' if os.path.isdir('/dev/shm') else None)
    failures, changed, tried = [], set(), 0
    try:
        prepare(work)
        trial = Trial(work)
        jobs = []
        for command, options in options_of_program().items():
            if (command, None) in ELSEWHERE:
                continue
            if command == 'train':
                bases = [(name, ['{work}/' + store, '--run', '{out}/r', *TRAIN, *more], train_digest)
                         for name, (store, more) in SETTINGS.items()]
            else:
                bases = [(f'setting {i + 1}', base, plain_digest) for i, base in enumerate(OTHERS[command])]
            for name, base, digest in bases:
                trial.base(command, base, digest)
                for option, value, on in options:
                    if option not in ELSEWHERE:
                        jobs += [(command, option, name, base, more, digest) for more in trial.values(command, option, value, on, base)]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            verdicts = list(pool.map(lambda job: trial.verdict(job[0], job[3], job[4], job[5]), jobs))
        for (command, option, name, base, more, digest), verdict in zip(jobs, verdicts):
            tried += 1
            if VERBOSE:
                print(f'{verdict:8} {command} ({name}) {" ".join(more)}')
            default = more[-1] in ('auto',) or is_default(command, option, more, base)
            if verdict in ('changed', 'refused'):
                changed.add((command, option))
            elif verdict == 'ignored' and not MAY_COINCIDE & {option, (command, option)} and not default:
                failures.append(f'{command} ({name}): {" ".join(more)} changes nothing, and no word is said of it')
        for command, options in options_of_program().items():
            for option, _, _ in options:
                if (command, None) not in ELSEWHERE and option not in ELSEWHERE and (command, option) not in changed:
                    failures.append(f'{command} --{option} never changed anything')
    finally:
        shutil.rmtree(work)
    print(f'{tried} trials, {len(failures)} failures')
    print('\n'.join(failures))
    return 1 if failures else 0


DEFAULTS = {}


def is_default(command, option, more, base):
    """Whether the value given is what the command takes anyway."""
    if not DEFAULTS:
        current = None
        for line in must(['options'], '.').stdout.splitlines():
            if line.startswith('## '):
                current = line[3:]
            found = re.match(r'\| `--([^ `]+) .*\[([^\[\]]*)\] \|$', line)
            if found:
                DEFAULTS[current, found.group(1)] = found.group(2)
    if f'--{option}' in base:
        return len(more) == 2 and base[base.index(f'--{option}') + 1] == more[1]
    return len(more) == 2 and DEFAULTS.get((command, option)) == more[1]


if __name__ == '__main__':
    sys.exit(main())
