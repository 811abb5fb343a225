#!/usr/bin/env python3
"""Mutation testing: makes one mistake at a time and looks whether the tests notice.

    tools/mutate.py                     all mutations; ninja -C build/release mutate does the same
    tools/mutate.py --list              what they are
    tools/mutate.py --only WORD …       those whose name, file or module has one of these words
    tools/mutate.py --check             only whether every mutation still fits the source (seconds)

Works on a copy of the source in build/mutants, so that nothing else is touched. Each mutation is a text that occurs once in a file and
what to put in its place; the tests named with it (a module's binary, with a filter if it is slow) are built and run. A mutation
that no test notices has survived: kill it with an exact test, or give the reason why it must survive in the table below. Exit code 1 if one
survives without a reason, or no longer fits. Not part of continuous integration: it takes a build per mutation, about a quarter of an hour on two idle cores.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCE = ROOT / "build" / "mutants"  # the copy
BUILD = SOURCE / "build" / "release"

# (name, file under src, text, replacement, tests, why it may survive)
# tests: binaries, each with an optional filter after a colon; or a script under tests, which gets the program.
MUTATIONS = [
    # common
    ("strings are hashed without their length", "common/hash.cc", "  add_value<uint64_t>(text.size());\n", "", ["common"], ""),
    ("numbers outside an option's range are taken", "common/options.cc", "if (number < low_ || number > high_)", "if (number != number)", ["common"], ""),
    ("memory that is resident is not counted", "common/memory_budget.cc", "memory_figures().rss + kMemoryMargin + needed", "needed",
     ["cli:Memory.ARefusalNamesABudgetThatWorks"], ""),
    # kernels
    ("no ReLU", "kernels/activation.cc", "hn::Add(hn::Max(y, hn::Zero(d)), added)", "hn::Add(y, added)", ["kernels"], ""),
    ("LayerNorm's variance is unbiased", "kernels/activation.cc", "squares / static_cast<float>(width)", "squares / static_cast<float>(width > 1 ? width - 1 : 1)", ["kernels"], ""),
    ("Adam without epsilon", "kernels/adam_step.cc", "hn::MulAdd(hn::Sqrt(second), second_scale, epsilon)", "hn::Mul(hn::Sqrt(second), second_scale)", ["kernels"], ""),
    ("NaN is finite", "kernels/adam_step.cc", "return hn::GetLane(hn::SumOfLanes(d, poison)) == 0;", "return hn::GetLane(hn::SumOfLanes(d, poison)) == 0 || true;", ["kernels"], ""),
    # graph
    ("lambda without the 1", "graph/normalisation.cc", "(1 + lambda) * scale", "lambda * scale", ["graph"], ""),
    ("symmetric normalisation without self-loops in the degree", "graph/normalisation.cc", "1 / std::sqrt(degree + 1)", "1 / std::sqrt(degree + 0.5)", ["graph"], ""),
    ("weights of repeated edges: the last one wins", "graph/graph_builder.cc", "weights[length - 1] += weight;", "weights[length - 1] = weight;", ["graph"], ""),
    ("edges in memory make no room for a long row", "graph/graph_builder.cc", "if (memory_left(options_.memory) < least) edges_.spill();", "",
     ["cli:Memory.AnImportNamesABudgetThatWorks"], ""),
    ("a store's bytes are not compared with their checksum", "graph/store.cc",
     'if (json(hex64(hasher.digest64())) != meta_.at("arrays").at(names[i]).at("checksum"))', "if (false)", ["graph"], ""),
    # io
    ("GraphSAINT: validation and test exchanged", "io/formats/graphsaint_reader.cc", 'key == "va" ? Role::kValidation', 'key == "va" ? Role::kTest', ["io"], ""),
    ("GraphSAGE: val is test", "io/serialised/graph_json.cc", '(key == "val" ? validation : test) = json_.read_flag();', '(key == "val" ? test : validation) = json_.read_flag();', ["io"], ""),
    ("a first line of unknown words is always an edge", "io/formats/text_files.cc", "if (first == FirstEdge::kOnlyOneAlone) {", "if (false) {", ["io:TextHeaders*"], ""),
    ("a table's column names say nothing of the edges' header", "io/formats/text_files.cc", "if (head.find(word) != TableHead::kNone) {", "if (false) {", ["io:TextHeaders*"], ""),
    ("OGB: validation and test exchanged", "io/formats/ogb_reader.cc", '{"train.csv", "valid.csv", "test.csv"}', '{"train.csv", "test.csv", "valid.csv"}', ["io"], ""),
    ("a column of ids with an unknown name is a feature", "io/text/node_column.cc", "const bool by_values = may_be_ids(head, c) && (head.header || c == 0 || head.rows.size() >= kFewRows);",
     "const bool by_values = false;", ["io"], ""),
    ("missing values are filled with the mean over all nodes", "io/text/feature_table.cc", "if (roles[row++] != static_cast<uint8_t>(Role::kTrain)) return;", "++row;", ["io"], ""),
    ("unknown categories are not counted", "io/text/feature_table.cc", "++column.unseen;", "column.unseen += 0;", ["io"], ""),
    ("blank labels are a class", "io/text/class_table.cc", "if (means_none(texts_[i])) continue;", "", ["io"], ""),
    ("the ids of a split file are ignored", "io/text/split_table.cc", "const NodeId v = ids.exists() ? index.final(node) : node;", "const auto v = static_cast<NodeId>(rows - 1);", ["io"], ""),
    ("one-hot rows stay multi-label", "io/formats/import_steps.cc", "if (labels.multi_label() && !options.multi_label)", "if (false)", ["io"], ""),
    # generate
    ("the split is drawn with another seed", "generate/generate.cc", "store.write_split(draw_split(shape, labels, seed));", "store.write_split(draw_split(shape, labels, 1));", ["generate"], ""),
    ("no label noise", "generate/node_classes.cc", "random.shuffle(std::span(moved));", "", ["generate"], ""),
    # partition
    ("entropy in nats", "partition/quality.cc", "std::log2(count / total)", "std::log(count / total)", ["partition"], ""),
    ("A·X of other content is taken", "partition/kept_product.cc", '{"content", data.content_hash}', '{"content", data.content_hash.substr(0, 0)}', ["partition"], ""),
    ("the order of clusters is the same for every seed", "partition/partition.cc", "Random(seed, Purpose::kBatchOrder, epoch).shuffle(clusters);",
     "Random(0 * seed + 1, Purpose::kBatchOrder, epoch).shuffle(clusters);", ["batch:Draws*", "partition"], ""),
    # batch
    ("the same cluster order every epoch", "batch/cluster_batches.cc", "shuffle_clusters(storage.order, options_.seed, epoch);", "shuffle_clusters(storage.order, options_.seed, 0);", ["batch:Draws*"], ""),
    ("independent draws ignore the batch's number", "batch/cluster_batches.cc", "Purpose::kBatchOrder, epoch, index, 1)", "Purpose::kBatchOrder, epoch, 0, 1)", ["batch:Draws*:*Batches*"], ""),
    ("neighbour samples ignore the batch's number", "batch/neighbour_sampler.cc", "draw.epoch, draw.index, draw.layer}", "draw.epoch, 0, draw.layer}", ["batch:Draws*"], ""),
    ("neighbour samples ignore the layer", "batch/neighbour_sampler.cc", "draw.epoch, draw.index, draw.layer}", "draw.epoch, draw.index, 0}", ["batch:Draws*"], ""),
    ("fan-outs reversed over layers", "batch/neighbour_sampler.cc", "options_.layers - layer,", "layer - 2,", ["batch:Draws*"], ""),
    ("sampled edges are not scaled by n/s", "batch/neighbour_sampler.cc", "static_cast<float>(n) / static_cast<float>(s);", "1;", ["batch"], ""),
    ("importance by the norm where the square is asked", "batch/importance_sampler.cc", "double{value} * value;", "std::abs(double{value});", ["batch"], ""),
    ("targets come in the same order every epoch", "batch/sampled_batches.cc", "Random(options_.seed, Purpose::kBatchOrder, epoch).shuffle", "Random(options_.seed, Purpose::kBatchOrder, 0).shuffle", ["batch"], ""),
    ("a batch norm's gradient forgets the mean", "kernels/batch_norm.cc", "hn::NegMulAdd(share, load(offset_gradient), g);", "hn::NegMulAdd(hn::Sub(share, share), load(offset_gradient), g);", ["kernels", "nn"], ""),
    # nn
    ("squared errors have half their gradient", "nn/loss.cc", "2 * error * scale", "error * scale", ["nn"], ""),
    ("decay scope ignored", "nn/adam.cc", "options_.decay_scope == DecayScope::kAll || is_of_first_layer(model, p)", "(is_of_first_layer(model, p), true)", ["train:ExactTest.Decay*"], ""),
    ("dense Adam ignored", "nn/adam.cc", "options_.dense ? TouchedRows{} : model.touched_rows(i)", "model.touched_rows(i)", ["nn"], ""),
    ("Glorot with half the variance", "nn/parameters.cc", "std::sqrt(6.0f /", "std::sqrt(3.0f /", ["nn"], ""),
    ("no residual", "nn/convolution.cc", "residual_(options.residual && !shape.last)", "residual_(false)", ["nn"], ""),
    ("nodes without a label count in the loss's mean", "nn/loss.cc", "static_cast<double>(loss_rows.size()) *", "static_cast<double>(logits.rows) *", ["nn"], ""),
    ("the history keeps its first values", "nn/history.cc", "std::copy_n(below_rows.row(r), below.width, kept.row(nodes[r]));", "if (kept.row(nodes[r])[0] == 0) std::copy_n(below_rows.row(r), below.width, kept.row(nodes[r]));", ["train:Methods*:*VrGcn*:*History*", "nn"], ""),
    # train
    ("the final test is done on blocks", "train/run_evaluation.cc", "return evaluate_exactly_in_budget(/*show_progress=*/true, work, hidden);", "if (input_.cluster_evaluator) return input_.cluster_evaluator->evaluate(model_, rule()); return evaluate_exactly_in_budget(/*show_progress=*/true, work, hidden);", ["train:ExactTest.TheTest*"], ""),
    ("block evaluation keeps cut edges", "train/evaluation.cc", "batches_(layout_, {.normalisation", "batches_(layout_, {.clusters_per_batch = layout_.num_clusters(), .normalisation", ["train:ExactTest.Blocks*"], ""),
    ("at the same score the worse loss is kept", "train/run_checkpoints.cc", "validation.loss < best.best_loss", "validation.loss > best.best_loss", ["train:TrainingTest.*"], ""),
    ("a longer run remembers a validation out of turn", "train/run_checkpoints.cc", "if (state().epoch < epochs) state().standing = state().regular;", "", ["train:CheckpointTest.*"], ""),
    ("checksums are not compared", "train/safetensors.cc", "if (has_checksums()) compare_checksums();", "", ["train:CheckpointTest.*"], ""),
    ("weights that are not finite are taken", "train/checkpoint.cc", "if (!kernels::all_finite(out.size(), out.data()))", "if (false)", ["train:CheckpointTest.*"], ""),
    ("an edited configuration is taken", "train/run_checkpoints.cc", "then != option.text() && !option.may_change_on_resume()", "false", ["train:CheckpointTest.*"], ""),
    ("standardised on all nodes", "train/standardise.cc", "if (data.role(static_cast<NodeId>(v)) != Role::kTrain) continue;", "", ["train:Standardise*"], ""),
    ("macro F1 counts classes that nobody has", "train/metrics.cc", "if (counts.support() + counts.false_positives == 0) continue;", "", ["train:*Metrics*:*Tally*:*Scores*"], ""),
    ("the cosine schedule is an epoch ahead", "train/train_options.cc", "std::cos(std::numbers::pi * epoch / epochs)", "std::cos(std::numbers::pi * (epoch + 1) / epochs)", ["train:RunOptions*"], ""),
    ("stages of inference take the input for their messages", "train/inference.cc", "own_messages ? made : own;", "false ? made : own;", ["train:InferenceTest*"], ""),
    ("a neighbourhood leaves the last block incomplete", "train/neighbourhood.cc", "if (rows.empty() || rows.back() < first) return;", "return;", ["train:ExactTest.TheNeighbourhood*"],
     "on processors whose products have the same bits for any number of rows nothing differs; it is for those where they do not"),
    ("a damaged or lost best model is not looked for", "train/run_checkpoints.cc", "if (state().standing.best_epoch > 0) find_best();", "", ["train:CheckpointTest.*"], ""),
    ("feature columns are matched by position", "train/predictor.cc", "saved_.scaling.columns = match_columns(saved_, data_);", "(void)match_columns(saved_, data_);", ["cli:Tables*"], ""),
    ("ties count as won in ROC-AUC", "train/ranking.cc", "static_cast<double>(with + with_now);", "static_cast<double>(2 * with_now);", ["train:Ranking*"], ""),
    ("the temperature is fitted on all nodes", "train/calibration.cc", "if (data.role(v) != Role::kValidation) continue;", "", ["train:Calibration*"], ""),
    ("smoothing starts from the labels of all nodes", "train/smoothing.cc", "            if (!is_known(data_, v, Role::kTrain)) continue;\n            for", "            if (!data_.labels.known(v)) continue;\n            for", ["cli/scores_test.py"], ""),
    ("balanced weights count absent classes", "train/class_weights.cc", "all / (present * count)", "all / ((present - present + classes) * count)", ["train:ClassWeights.*"], ""),
    ("the deviation over seeds is divided by n", "train/seed_scores.cc", "squares / (count - 1)", "squares / count", ["cli/scores_test.py"], ""),
    # dist, engine
    ("a rank sums its own share only", "dist/slot_sum.cc", "for (const TreeNode node : subtrees_of(slots_of(r, ranks, slots_), slots_)) sum.push(node, *arriving++, add);", "static_cast<void>(arriving);", ["dist"], ""),
    ("weights of the two directions of an edge may differ", "engine/arrays.cc", "if (graph.neighbour_weights(neighbours[i])[place] != graph.neighbour_weights(v)[i]) fine = false;", "(void)place;", ["engine"], ""),
    ("a downloaded file's checksum is not compared", "download/download.cc", "if (file.checksum != 0 && checksum(mapped.bytes().data(), mapped.bytes().size()) != file.checksum)", "if (false)", ["cli/download_test.py"], ""),
    # report, reproduce, cli
    ("a histogram drops its largest value", "report/figures.cc", "static_cast<double>(bins - 1)))];", "static_cast<double>(bins)))];" , ["report"], ""),
    ("the paper's figures are left out of the tables", "reproduce/tables.cc", "!std::isnan(published(r, c));", "false;", ["reproduce"], ""),
    ("predict takes a class below its threshold", "engine/prediction.cc", "if (logits[c] > predictor_.saved().rule.threshold(c)) classes.push_back(c);", "if (logits[c] > predictor_.saved().rule.threshold(c) - 1) classes.push_back(c);", ["cli/scores_test.py", "cli:EndToEnd*"], ""),
    ("options without effect are not named", "cli/command.cc", 'if (!notes.empty()) log::write_line', "if (false) log::write_line", ["cli:Runs.Options*"], ""),
]


def fits(mutation):
    name, file, text, replacement, _, _ = mutation
    path = ROOT / "src" / file
    count = path.read_text().count(text) if path.exists() else 0
    if count != 1:
        print(f"does not fit: {name}: its text is {count} times in src/{file}")
    return count == 1


def adapted(name):
    """A file of the source as the copy has it: the sources that are mutated compiled alone, which a mutation then compiles in seconds, and all fast."""
    content = (ROOT / name).read_bytes()
    if name == "cmake/Modules.cmake":
        alone = " ".join(sorted({f"${{PROJECT_SOURCE_DIR}}/src/{file}" for _, file, *_ in MUTATIONS if file.endswith(".cc")}))
        last = b"  cgcn_unity(cgcn_${name})\n"
        assert content.count(last) == 1
        content = content.replace(last, last + f"  target_compile_options(cgcn_${{name}} PRIVATE -O1 -g0)\n"
                                  f"  set_source_files_properties({alone} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)\n".encode())
    return content


def prepare():
    source = SOURCE
    source.mkdir(parents=True, exist_ok=True)
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for folder in ("src", "tests"):  # what was renamed or deleted
        for old in (source / folder).rglob("*"):
            if old.is_file() and str(old.relative_to(source)) not in listed.splitlines():
                old.unlink()
    for name in listed.splitlines():
        to = source / name
        if not (ROOT / name).is_file():
            continue
        content = adapted(name)
        if not to.exists() or to.read_bytes() != content:
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_bytes(content)
            shutil.copymode(ROOT / name, to)
    subprocess.run(["cmake", "--preset", "release", "-DCGCN_TESTS=ON", "-DCGCN_BENCHMARKS=OFF"], cwd=source, check=True, stdout=subprocess.DEVNULL)
    return source


def noticed(tests, jobs):
    """killed, survived, or does not build"""
    targets = ["clustergcn" if test.endswith(".py") else f"test_{test.split(':')[0]}" for test in tests]
    built = subprocess.run(["ninja", "-C", BUILD, f"-j{jobs}", *targets], capture_output=True, text=True)
    if built.returncode != 0:
        return "does not build:\n" + built.stdout[-2000:]
    for test in tests:
        binary, _, chosen = test.partition(":")
        command = [BUILD / "tests" / f"test_{binary}", f"--gtest_filter={chosen or '*'}", "--gtest_brief=1", "--gtest_fail_fast"]
        if test.endswith(".py"):
            command = ["/usr/bin/python3", SOURCE / "tests" / test, BUILD / "clustergcn", os.environ.get("CLUSTERGCN_DATA", ROOT.parent / "shared" / "data")]
        try:
            ran = subprocess.run(command, capture_output=True, text=True, timeout=600)
        except subprocess.TimeoutExpired:
            return "killed (it hangs)"
        if test.endswith(".py"):
            if ran.returncode == 77:
                return f"does not build: {ran.stdout.strip()}"
            if ran.returncode != 0:
                return f"killed by {test}"
            continue
        if ran.returncode != 0:
            failed = [line.split("] ")[1].split(" (")[0] for line in ran.stdout.splitlines() if line.startswith("[  FAILED  ]")]
            return "killed by " + (failed[0] if failed else f"test_{binary}, exit code {ran.returncode}")
        if "Running 0 tests" in ran.stdout or "[  PASSED  ] 0 tests" in ran.stdout:
            return f"does not build: no test matches {test}"
    return "survived"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    chosen = [m for m in MUTATIONS if not given.only or any(word in f"{m[0]} {m[1]}" for word in given.only)]
    if given.list:
        for name, file, *_ in chosen:
            print(f"{file}: {name}")
        return 0
    if not all([fits(m) for m in chosen]):
        return 1
    if given.check:
        print(f"{len(chosen)} mutations fit the source")
        return 0
    source = prepare()
    tests = sorted({test for mutation in chosen for test in mutation[4]})
    if (result := noticed(tests, given.jobs)) != "survived":
        print(f"without any mutation: {result}")
        return 1
    bad = 0
    for mutation in chosen:
        name, file, text, replacement, tests, reason = mutation
        path = source / "src" / file
        original = path.read_text()
        begun = time.time()
        try:
            path.write_text(original.replace(text, replacement))
            result = noticed(tests, given.jobs)
        finally:
            path.write_text(original)
        if not result.startswith("killed"):
            if result == "survived" and reason:
                result += f", as it may: {reason}"
            else:
                bad += 1
        print(f"{file}: {name}: {result} ({time.time() - begun:.0f} s)", flush=True)
    print(f"{len(chosen)} mutations, {bad} that no test notices")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
