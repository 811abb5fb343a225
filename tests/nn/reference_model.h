// The network in double precision and plain loops, written from the formulas at the head of model.h and sharing no code
// with it but the dropout masks. Forward only: its finite differences are the gradients that the model must have.
#pragma once

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "kernels/reference.h"
#include "nn/model.h"

namespace cgcn::test {

class ReferenceModel {
 public:
  using Rows = std::vector<std::vector<double>>;

  ReferenceModel(const Model& model, const ModelInput& input)
      : options_(model.options()), input_(input), labels_(input.labels) {
    for (const Parameter& p : model.parameters()) {
      auto& values = weights[p.name];
      for (uint64_t i = 0; i < p.size(); ++i) values.push_back(model.values()[p.offset + i]);
      columns_[p.name] = p.columns;
    }
  }

  std::map<std::string, std::vector<double>> weights;
  std::vector<float> class_weights;  // empty: all 1
  RegressionLoss regression = RegressionLoss::kSquared;
  TargetScaling target;

  double loss(const Batch& batch, uint64_t seed, float dropout) const {
    const Rows logits = forward(batch, seed, dropout);
    double total = 0;
    for (const uint32_t r : batch.loss_rows) total += row_loss(logits[r], batch.inputs[r]);
    const double classes = labels_.multi_label() ? static_cast<double>(labels_.num_classes()) : 1;
    return total / (static_cast<double>(batch.loss_rows.size()) * classes);
  }

  Rows forward(const Batch& batch, uint64_t seed, float dropout) const {
    const bool drops_first = options_.dropout_place == DropoutPlace::kBefore;
    Rows h;
    if (options_.input_projection)
      h = project_input(batch, seed, dropout);
    else if (batch.input_adjacency != nullptr)
      for (size_t r = 0; r < batch.inputs.size(); ++r) {
        std::vector<bool> entries;
        h.push_back(feature_row(input_.x, batch.inputs[r], &entries));
        if (drops_first && first_rate(dropout) > 0)
          drop_row(batch, seed, first_rate(dropout), 0, static_cast<uint32_t>(r), h.back(), entries);
      }
    const Rows initial = h;
    std::vector<Rows> all;
    for (uint32_t layer = 1; layer <= options_.layers; ++layer) {
      const uint32_t rows = batch.rows_of_layer(layer);
      const std::string name = "layer" + std::to_string(layer);
      const bool hidden = !options_.is_last(layer);
      const bool aggregates = layer > 1 || batch.input_adjacency != nullptr;
      const bool has_rows_below = layer > 1 || options_.input_projection;
      const Rows below = h;
      if (norm_before() && has_rows_below) activate_all(name, h);
      if (drops_first && dropout > 0 && has_rows_below)
        for (size_t r = 0; r < h.size(); ++r)
          drop_row(batch, seed, dropout, 2 * (layer - 1), static_cast<uint32_t>(r), h[r], {});
      Rows next;
      for (uint32_t r = 0; r < rows; ++r) {
        std::vector<double> aggregated, own;
        std::vector<bool> aggregated_entries, own_entries;
        if (!aggregates) {
          aggregated = feature_row(input_.aggregated, batch.inputs[r], &aggregated_entries);
          if (concat()) own = feature_row(input_.x, batch.inputs[r], &own_entries);
        } else {
          aggregated.assign(h[0].size(), 0);
          const SparseView& a = batch.adjacency(layer).forward;
          for (uint64_t i = a.offsets[r]; i < a.offsets[r + 1]; ++i)
            for (size_t c = 0; c < aggregated.size(); ++c) aggregated[c] += a.values[i] * h[a.column_indices[i]][c];
          if (concat()) own = h[r];
        }
        const bool gcnii = hidden && has_rows_below;
        if (gcnii && options_.initial_residual > 0)
          for (size_t c = 0; c < aggregated.size(); ++c)
            aggregated[c] = (1 - options_.initial_residual) * aggregated[c] + options_.initial_residual * initial[r][c];
        const float rate = has_rows_below ? dropout : first_rate(dropout);
        if (rate > 0 && (!drops_first || !aggregates))
          drop(batch, seed, rate, layer, r, aggregated, own, aggregated_entries, own_entries);
        const std::vector<double> left = aggregated;
        aggregated.insert(aggregated.end(), own.begin(), own.end());
        next.push_back(multiply(name, aggregated));
        const double beta = std::log(options_.identity_mapping / layer + 1.0);
        if (gcnii && options_.identity_mapping > 0)
          for (size_t c = 0; c < left.size(); ++c) next[r][c] = beta * next[r][c] + (1 - beta) * left[c];
      }
      if (!norm_before() && hidden) activate_all(name, next);
      if (options_.residual && has_rows_below && hidden)
        for (uint32_t r = 0; r < rows; ++r)
          for (size_t c = 0; c < next[r].size(); ++c) next[r][c] += norm_before() ? below[r][c] : h[r][c];
      h = std::move(next);
      all.push_back(h);
    }
    if (options_.head_kind() == HeadKind::kLinear) return through_linear_head(batch, seed, dropout, all);
    return options_.head == HeadKind::kDense ? through_head(h) : h;
  }

 private:
  bool concat() const { return options_.convolution == ConvolutionForm::kConcat; }

  // A test that wants none has none anywhere.
  float first_rate(float dropout) const { return options_.input_dropout < 0 ? dropout : options_.input_dropout; }

  bool norm_before() const { return options_.norm_place == NormPlace::kBefore; }

  Rows project_input(const Batch& batch, uint64_t seed, float dropout) const {
    Rows h;
    for (size_t r = 0; r < batch.inputs.size(); ++r) {
      std::vector<bool> entries;
      std::vector<double> x = feature_row(input_.x, batch.inputs[r], &entries);
      if (first_rate(dropout) > 0)
        drop_row(batch, seed, first_rate(dropout), 254, static_cast<uint32_t>(r), x, entries);
      h.push_back(multiply("projection", x));
    }
    if (!norm_before()) activate_all("projection", h);
    return h;
  }

  Rows through_head(const Rows& embeddings) const {
    Rows logits;
    for (const std::vector<double>& z : embeddings) {
      double square = 0;
      for (const double value : z) square += value * value;
      std::vector<double> row = weights.at("head.bias");
      for (size_t k = 0; k < z.size(); ++k)
        for (size_t c = 0; c < row.size(); ++c)
          row[c] += z[k] / std::sqrt(square) * weights.at("head.weight")[k * row.size() + c];
      logits.push_back(row);
    }
    return logits;
  }

  Rows through_linear_head(const Batch& batch, uint64_t seed, float dropout, const std::vector<Rows>& all) const {
    Rows logits;
    for (uint32_t r = 0; r < batch.num_outputs; ++r) {
      std::vector<double> row = all.back()[r];
      if (options_.jumping == Jumping::kConcat) row.clear();
      for (const Rows& layer : all)
        for (size_t c = 0; options_.jumping != Jumping::kNone && c < layer[r].size(); ++c)
          if (options_.jumping == Jumping::kConcat)
            row.push_back(layer[r][c]);
          else
            row[c] = std::max(row[c], layer[r][c]);
      if (dropout > 0) drop_row(batch, seed, dropout, 2 * options_.layers, r, row, {});
      std::vector<double> sums = weights.at("head.bias");
      for (size_t k = 0; k < row.size(); ++k)
        for (size_t c = 0; c < sums.size(); ++c) sums[c] += row[k] * weights.at("head.weight")[k * sums.size() + c];
      logits.push_back(sums);
    }
    return logits;
  }

  // Dense rows by column; sparse ones by the place of an entry.
  static void drop_row(const Batch& batch, uint64_t seed, float rate, uint32_t stream, uint32_t r,
                       std::vector<double>& row, const std::vector<bool>& entries) {
    const double scale = 1 / (1 - std::round(rate * 65536) / 65536);
    const auto kept = mask(batch, seed, rate, stream, r, row.size());
    size_t place = 0;
    for (size_t c = 0; c < row.size(); ++c)
      if (entries.empty() || entries[c]) row[c] = kept[place++] ? row[c] * scale : 0;
  }

  // A row as doubles, and which of its places hold an entry (sparse kinds).
  static std::vector<double> feature_row(const FeatureMatrix& features, NodeId v, std::vector<bool>* entries) {
    std::vector<double> row(features.columns());
    if (features.is_dense()) {
      std::vector<float> values(features.columns());
      features.copy_row(v, values.data());
      row.assign(values.begin(), values.end());
      return row;
    }
    entries->assign(features.columns(), false);
    if (features.kind() == FeatureMatrix::Kind::kIdentity) {
      row[v] = 1;
      (*entries)[v] = true;
      return row;
    }
    for (size_t i = 0; i < features.row_columns(v).size(); ++i) {
      row[features.row_columns(v)[i]] = features.row_values(v)[i];
      (*entries)[features.row_columns(v)[i]] = true;
    }
    return row;
  }

  static std::vector<bool> mask(const Batch& batch, uint64_t seed, float rate, uint32_t stream, uint32_t row,
                                size_t size) {
    std::vector<uint8_t> bits(kernels::DropoutMask::bytes_for(size));
    const kernels::DropoutMask drawn{bits.data(), 0, 1};
    kernels::reference::draw_dropout({seed, batch.epoch, batch.index, stream}, rate, {row, row + 1}, {0, size}, drawn);
    std::vector<bool> kept(size);
    for (size_t c = 0; c < size; ++c) kept[c] = drawn.keeps(row, c);
    return kept;
  }

  static void drop(const Batch& batch, uint64_t seed, float rate, uint32_t layer, uint32_t r,
                   std::vector<double>& aggregated, std::vector<double>& own,
                   const std::vector<bool>& aggregated_entries, const std::vector<bool>& own_entries) {
    const double scale = 1 / (1 - std::round(rate * 65536) / 65536);
    if (!aggregated_entries.empty()) {  // sparse: the places of the entries of both parts in one mask
      const size_t size = aggregated_entries.size() + own_entries.size();
      const auto kept = mask(batch, seed, rate, 0, r, size);
      size_t place = 0;
      const auto apply = [&](std::vector<double>& row, const std::vector<bool>& entries) {
        for (size_t c = 0; c < row.size(); ++c)
          if (entries[c]) row[c] = kept[place++] ? row[c] * scale : 0;
      };
      apply(aggregated, aggregated_entries);
      apply(own, own_entries);
      return;
    }
    const auto kept_aggregated = mask(batch, seed, rate, 2 * (layer - 1), r, aggregated.size());
    const auto kept_own = mask(batch, seed, rate, 2 * (layer - 1) + 1, r, own.size());
    for (size_t c = 0; c < aggregated.size(); ++c) aggregated[c] = kept_aggregated[c] ? aggregated[c] * scale : 0;
    for (size_t c = 0; c < own.size(); ++c) own[c] = kept_own[c] ? own[c] * scale : 0;
  }

  std::vector<double> multiply(const std::string& layer, const std::vector<double>& input) const {
    const auto& weight = weights.at(layer + ".weight");
    const size_t columns = columns_.at(layer + ".weight");
    std::vector<double> z(columns);
    if (options_.has_bias()) z = weights.at(layer + ".bias");
    for (size_t k = 0; k < input.size(); ++k)
      for (size_t c = 0; c < columns; ++c) z[c] += input[k] * weight[k * columns + c];
    return z;
  }

  // BatchNorm takes a column of all rows, LayerNorm a row.
  void activate_all(const std::string& layer, Rows& rows) const {
    if (options_.batch_norm) {
      const auto n = static_cast<double>(rows.size());
      for (size_t c = 0; c < rows[0].size(); ++c) {
        double mean = 0, variance = 0;
        for (const auto& row : rows) mean += row[c] / n;
        for (const auto& row : rows) variance += (row[c] - mean) * (row[c] - mean) / n;
        for (auto& row : rows)
          row[c] = (row[c] - mean) / std::sqrt(variance + 1e-5) * weights.at(layer + ".norm.scale")[c] +
                   weights.at(layer + ".norm.offset")[c];
      }
    }
    for (std::vector<double>& row : rows) row = activate(layer, row);
  }

  std::vector<double> activate(const std::string& layer, std::vector<double> z) const {
    if (options_.norm() == NormKind::kLayer) {
      const std::string prefix = layer + ".norm.";
      double mean = 0, variance = 0;
      for (const double value : z) mean += value / static_cast<double>(z.size());
      for (const double value : z) variance += (value - mean) * (value - mean) / static_cast<double>(z.size());
      for (size_t c = 0; c < z.size(); ++c)
        z[c] = (z[c] - mean) / std::sqrt(variance + 1e-5) * weights.at(prefix + "scale")[c] +
               weights.at(prefix + "offset")[c];
    }
    for (double& value : z) value = std::max(value, 0.0);
    return z;
  }

  double row_loss(const std::vector<double>& logits, NodeId node) const {
    double total = 0;
    if (labels_.regression()) {
      const double error = logits[0] - (labels_.value_of(node) - target.mean) / target.scale;
      return regression == RegressionLoss::kSquared ? error * error : std::abs(error);
    }
    if (labels_.multi_label()) {
      for (uint32_t c = 0; c < logits.size(); ++c)
        total += labels_.has(node, c) ? weight_of(c) * (std::log1p(std::exp(logits[c])) - logits[c])
                                      : std::log1p(std::exp(logits[c]));
      return total;
    }
    for (const double logit : logits) total += std::exp(logit);
    const auto label = static_cast<size_t>(labels_.class_of(node));
    return weight_of(label) * (std::log(total) - logits[label]);
  }
  double weight_of(size_t label) const { return class_weights.empty() ? 1.0 : class_weights[label]; }

  ModelOptions options_;
  ModelInput input_;
  const Labels& labels_;
  std::map<std::string, uint32_t> columns_;
};

}  // namespace cgcn::test
