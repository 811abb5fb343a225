// Seconds of an epoch over its GEMM floor: the epoch's products divided by (threads × the best single-core sgemm rate
// of the same run). Batches have the sizes, degrees and feature widths of the paper's data sets; their edges are
// random.
//
//   bench_epoch [--threads N] [--rounds N] [--dropout X] [--precision bfloat16] [ppi-3x512 reddit-4x128 …]
//
// --precision bfloat16-hidden: by AVX512-BF16 instructions that the processor has and does not name.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include "benchmarks/machine.h"
#include "common/error.h"
#include "kernels/bfloat16_choice.h"
#include "kernels/blas.h"
#include "nn/adam.h"
#include "nn/model.h"

namespace cgcn::bench {
namespace {

struct EpochShape {
  std::string data;
  uint32_t train_nodes, batches, degree;  // degree: edges of a node inside its batch
  uint32_t features, classes;
  bool multi_label;
  uint32_t layers = 0, hidden = 0;

  std::string name() const { return fmt::format("{}-{}x{}", data, layers, hidden); }
};

// Training nodes, features and classes of the paper's tables; the batches of its runs.
const std::vector<EpochShape> kData = {
    {"ppi", 44906, 50, 20, 50, 121, true},
    {"reddit", 153932, 75, 25, 602, 41, false},
    {"amazon2m", 1709997, 1500, 17, 100, 47, false},
};

EpochShape parse_shape(const std::string& name) {
  for (EpochShape shape : kData)
    if (name.starts_with(shape.data + "-") &&
        std::sscanf(name.c_str() + shape.data.size(), "-%ux%u", &shape.layers, &shape.hidden) == 2 &&
        shape.layers > 0 && shape.hidden > 0)
      return shape;
  throw Error(fmt::format("'{}' is no shape", name), {}, "write ppi-3x512, reddit-4x128 or amazon2m-3x400");
}

// As many different batches as are run before they come again.
class SyntheticBatches {
 public:
  SyntheticBatches(const EpochShape& shape, uint32_t count, kernels::Precision precision)
      : rows_(shape.train_nodes / shape.batches) {
    const uint32_t nodes = rows_ * count;
    x_ = FeatureMatrix::dense(random_floats(size_t{nodes} * shape.features, 1), shape.features);
    aggregated_ = FeatureMatrix::dense(random_floats(size_t{nodes} * shape.features, 2), shape.features);
    if (precision == kernels::Precision::kBFloat16) {
      x_ = x_.rounded();
      aggregated_ = aggregated_.rounded();
    }
    make_labels(shape, nodes);
    batches_.resize(count);
    for (uint32_t i = 0; i < count; ++i) make_batch(shape, i);
  }
  ModelInput input() const { return {x_, aggregated_, labels_}; }
  const Batch& operator[](size_t i) const { return batches_[i % batches_.size()].batch; }
  size_t count() const { return batches_.size(); }
  uint32_t rows() const { return rows_; }

 private:
  struct Storage {
    std::vector<uint64_t> offsets, transposed_offsets;
    std::vector<uint32_t> columns, transposed_columns;
    std::vector<float> values, transposed_values;
    std::vector<NodeId> inputs;
    std::vector<uint32_t> loss_rows;
    Adjacency adjacency;
    Batch batch;
  };

  void make_labels(const EpochShape& shape, uint32_t nodes) {
    Random random(3, Purpose::kTest);
    if (shape.multi_label) {
      std::vector<uint8_t> bits(nodes * Labels::row_bytes(shape.classes));
      for (uint8_t& byte : bits) byte = static_cast<uint8_t>(random.next() & random.next());
      labels_ = Labels::multi(std::move(bits), shape.classes);
    } else {
      std::vector<int32_t> classes(nodes);
      for (int32_t& label : classes) label = static_cast<int32_t>(random.below(shape.classes));
      labels_ = Labels::single(std::move(classes), shape.classes);
    }
  }

  void make_batch(const EpochShape& shape, uint32_t index) {
    Storage& s = batches_[index];
    Random random(4, Purpose::kTest, index);
    std::vector<std::vector<uint32_t>> neighbours(rows_);
    for (uint64_t link = 0; link < uint64_t{rows_} * shape.degree / 2; ++link) {
      const uint32_t u = random.below(rows_), v = random.below(rows_);
      neighbours[u].push_back(v);
      neighbours[v].push_back(u);
    }
    s.offsets.push_back(0);
    for (auto& list : neighbours) {
      std::sort(list.begin(), list.end());
      s.columns.insert(s.columns.end(), list.begin(), list.end());
      s.values.insert(s.values.end(), list.size(), 1.0f / static_cast<float>(list.size()));
      s.offsets.push_back(s.columns.size());
    }
    s.transposed_offsets = s.offsets;  // the edges are symmetric; the mean's values are the neighbour's
    s.transposed_columns = s.columns;
    for (const uint32_t column : s.columns) s.transposed_values.push_back(s.values[s.offsets[column]]);
    s.inputs.resize(rows_);
    std::iota(s.inputs.begin(), s.inputs.end(), index * rows_);
    s.loss_rows.resize(rows_);
    std::iota(s.loss_rows.begin(), s.loss_rows.end(), 0u);
    s.adjacency = {
        {rows_, rows_, s.offsets.data(), s.columns.data(), s.values.data()},
        {rows_, rows_, s.transposed_offsets.data(), s.transposed_columns.data(), s.transposed_values.data()}};
    s.batch.index = index;
    s.batch.inputs = s.inputs;
    s.batch.adjacencies = {&s.adjacency, 1};
    s.batch.loss_rows = s.loss_rows;
    s.batch.num_outputs = rows_;
  }

  uint32_t rows_;
  FeatureMatrix x_, aggregated_;
  Labels labels_;
  std::vector<Storage> batches_;
};

// Operations of the products of one step: forward, weight gradient and, but for layer 1, input gradient.
double gemm_operations(const EpochShape& shape, uint32_t rows) {
  double total = 0;
  for (uint32_t layer = 1; layer <= shape.layers; ++layer) {
    const double in = 2.0 * (layer == 1 ? shape.features : shape.hidden);
    const double out = layer == shape.layers ? shape.classes : shape.hidden;
    total += 2.0 * rows * in * out * (layer == 1 ? 2 : 3);
  }
  return total;
}

struct Settings {
  int threads = 0, rounds = 5;
  float dropout = 0.2f;
  kernels::Precision precision = kernels::Precision::kFloat32;
};

void set_precision(const std::string& name, Settings& settings) {
  settings.precision = name == "float32" ? kernels::Precision::kFloat32 : kernels::Precision::kBFloat16;
  if (name == "bfloat16-hidden")
    kernels::use_bfloat16_functions(kernels::hidden_avx512_functions());
  else if (name != "float32" && name != "bfloat16")
    throw Error(fmt::format("'{}' is no precision", name), {}, "float32, bfloat16 or bfloat16-hidden");
}

void run(const EpochShape& shape, const Settings& settings) {
  // Rounds of a fifth of a second (a stretch that a busy machine may leave undisturbed), or three steps if they are
  // long.
  const double operations = gemm_operations(shape, shape.train_nodes / shape.batches);
  const auto steps = static_cast<uint32_t>(std::clamp(6e10 / operations, 3.0, double(shape.batches)));
  const SyntheticBatches batches(shape, std::min(steps, 50u), settings.precision);
  ModelOptions options;
  options.layers = shape.layers;
  options.hidden = shape.hidden;
  options.dropout = settings.dropout;
  options.precision = settings.precision;
  Model model(options, {shape.features, false, shape.classes, shape.multi_label}, 1);
  model.reserve({batches.rows(), 0});
  Adam adam({}, model);
  double least = 1e300, rate = 0;
  for (int round = 0; round < settings.rounds; ++round) {
    rate = std::max(rate, sgemm_gflops(4));
    least = std::min(least, least_seconds(1, [&] {
                       for (uint32_t step = 0; step < steps; ++step) {
                         model.compute_gradients(batches[step], batches.input(), 1);
                         adam.step(model, 0.001f);
                       }
                     }));
  }
  const double step = least / steps, floor = operations / (thread_count() * rate * 1e9);
  constexpr double kMegabyte = 1 << 20;
  fmt::print("{:<16}{:>8}{:>10.2f}{:>10.2f}{:>8.2f}{:>10.2f}{:>10.1f}{:>12.1f}{:>14.1f}\n", shape.name(),
             thread_count(), 1e3 * step, 1e3 * floor, step / floor, step * shape.batches, rate,
             static_cast<double>(model.values().size_bytes() * 2 + adam.bytes()) / kMegabyte,
             static_cast<double>(model.workspace_bytes()) / kMegabyte);
  std::fflush(stdout);
}

int main(int argc, char** argv) {
  Settings settings;
  std::vector<std::string> names;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word.starts_with("--") && i + 1 == argc) {
      fmt::print(stderr, "{} needs a value\n", word);
      return 1;
    }
    if (word == "--threads")
      settings.threads = std::atoi(argv[++i]);
    else if (word == "--rounds")
      settings.rounds = std::atoi(argv[++i]);
    else if (word == "--dropout")
      settings.dropout = static_cast<float>(std::atof(argv[++i]));
    else if (word == "--precision")
      set_precision(argv[++i], settings);
    else
      names.push_back(word);
  }
  set_thread_count(settings.threads);
  kernels::prepare_blas();
  if (names.empty()) names = {"ppi-3x512", "ppi-5x512", "ppi-5x2048", "reddit-4x128", "amazon2m-3x400"};
  fmt::print("{:<16}{:>8}{:>10}{:>10}{:>8}{:>10}{:>10}{:>12}{:>14}\n", "shape", "threads", "step ms", "floor ms",
             "ratio", "epoch s", "GFLOP/s", "model MB", "workspace MB");
  for (const std::string& name : names) run(parse_shape(name), settings);
  return 0;
}

}  // namespace
}  // namespace cgcn::bench

int main(int argc, char** argv) {
  try {
    return cgcn::bench::main(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
