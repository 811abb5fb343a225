#include "batch/neighbour_sampler.h"

#include <algorithm>
#include <cmath>

#include "kernels/random_words.h"

namespace cgcn {

NeighbourSampler::NeighbourSampler(const CsrGraph& graph, const Normalisation& normalisation,
                                   NeighbourSamplerOptions options)
    : rows_(graph, normalisation),
      options_(std::move(options)),
      has_loops_(normalisation.has_diagonal() && graph.count_self_loops() > 0) {
  CGCN_CHECK(!options_.fanouts.empty());
}

uint32_t NeighbourSampler::fanout(uint32_t layer) const {
  return options_.fanouts[std::min<size_t>(options_.layers - layer, options_.fanouts.size() - 1)];
}

NeighbourSampler::Pool NeighbourSampler::pool_of(NodeId v) const {
  const CsrGraph& graph = rows_.graph();
  Pool pool{graph.offsets()[v], static_cast<uint32_t>(graph.degree(v))};
  if (!has_loops_) return pool;
  const auto neighbours = graph.neighbours(v);
  const auto loop = std::lower_bound(neighbours.begin(), neighbours.end(), v);
  if (loop == neighbours.end() || *loop != v) return pool;
  pool.loop = static_cast<uint32_t>(loop - neighbours.begin());
  --pool.size;
  return pool;
}

uint32_t NeighbourSampler::draws(const Pool& pool, uint32_t fanout) const {
  if (fanout == 0 || pool.size == 0) return 0;
  return pool.size > fanout || (options_.replacement && pool.size < fanout) ? fanout : 0;
}

void NeighbourSampler::sample(const LayerDraw& draw, std::span<const NodeId> targets, SampledRows& rows,
                              SamplerScratch& scratch) const {
  rows.clear();
  const uint32_t fanout = this->fanout(draw.layer);
  size_t total = 0;
  for (const NodeId v : targets) total += draws(pool_of(v), fanout);
  scratch.words.resize(total);
  kernels::draw_words({draw.seed, Purpose::kSample, draw.epoch, draw.index, draw.layer}, scratch.words);
  std::span<const uint32_t> words = scratch.words;
  for (const NodeId v : targets) {
    const Pool pool = pool_of(v);
    const uint32_t s = draws(pool, fanout);
    if (rows_.has_diagonal()) add_diagonal(v, pool, rows);
    if (s > 0)
      add_drawn(v, pool, words.first(s), rows, scratch);
    else
      for (uint32_t place = 0; place < pool.size; ++place) add_link(v, pool.at(place), 1, 1, rows);
    words = words.subspan(s);
    rows.end_row();
    if (has_remainders()) rows.history_offsets.push_back(rows.history_columns.size());
  }
}

void NeighbourSampler::add_diagonal(NodeId v, const Pool& pool, SampledRows& rows) const {
  const CsrGraph& graph = rows_.graph();
  const bool loop = pool.loop != UINT32_MAX;
  const float weight = !loop ? 0.0f : graph.weighted() ? graph.weights()[pool.begin + pool.loop] : 1.0f;
  rows.add(v, rows_.value(v, v, weight));
  if (options_.control == ControlVariate::kCvd) rows.mean_values.push_back(0);
}

// factor: n/s times how often the edge was drawn. noise_share: √(s/n), which CVD gives to h; the rest goes to μ.
void NeighbourSampler::add_link(NodeId v, EdgeOffset e, float factor, float noise_share, SampledRows& rows) const {
  const float value = factor * rows_.value_at(v, e);
  rows.add(rows_.graph().targets()[e], noise_share * value);
  if (options_.control == ControlVariate::kCvd) rows.mean_values.push_back((1 - noise_share) * value);
}

void NeighbourSampler::add_drawn(NodeId v, const Pool& pool, std::span<const uint32_t> words, SampledRows& rows,
                                 SamplerScratch& scratch) const {
  const auto s = static_cast<uint32_t>(words.size()), n = pool.size;
  std::vector<uint32_t>& counts = scratch.counts;
  std::vector<uint32_t>& places = scratch.places;
  if (counts.size() < n) counts.resize(n, 0);
  places.clear();
  // A word times the range, high half: at most range / 2³² from even, which no sample can show.
  const auto below = [](uint32_t word, uint32_t range) { return static_cast<uint32_t>(uint64_t{word} * range >> 32); };
  for (uint32_t i = 0; i < s; ++i) {
    // Floyd's way of drawing s different places with s numbers: one that is taken gives way to the newest.
    const uint32_t newest = n - s + i;
    uint32_t place = below(words[i], n < s ? n : newest + 1);
    if (n >= s && counts[place] > 0) place = newest;
    if (counts[place]++ == 0) places.push_back(place);
  }
  const float factor = static_cast<float>(n) / static_cast<float>(s);
  const float noise_share = options_.control == ControlVariate::kCvd ? std::sqrt(1 / factor) : 1;
  for (const uint32_t place : places)
    add_link(v, pool.at(place), factor * static_cast<float>(counts[place]), noise_share, rows);
  if (has_remainders()) add_history(v, pool, factor, rows, scratch);
  for (const uint32_t place : places) counts[place] = 0;
}

// N - N̂ on the whole row; nothing is left of it on the diagonal.
void NeighbourSampler::add_history(NodeId v, const Pool& pool, float factor, SampledRows& rows,
                                   const SamplerScratch& scratch) const {
  for (uint32_t place = 0; place < pool.size; ++place) {
    const EdgeOffset e = pool.at(place);
    rows.history_columns.push_back(rows_.graph().targets()[e]);
    rows.history_values.push_back(rows_.value_at(v, e) * (scratch.counts[place] > 0 ? 1 - factor : 1));
  }
}

}  // namespace cgcn
