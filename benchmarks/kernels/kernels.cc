// The kernel laboratory: every kernel on the shapes of a training step, checked against its plain version, its rate
// next to what this machine can do at best (sgemm on every thread, a copy from memory to memory, a copy inside the
// second-level cache), all measured in the same run.
//
//   bench_kernels [--threads N] [--rows N] [--columns N] [--degree N]
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "benchmarks/machine.h"
#include "common/error.h"
#include "kernels/blas.h"
#include "kernels/gemm.h"
#include "tests/kernels/reference.h"

namespace cgcn::bench {
namespace {

using namespace kernels;

struct Settings {
  size_t rows = 898, columns = 512, degree = 20, classes = 121;
};

class Laboratory {
 public:
  explicit Laboratory(const Settings& settings) : s_(settings) {
    peak_gflops_ = sgemm_gflops() * thread_count();
    memory_ = copy_gigabytes();
    cache_ = cache_gigabytes();
    fmt::print("{} threads; limits: sgemm {:.0f} GFLOP/s, copy {:.1f} GB/s from memory, {:.0f} GB/s in cache\n",
               thread_count(), peak_gflops_, memory_, cache_);
    fmt::print("{} rows × {} columns, {} edges per row\n\n", s_.rows, s_.columns, s_.degree);
    fmt::print("{:<34}{:>10}{:>12}{:>10}{:>12}\n", "kernel", "µs", "rate", "", "of limit");
  }

  void run() {
    products();
    aggregation();
    dropout();
    activations();
    losses();
    optimiser();
  }

 private:
  static constexpr size_t kRows = 64;
  static constexpr int kRepeats = 60;

  // A copy of 1 MB per thread, again and again.
  static double cache_gigabytes() {
    constexpr size_t kBytes = 1 << 19, kTimes = 200;
    const auto threads = static_cast<size_t>(thread_count());
    Buffer<char> from(kBytes * threads, 1), to(kBytes * threads, 0);
    const double seconds = least_seconds(10, [&] {
      parallel_blocks(threads, 1, [&](size_t t, size_t) {
        for (size_t i = 0; i < kTimes; ++i) {
          std::memcpy(&to[t * kBytes], &from[t * kBytes], kBytes);
          __asm__ volatile("" ::"r"(to.data()) : "memory");
        }
      });
    });
    return 2e-9 * static_cast<double>(kBytes * threads * kTimes) / seconds;
  }

  void print(const std::string& name, double seconds, double amount, const char* unit, double limit) const {
    const double rate = amount / seconds * 1e-9;
    fmt::print("{:<34}{:>10.1f}{:>12.1f}{:>10}{:>11.0f}%\n", name, 1e6 * seconds, rate, unit, 100 * rate / limit);
  }
  void print_bytes(const std::string& name, double bytes, const std::function<void()>& work) const {
    print(name, least_seconds(kRepeats, work), bytes, "GB/s", cache_);
  }
  static void expect_near(const std::string& name, const Buffer<float>& actual, const Buffer<float>& expected,
                          float tolerance) {
    for (size_t i = 0; i < actual.size(); ++i)
      CGCN_CHECK(std::abs(actual[i] - expected[i]) <= tolerance * (1 + std::abs(expected[i])), "{} at {}", name, i);
  }
  double floats(double count) const { return 4 * count; }
  double cells() const { return static_cast<double>(s_.rows * s_.columns); }

  void product(const std::string& name, const Tiles& tiles, size_t inner, size_t rows, size_t columns,
               const std::function<void(RowRange, RowRange)>& tile) const {
    const double seconds = least_seconds(kRepeats, [&] {
      parallel_blocks(tiles.count(), 1, [&](size_t i, size_t) { tile(tiles.rows(i), tiles.columns(i)); });
    });
    print(fmt::format("{} {}×{}×{}", name, rows, inner, columns), seconds, 2.0 * rows * columns * inner, "GFLOP/s",
          peak_gflops_);
  }

  void products() const {
    const size_t n = s_.rows, out = s_.columns;
    for (const size_t fan_in : {size_t{100}, 2 * s_.columns}) {
      const Buffer<float> a = random_floats(n * fan_in, 1), w = random_floats(fan_in * out, 2);
      Buffer<float> z = random_floats(n * out, 3), da(n * fan_in), dw(fan_in * out);
      const ConstMatrix input(a.data(), n, fan_in), weight(w.data(), fan_in, out);
      const Matrix output(z.data(), n, out), input_gradient(da.data(), n, fan_in),
          weight_gradient(dw.data(), fan_in, out);
      product("dz·Wᵀ", Tiles::of_rows(n, fan_in), out, n, fan_in, [&](RowRange r, RowRange c) {
        multiply_transposed(output.rows_from(r.begin, r.end), weight.rows_from(c.begin, c.end),
                            input_gradient.tile(r.begin, r.end, c.begin, c.end));
      });
      product("Cᵀ·dz", Tiles::of_weights(fan_in, out), n, fan_in, out, [&](RowRange r, RowRange c) {
        multiply_by_transpose_of(input.columns_from(r.begin, r.end), ConstMatrix(output).columns_from(c.begin, c.end),
                                 weight_gradient.tile(r.begin, r.end, c.begin, c.end));
      });
      product("C·W", Tiles::of_rows(n, out), fan_in, n, out, [&](RowRange r, RowRange c) {
        multiply(input.rows_from(r.begin, r.end), weight.columns_from(c.begin, c.end),
                 output.tile(r.begin, r.end, c.begin, c.end));
      });
    }
  }

  void aggregation() const {
    Random random(5, Purpose::kTest);
    std::vector<uint64_t> offsets{0};
    std::vector<uint32_t> columns;
    for (size_t r = 0; r < s_.rows; ++r) {
      for (size_t i = 0; i < s_.degree; ++i) columns.push_back(random.below(static_cast<uint32_t>(s_.rows)));
      offsets.push_back(columns.size());
    }
    const std::vector<float> values(columns.size(), 1.0f / static_cast<float>(s_.degree));
    const auto n = static_cast<uint32_t>(s_.rows);
    const SparseView a{n, n, offsets.data(), columns.data(), values.data()};
    const Buffer<float> h = random_floats(s_.rows * s_.columns, 1);
    Buffer<float> out(s_.rows * s_.columns), twin(s_.rows * s_.columns);
    const ConstMatrix source(h.data(), s_.rows, s_.columns);
    const Matrix result(out.data(), s_.rows, s_.columns);
    const double bytes = floats(static_cast<double>(columns.size() * s_.columns) + cells());
    for (const size_t strip : {size_t{64}, size_t{128}, size_t{256}, s_.columns}) {
      const size_t row_blocks = (s_.rows + 127) / 128, strips = (s_.columns + strip - 1) / strip;
      print_bytes(fmt::format("aggregate, strips of {}", strip), bytes, [&] {
        parallel_blocks(row_blocks * strips, 1, [&](size_t i, size_t) {
          const size_t row = i % row_blocks * 128, column = i / row_blocks * strip;
          const size_t column_end = std::min(s_.columns, column + strip);
          aggregate(a, source.columns_from(column, column_end), {row, std::min(s_.rows, row + 128)},
                    result.columns_from(column, column_end));
        });
      });
    }
    reference::aggregate(a, source, {0, s_.rows}, Matrix(twin.data(), s_.rows, s_.columns));
    expect_near("aggregate", out, twin, 1e-5f);
  }

  template <class Work>
  void rows_pass(const std::string& name, double bytes, Work&& work) const {
    print_bytes(name, bytes, [&] {
      parallel_blocks(s_.rows, kRows, [&](size_t begin, size_t end) { work(RowRange{begin, end}); });
    });
  }

  void dropout() const {
    Buffer<uint8_t> bits(DropoutMask::buffer_bytes(s_.rows, s_.columns), 0), twin(bits.size(), 0);
    const DropoutMask mask{bits.data(), DropoutMask::bytes_for(s_.columns), dropout_scale(0.2f)};
    const DropoutKey key{1, 2, 3, 4};
    const double seconds = least_seconds(kRepeats, [&] {
      parallel_blocks(s_.rows, kRows, [&](size_t begin, size_t end) {
        draw_dropout(key, 0.2f, {begin, end}, {0, s_.columns}, mask);
      });
    });
    print("draw dropout (random bits, 2 B each)", seconds, 2 * cells(), "GB/s", cache_);
    reference::draw_dropout(key, 0.2f, {0, s_.rows}, {0, s_.columns}, {twin.data(), mask.row_bytes, 1});
    CGCN_CHECK(std::equal(bits.begin(), bits.end(), twin.begin()));

    const Buffer<float> h = random_floats(s_.rows * s_.columns, 1);
    Buffer<float> out(s_.rows * s_.columns);
    const ConstMatrix in(h.data(), s_.rows, s_.columns);
    const Matrix result(out.data(), s_.rows, s_.columns);
    rows_pass("apply dropout", floats(2 * cells()), [&](RowRange rows) { apply_dropout(mask, rows, in, result); });

    const size_t nodes = 50'000;
    const Buffer<float> features = random_floats(nodes * s_.columns, 2);
    std::vector<uint32_t> ids(s_.rows);
    Random random(6, Purpose::kTest);
    const double gather = least_seconds(kRepeats, [&] {
      for (uint32_t& id : ids) id = random.below(nodes);  // other rows each time: from memory
      parallel_blocks(s_.rows, kRows, [&](size_t begin, size_t end) {
        gather_rows(features.data(), ids.data(), {begin, end}, mask, result);
      });
    });
    print("gather rows with dropout", gather, floats(2 * cells()), "GB/s", memory_);
  }

  void activations() const {
    Buffer<float> z = random_floats(s_.rows * s_.columns, 1), out(s_.rows * s_.columns), twin(s_.rows * s_.columns);
    const Buffer<float> gradient = random_floats(s_.rows * s_.columns, 2);
    const Buffer<float> scale = random_floats(s_.columns, 3), offset = random_floats(s_.columns, 4);
    Buffer<float> mean(s_.rows), deviation(s_.rows), sums(2 * s_.columns * (s_.rows / kRows + 1), 0.0f);
    const LayerNorm norm{scale.data(), offset.data(), mean.data(), deviation.data()};
    const Matrix linear(z.data(), s_.rows, s_.columns), result(out.data(), s_.rows, s_.columns);
    reference::activate({0, s_.rows}, linear, norm, {}, Matrix(twin.data(), s_.rows, s_.columns));
    rows_pass("LayerNorm + ReLU", floats(2 * cells()),
              [&](RowRange rows) { activate(rows, linear, norm, {}, result); });
    expect_near("activate", out, twin, 1e-5f);
    rows_pass("LayerNorm + ReLU backward", floats(3 * cells()), [&](RowRange rows) {
      float* own = &sums[rows.begin / kRows * 2 * s_.columns];
      activate_backward(rows, ConstMatrix(gradient.data(), s_.rows, s_.columns), norm, linear, linear, own,
                        own + s_.columns);
    });
    print_bytes("column sums", floats(cells()), [&] {
      parallel_blocks(s_.columns, 64, [&](size_t begin, size_t end) {
        add_column_sums({0, s_.rows}, ConstMatrix(linear).columns_from(begin, end), &sums[begin]);
      });
    });
  }

  void losses() const {
    const size_t cells = s_.rows * s_.classes;
    const Buffer<float> fresh = random_floats(cells, 1);
    Buffer<float> logits(cells);
    const std::vector<uint8_t> bits((s_.classes + 7) / 8, 0x5A);
    const auto measure = [&](const std::string& name, auto&& row) {
      rows_pass(name, floats(4.0 * static_cast<double>(cells)), [&](RowRange rows) {
        for (size_t r = rows.begin; r < rows.end; ++r) {
          std::copy_n(&fresh[r * s_.classes], s_.classes, &logits[r * s_.classes]);
          row(&logits[r * s_.classes]);
        }
      });
    };
    measure(fmt::format("softmax loss, {} classes", s_.classes),
            [&](float* row) { softmax_cross_entropy(row, s_.classes, 3, 0.1f); });
    measure(fmt::format("sigmoid loss, {} classes", s_.classes),
            [&](float* row) { sigmoid_cross_entropy(row, s_.classes, bits.data(), 0.1f); });
  }

  void optimiser() const {
    AdamCoefficients k;
    k.step_size = 0.01f;
    for (const size_t size : {size_t{1} << 19, size_t{1} << 25}) {
      const Buffer<float> gradient = random_floats(size, 1);
      Buffer<float> value = random_floats(size, 2), m(size, 0.0f), v(size, 0.0f);
      const double seconds = least_seconds(size > 1 << 20 ? 5 : kRepeats, [&] {
        parallel_blocks(size, 1 << 14, [&](size_t begin, size_t end) {
          adam_step(k, end - begin, &gradient[begin], &value[begin], &m[begin], &v[begin]);
        });
      });
      print(fmt::format("Adam, {} weights", size), seconds, floats(7.0 * static_cast<double>(size)), "GB/s",
            size > 1 << 20 ? memory_ : cache_);
    }
  }

  Settings s_;
  double peak_gflops_, memory_, cache_;
};

int main(int argc, char** argv) {
  Settings settings;
  int threads = 0;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string word = argv[i];
    const auto value = static_cast<size_t>(std::atoll(argv[i + 1]));
    if (word == "--threads") threads = static_cast<int>(value);
    if (word == "--rows") settings.rows = value;
    if (word == "--columns") settings.columns = value;
    if (word == "--degree") settings.degree = value;
  }
  set_thread_count(threads);
  prepare_blas();
  Laboratory(settings).run();
  return 0;
}

}  // namespace
}  // namespace cgcn::bench

int main(int argc, char** argv) { return cgcn::bench::main(argc, argv); }
