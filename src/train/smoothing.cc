#include "train/smoothing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "common/error.h"
#include "common/interrupt.h"
#include "common/memory_budget.h"
#include "common/progress.h"
#include "common/threads.h"
#include "graph/normalised_rows.h"
#include "kernels/spmm.h"
#include "train/calibration.h"
#include "train/graph_share.h"
#include "train/metrics.h"
#include "train/predictor.h"
#include "train/ranking.h"
#include "train/selection.h"
#include "train/thresholds.h"

namespace cgcn {
namespace {

using kernels::ConstMatrix;
using kernels::Matrix;
using kernels::RowRange;

constexpr size_t kSmoothedRows = 4096;  // read and written at a time
constexpr double kLargestScale = 1000;
constexpr double kLeastReserve = 1e-6;  // ε: a float holds 1 less that
// t, which is one of these times that of one class per node, divided by the classes, or of many.
constexpr double kLeastShare = 0.01, kLeastBit = 0.001, kLeasts[] = {1, 3, 10, 30, 100, 300};

bool is_known(const Dataset& data, NodeId v, Role role) { return data.role(v) == role && data.labels.known(v); }

float label_bit(const Labels& labels, NodeId v, uint32_t c) {
  return (labels.multi_label() ? labels.has(v, c) : labels.class_of(v) == static_cast<int32_t>(c)) ? 1.0f : 0.0f;
}

class Smoother {
 public:
  Smoother(const Dataset& data, const SmoothingRequest& request, size_t classes, uint64_t memory)
      : data_(data),
        kind_(request.kind),
        by_(selection_of(request.by, data.labels)),
        chooses_thresholds_(request.chooses_thresholds && data.labels.multi_label()),
        rows_(data.graph, {.kind = NormalisationKind::kSymmetric}),
        nodes_(data.num_nodes()),
        classes_(classes) {
    const uint64_t column = uint64_t{nodes_} * sizeof(float), fixed = rows_.bytes() + scratch_bytes(classes);
    const uint64_t left = memory > fixed ? memory - fixed : 0;
    // Three matrices and three columns of work for each: everything in memory, or slabs on disk.
    keeps_pages_ = left >= column * 6 * classes && left - column * 6 * classes >= data.graph.stored_bytes();
    if (!keeps_pages_) slab_columns_ = std::clamp<size_t>(static_cast<size_t>(left / (3 * column)), 1, classes);
  }

  static uint64_t scratch_bytes(size_t classes) {
    return 4 * kSmoothedRows * classes * sizeof(float) + kInferenceBlock * 1024 * static_cast<uint64_t>(thread_count());
  }

  // rule: of the logits as they are.
  SmoothingChoice run(SlabMatrix& logits, const OutputRule& rule) {
    SlabMatrix base = make_matrix();
    for_each_row(
        base,
        [&](std::span<float> row) {
          if (kind_ == Smoothing::kLabels)
            std::fill(row.begin(), row.end(), 0.0f);
          else
            to_probabilities(row, data_.labels.multi_label());
        },
        &logits);
    SmoothingChoice choice;
    if (!std::isfinite(score(logits, rule, Role::kValidation))) by_ = SelectBy::kMicroF1;  // validation has one class
    choice.by = by_;
    choice.before = choice.after = score(logits, rule, Role::kValidation);
    choice.test_before = score(logits, rule, Role::kTest, SelectBy::kMicroF1);
    if (kind_ == Smoothing::kLabels) choice.after = -INFINITY;  // the model's own scores are no part of it
    if (kind_ == Smoothing::kCorrect || kind_ == Smoothing::kBoth) choose_correction(base, choice);
    if (kind_ != Smoothing::kCorrect) choose_smoothing(base, choice);
    if (!choice.chosen()) return choice;
    Output output = to_output(base, true);
    logits = std::move(output.logits);
    choice.temperature = output.temperature;
    choice.rule = std::move(output.rule);
    return choice;
  }

 private:
  SlabMatrix make_matrix() const { return {nodes_, classes_, slab_columns_}; }

  // work(rows, what they become, the same rows of `beside`) on blocks of rows; what they become starts as the rows of
  // `from`, or of the matrix itself.
  template <class Work>
  void rewrite(SlabMatrix& matrix, Work&& work, const SlabMatrix* from = nullptr, const SlabMatrix* beside = nullptr) {
    const SlabMatrix& source = from != nullptr ? *from : matrix;
    Buffer<float> read(kSmoothedRows * classes_), other(kSmoothedRows * classes_), written(kSmoothedRows * classes_);
    for (size_t begin = 0; begin < nodes_; begin += kSmoothedRows) {
      throw_if_interrupted();
      const RowRange range{begin, std::min<size_t>(nodes_, begin + kSmoothedRows)};
      const ConstMatrix rows = source.read_rows(range, read.data());
      const ConstMatrix besides = beside != nullptr ? beside->read_rows(range, other.data()) : ConstMatrix();
      const Matrix out = matrix.place_rows(range, written.data());
      if (out.data != rows.data) std::copy_n(rows.data, range.size() * classes_, out.data);
      parallel_blocks(range.size(), kInferenceBlock, [&](size_t first, size_t last) {
        work(RowRange{range.begin + first, range.begin + last}, out.rows_from(first, last),
             beside != nullptr ? besides.rows_from(first, last) : ConstMatrix());
      });
      matrix.write_rows(range, written.data());
    }
  }

  // work(row) on every row, which starts as that of `from`, or as it is.
  template <class Work>
  void for_each_row(SlabMatrix& matrix, Work&& work, const SlabMatrix* from = nullptr) {
    rewrite(
        matrix,
        [&](RowRange, Matrix out, ConstMatrix) {
          for (size_t r = 0; r < out.rows; ++r) work(std::span<float>(out.row(r), classes_));
        },
        from);
  }

  // What is propagated at once is a slab, or all of a matrix that is in memory.
  void load(const SlabMatrix& matrix, size_t slab, float* out) const {
    if (matrix.spilled())
      matrix.read_slab_rows(slab, {0, nodes_}, out);
    else
      std::copy_n(matrix.matrix().data, nodes_ * classes_, out);
  }
  void store(SlabMatrix& matrix, size_t slab, const float* values) const {
    if (matrix.spilled())
      matrix.write_slab_rows(slab, {0, nodes_}, values);
    else
      std::copy_n(values, nodes_ * classes_, matrix.matrix().data);
  }

  // All steps of as many columns as fit, then the next.
  SlabMatrix propagate(const SlabMatrix& start, double alpha) {
    SlabMatrix out = make_matrix();
    for (size_t slab = 0; slab < out.num_slabs(); ++slab) {
      const size_t width = out.slab_columns(slab).size();
      Buffer<float> kept(nodes_ * width), now(nodes_ * width), next(nodes_ * width);
      load(start, slab, kept.data());
      std::copy(kept.begin(), kept.end(), now.begin());
      for (uint32_t step = 0; step < kPropagationSteps; ++step) {
        propagate_once(kept.data(), now.data(), next.data(), width, static_cast<float>(alpha));
        std::swap(now, next);
      }
      store(out, slab, now.data());
    }
    return out;
  }

  void propagate_once(const float* kept, const float* now, float* next, size_t width, float alpha) {
    parallel_blocks(nodes_, kInferenceBlock, [&](size_t begin, size_t end) {
      throw_if_interrupted();
      NormalisedRows::SparseRows links;
      rows_.fill(begin, end, links);
      float* out = next + begin * width;
      kernels::aggregate(links.view, ConstMatrix(now, nodes_, width), {0, end - begin},
                         Matrix(out, end - begin, width));
      for (size_t i = 0; i < (end - begin) * width; ++i)
        out[i] = alpha * out[i] + (1 - alpha) * kept[begin * width + i];
      if (!keeps_pages_) data_.graph.release_rows(begin, end);
    });
  }

  // Of the nodes of a role.
  double score(const SlabMatrix& logits, const OutputRule& rule, Role role) { return score(logits, rule, role, by_); }
  double score(const SlabMatrix& logits, const OutputRule& rule, Role role, SelectBy by) {
    Tally tally(data_.labels.num_classes(), data_.labels.multi_label());
    Buffer<float> scratch(kSmoothedRows * classes_);
    for (size_t begin = 0; begin < nodes_; begin += kSmoothedRows) {
      const RowRange range{begin, std::min<size_t>(nodes_, begin + kSmoothedRows)};
      const ConstMatrix rows = logits.read_rows(range, scratch.data());
      std::vector<NodeId> scored;
      for (size_t v = range.begin; v < range.end; ++v)
        if (is_known(data_, static_cast<NodeId>(v), role)) scored.push_back(static_cast<NodeId>(v));
      tally.add(rows.data, classes_, static_cast<NodeId>(begin), scored, data_.labels, rule);
    }
    if (selects_by_rank(by))
      if (const std::optional<RankScores> ranking = rank_role(logits, data_, role, /*memory=*/0))
        tally.set_ranking(*ranking);
    return selection_score(tally.scores(), by);
  }

  // z at the head of smoothing.h.
  void to_logits(std::span<float> row, double factor) const {
    const bool multi = data_.labels.multi_label();
    const double least = factor * (multi ? kLeastBit : kLeastShare / static_cast<double>(classes_));
    const auto inner = [&](double share) { return share >= least ? share : least * least / (2 * least - share); };
    double total = 0;
    for (size_t c = 0; c < classes_; ++c) total += std::max(row[c], 0.0f);
    for (size_t c = 0; c < classes_; ++c) {
      const double share = multi || total == 0 ? row[c] : row[c] / total;
      row[c] = static_cast<float>(std::log(inner(share)) - (multi ? std::log(inner(1 - share)) : 0));
    }
  }

  // The logits of p at the head of smoothing.h, for a row of z. Rounding may make two equal: the class is kept.
  void calibrate_row(std::span<float> row, double temperature, double reserve) const {
    if (data_.labels.multi_label()) {
      for (float& z : row) {
        const double e = std::exp(-std::abs(z) / temperature), more = (1 - reserve) / (1 + e) + reserve / 2;
        const double less = (1 - reserve) * e / (1 + e) + reserve / 2;
        const auto odds = static_cast<float>(std::log(more / less));
        z = z > 0 ? std::max(odds, std::numeric_limits<float>::min()) : -odds;
      }
      return;
    }
    const uint32_t label = largest_class(row);
    const double largest = row[label];
    double sum = 0;
    for (const float z : row) sum += std::exp((z - largest) / temperature);
    for (float& z : row) {
      const double share = std::exp((z - largest) / temperature) / sum;
      z = static_cast<float>(std::log((1 - reserve) * share + reserve / static_cast<double>(classes_)));
    }
    if (const uint32_t first = largest_class(row); first != label) row[label] = std::nextafter(row[first], INFINITY);
  }

  // Logits, and what goes with them.
  struct Output {
    SlabMatrix logits;
    double temperature;
    OutputRule rule;
  };

  // Uncalibrated it has the same classes and ranks.
  Output to_output(const SlabMatrix& shares, bool calibrated) {
    Output output{make_matrix(), 1, {}};
    const double factor = calibrated ? fit_calibration(shares, output.temperature) : 1;
    const double reserve = std::max(kLeastReserve, 1 / (static_cast<double>(validated_) + 2));
    for_each_row(
        output.logits,
        [&](std::span<float> row) {
          to_logits(row, factor);
          if (calibrated) calibrate_row(row, output.temperature, reserve);
        },
        &shares);
    if (chooses_thresholds_) output.rule.thresholds = choose_thresholds(output.logits, data_, by_);
    return output;
  }

  // Which of kLeasts, and with it the temperature, has the least loss on the validation nodes.
  double fit_calibration(const SlabMatrix& shares, double& temperature) {
    TemperatureFit fit(data_, slab_columns_ == 0 ? UINT64_MAX : 0);
    GraphShare(data_.graph).collect(shares, kSmoothedRows, [&](auto rows, NodeId first) { fit.add(rows, first); });
    validated_ = fit.nodes();
    double best = kLeasts[0], least_loss = INFINITY;
    for (const double factor : kLeasts)
      if (const auto fitted = fit.fit([&](std::span<float> row) { to_logits(row, factor); }, /*doubt=*/0);
          fitted && fitted->loss < least_loss) {
        least_loss = fitted->loss;
        best = factor;
        temperature = fitted->temperature;
      }
    return best;
  }

  // The mean of the training nodes' Σ_c |error|.
  double mean_error(const SlabMatrix& errors) {
    double sum = 0;
    uint64_t nodes = 0;
    Buffer<float> scratch(kSmoothedRows * classes_);
    for (size_t begin = 0; begin < nodes_; begin += kSmoothedRows) {
      const RowRange range{begin, std::min<size_t>(nodes_, begin + kSmoothedRows)};
      const ConstMatrix rows = errors.read_rows(range, scratch.data());
      for (size_t r = 0; r < rows.rows; ++r) {
        if (!is_known(data_, static_cast<NodeId>(begin + r), Role::kTrain)) continue;
        ++nodes;
        for (size_t c = 0; c < classes_; ++c) sum += std::abs(rows.row(r)[c]);
      }
    }
    return sum / static_cast<double>(nodes);
  }

  void choose_correction(SlabMatrix& base, SmoothingChoice& choice) {
    SlabMatrix errors = make_matrix();
    rewrite(
        errors,
        [&](RowRange range, Matrix out, ConstMatrix) {
          for (size_t r = 0; r < out.rows; ++r) {
            const auto v = static_cast<NodeId>(range.begin + r);
            const bool known = is_known(data_, v, Role::kTrain);
            for (uint32_t c = 0; c < classes_; ++c)
              out.row(r)[c] = known ? label_bit(data_.labels, v, c) - out.row(r)[c] : 0.0f;
          }
        },
        &base);
    const double level = mean_error(errors);
    const auto corrected = [&](double alpha) {
      SlabMatrix spread = propagate(errors, alpha);
      rewrite(
          spread,
          [&](RowRange, Matrix out, ConstMatrix own) {
            for (size_t r = 0; r < out.rows; ++r) {
              double size = 0;
              for (size_t c = 0; c < classes_; ++c) size += std::abs(out.row(r)[c]);
              const double scale = size * kLargestScale > level ? level / size : size > 0 ? 1 : 0;
              for (size_t c = 0; c < classes_; ++c)
                out.row(r)[c] = own.row(r)[c] + static_cast<float>(scale * out.row(r)[c]);
            }
          },
          nullptr, &base);
      return spread;
    };
    choose(base, choice.correct, choice.after, corrected);
  }

  void choose_smoothing(SlabMatrix& base, SmoothingChoice& choice) {
    SlabMatrix start = make_matrix();
    rewrite(
        start,
        [&](RowRange range, Matrix out, ConstMatrix) {
          for (size_t r = 0; r < out.rows; ++r) {
            const auto v = static_cast<NodeId>(range.begin + r);
            if (!is_known(data_, v, Role::kTrain)) continue;
            for (uint32_t c = 0; c < classes_; ++c) out.row(r)[c] = label_bit(data_.labels, v, c);
          }
        },
        &base);
    choose(base, choice.smooth, choice.after, [&](double alpha) { return propagate(start, alpha); });
  }

  // The first α that does best on the validation nodes, if it does better than without.
  template <class Make>
  void choose(SlabMatrix& base, double& chosen, double& best, Make&& make) {
    for (const double alpha : kAlphas) {
      const Output output = to_output(make(alpha), by_ == SelectBy::kLoss || chooses_thresholds_);
      const double reached = score(output.logits, output.rule, Role::kValidation);
      if (!(reached > best)) continue;  // nor NaN: a score that the validation nodes do not have
      best = reached;
      chosen = alpha;
    }
    if (chosen > 0) base = make(chosen);
  }

  const Dataset& data_;
  Smoothing kind_;
  SelectBy by_;
  bool chooses_thresholds_;
  NormalisedRows rows_;
  size_t nodes_, classes_;
  size_t slab_columns_ = 0;  // that are propagated at once; 0: all, and matrices are in memory
  bool keeps_pages_ = false;
  size_t validated_ = 0;  // nodes
};

}  // namespace

std::string SmoothingChoice::text() const {
  std::string steps = correct > 0 ? fmt::format("errors {}", correct) : std::string();
  if (smooth > 0) steps += fmt::format("{}labels {}", steps.empty() ? "" : ", ", smooth);
  if (!chosen()) return fmt::format("nothing did better than the model on validation ({})", show_selection(before, by));
  return fmt::format("{}: validation {}", steps, show_change(before, after, by));
}

namespace {

bool has_known(const Dataset& data, Role role) {
  for (NodeId v = 0; v < data.num_nodes() && data.labels.present(); ++v)
    if (is_known(data, v, role)) return true;
  return false;
}

}  // namespace

bool is_smoothable(const Dataset& data) {
  return !data.labels.regression() && has_known(data, Role::kTrain) && has_known(data, Role::kValidation);
}

void require_smoothable(const Dataset& data) {
  if (data.labels.regression()) throw Error("spreads classes, and the labels are numbers", "--smooth", "leave it out");
  const bool train = has_known(data, Role::kTrain);
  if (!is_smoothable(data))
    throw Error(fmt::format("the graph has no labelled {} nodes, {}", train ? "validation" : "training",
                            train ? "by which it is chosen" : "whose labels it spreads"),
                "--smooth", "leave it out");
}

uint64_t least_smoothing_memory(const Dataset& data, uint32_t classes) {
  return uint64_t{data.num_nodes()} * 4 * sizeof(float) + Smoother::scratch_bytes(classes);
}

SmoothingChoice smooth_outputs(SlabMatrix& logits, const Dataset& data, const OutputRule& rule,
                               const SmoothingRequest& request, uint64_t memory) {
  CGCN_CHECK(request.kind != Smoothing::kNone && request.kind != Smoothing::kTrained &&
             logits.columns() == data.labels.num_classes());
  if (memory < least_smoothing_memory(data, data.labels.num_classes()))
    refuse_memory_left(least_smoothing_memory(data, data.labels.num_classes()), "--smooth");
  return Smoother(data, request, logits.columns(), memory).run(logits, rule);
}

}  // namespace cgcn
