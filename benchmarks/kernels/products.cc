// The products of a step, tile by tile on one thread: OpenBLAS, our own code (kernels/tile_product.h), and, if they
// were found when this was built, oneDNN's sgemm and libxsmm's kernels; and in bfloat16 (kernels/bfloat16_gemm.h), the
// packing not counted. GFLOP/s. Operands come from beyond the second-level cache, as in a step: several copies of them
// are used in turn.
//
//   OMP_NUM_THREADS=1 bench_products [898x1024x512 …]         (the variable is for oneDNN, whose threads are OpenMP's)
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "benchmarks/machine.h"
#include "common/buffer.h"
#include "common/error.h"
#include "kernels/bfloat16_gemm.h"
#include "kernels/blas.h"
#include "kernels/gemm.h"
#include "kernels/tile_product.h"
#ifdef CGCN_ONEDNN
#include <oneapi/dnnl/dnnl.h>
#endif
#ifdef CGCN_LIBXSMM
#include <libxsmm.h>
#endif

namespace cgcn::bench {
namespace {

using kernels::ConstMatrix;
using kernels::Matrix;
using kernels::padded;
using kernels::padded_stride;
using kernels::TileProduct;
using kernels::Tiles;

struct Operands {
  TileProduct kind;
  ConstMatrix left, right;
  Matrix result;
};

void by_openblas(const Operands& o) {
  const bool left = o.kind == TileProduct::kLeftTransposed, right = o.kind == TileProduct::kRightTransposed;
  const auto as_int = [](size_t n) { return static_cast<int>(n); };
  kernels::blas_sgemm()(CblasRowMajor, left ? CblasTrans : CblasNoTrans, right ? CblasTrans : CblasNoTrans,
                        as_int(o.result.rows), as_int(o.result.columns), as_int(left ? o.left.rows : o.left.columns), 1,
                        o.left.data, as_int(o.left.stride), o.right.data, as_int(o.right.stride), 0, o.result.data,
                        as_int(o.result.stride));
}

void by_own_code(const Operands& o) { multiply_tile(o.kind, o.left, o.right, o.result, 0); }

#ifdef CGCN_ONEDNN
void by_onednn(const Operands& o) {
  const bool left = o.kind == TileProduct::kLeftTransposed, right = o.kind == TileProduct::kRightTransposed;
  const auto as_dim = [](size_t n) { return static_cast<dnnl_dim_t>(n); };
  CGCN_CHECK(dnnl_sgemm(left ? 'T' : 'N', right ? 'T' : 'N', as_dim(o.result.rows), as_dim(o.result.columns),
                        as_dim(left ? o.left.rows : o.left.columns), 1, o.left.data, as_dim(o.left.stride),
                        o.right.data, as_dim(o.right.stride), 0, o.result.data,
                        as_dim(o.result.stride)) == dnnl_success);
}
#endif

#ifdef CGCN_LIBXSMM
// The right factor is taken as packed before in panels of 64 columns, which is not counted; what they hold does not
// change the time. In a weight's gradient it is read where it lies. Our rows are libxsmm's columns.
void by_libxsmm(const Operands& o) {
  constexpr size_t kPanel = 64, kTerms = 128;
  static const Buffer<float> packed = random_floats(size_t{4096} * 4096, 9);
  const bool left = o.kind == TileProduct::kLeftTransposed;
  const size_t inner = left ? o.left.rows : o.left.columns;
  const auto as_int = [](size_t n) { return static_cast<int>(n); };
  for (size_t k = 0; k < inner; k += kTerms)
    for (size_t c = 0; c < o.result.columns; c += kPanel) {
      const size_t width = std::min(kPanel, o.result.columns - c), terms = std::min(kTerms, inner - k);
      const float* panel = left ? o.right.row(k) + c : packed.data() + c * inner + k * width;
      const float* from = left ? o.left.row(k) : o.left.data + k;
      const int panel_stride = as_int(left ? o.right.stride : width), stride = as_int(o.left.stride);
      const int result_stride = as_int(o.result.stride), flags = left ? LIBXSMM_GEMM_FLAG_TRANS_B : 0;
      const float alpha = 1, beta = k > 0 ? 1 : 0;
      const libxsmm_smmfunction kernel =
          libxsmm_smmdispatch(as_int(width), as_int(o.result.rows), as_int(terms), &panel_stride, &stride,
                              &result_stride, &alpha, &beta, &flags, nullptr);
      CGCN_CHECK(kernel != nullptr);
      kernel(panel, from, o.result.data + c);
    }
}
#endif

// A layer's rows C, weight W and product Z, and their gradients.
class LayerCopies {
 public:
  LayerCopies(size_t rows, size_t in, size_t out) : rows_(rows), in_(in), out_(out) {
    constexpr size_t kBytes = size_t{24} << 20;
    const size_t bytes = sizeof(float) * (rows * in + rows * out + in * out);
    for (size_t i = 0; i < std::clamp<size_t>(kBytes / bytes, 2, 12); ++i)
      copies_.push_back({random_floats(rows * padded_stride(in), 1), random_floats(in * out, 2),
                         random_floats(rows * padded_stride(out), 3), random_floats(rows * padded_stride(in), 4),
                         random_floats(in * out, 5)});
  }

  // The rate of all tiles of a product, GFLOP/s.
  template <class Multiply>
  double rate(TileProduct kind, Multiply&& multiply) {
    const double operations = 2e-9 * static_cast<double>(rows_ * in_ * out_ * copies_.size());
    const int repeats = std::max(1, static_cast<int>(5 / operations));
    const double seconds = least_seconds(5, [&] {
      for (int i = 0; i < repeats; ++i)
        for (Copy& copy : copies_) each_tile(kind, copy, multiply);
    });
    return operations * repeats / seconds;
  }

 private:
  struct Copy {
    Buffer<float> rows, weight, product, rows_gradient, weight_gradient;
  };

  template <class Multiply>
  void each_tile(TileProduct kind, Copy& copy, Multiply&& multiply) const {
    const Matrix c = padded(copy.rows.data(), rows_, in_), z = padded(copy.product.data(), rows_, out_);
    const ConstMatrix w(copy.weight.data(), in_, out_);
    const Matrix result = kind == TileProduct::kPlain             ? z
                          : kind == TileProduct::kRightTransposed ? padded(copy.rows_gradient.data(), rows_, in_)
                                                                  : Matrix(copy.weight_gradient.data(), in_, out_);
    const Tiles tiles =
        kind == TileProduct::kLeftTransposed ? Tiles::of_weights(in_, out_) : Tiles::of_rows(rows_, result.columns);
    for (size_t i = 0; i < tiles.count(); ++i) {
      const auto [row, row_end] = tiles.rows(i);
      const auto [column, column_end] = tiles.columns(i);
      const Matrix to = result.tile(row, row_end, column, column_end);
      if (kind == TileProduct::kPlain)
        multiply(Operands{kind, c.rows_from(row, row_end), w.columns_from(column, column_end), to});
      else if (kind == TileProduct::kRightTransposed)
        multiply(Operands{kind, z.rows_from(row, row_end), w.rows_from(column, column_end), to});
      else
        multiply(Operands{kind, c.columns_from(row, row_end), z.columns_from(column, column_end), to});
    }
  }

  size_t rows_, in_, out_;
  std::vector<Copy> copies_;
};

// The same in bfloat16: what a product takes from the rows is rounded, the other factor is packed.
class HalfLayerCopies {
 public:
  HalfLayerCopies(size_t rows, size_t in, size_t out) : rows_(rows), in_(in), out_(out) {
    constexpr size_t kBytes = size_t{12} << 20;
    const size_t bytes = sizeof(BFloat16) * (rows * in + rows * out + in * out);
    for (size_t i = 0; i < std::clamp<size_t>(kBytes / bytes, 2, 12); ++i) {
      Copy& copy = copies_.emplace_back();
      copy.rows = rounded(rows, in, 1);
      copy.product_gradient = rounded(rows, out, 2);
      copy.result = Buffer<float>(std::max({rows * padded_stride(in), rows * padded_stride(out), in * out}), 0.0f);
      const Buffer<float> weight = random_floats(in * out, 3);
      copy.weight = Buffer<BFloat16>(PackedMatrix::elements(in, out));
      kernels::pack(ConstMatrix(weight.data(), in, out), {0, out}, copy.weight.data());
      copy.transposed = Buffer<BFloat16>(PackedMatrix::elements(out, in));
      kernels::pack_transposed(ConstMatrix(weight.data(), in, out), {0, in}, copy.transposed.data());
      copy.packed_gradient = Buffer<BFloat16>(PackedMatrix::elements(rows, out));
      kernels::pack(half(copy.product_gradient, out), {0, out}, copy.packed_gradient.data());
    }
  }

  double rate(TileProduct kind) {
    const double operations = 2e-9 * static_cast<double>(rows_ * in_ * out_ * copies_.size());
    const int repeats = std::max(1, static_cast<int>(10 / operations));
    const double seconds = least_seconds(5, [&] {
      for (int i = 0; i < repeats; ++i)
        for (Copy& copy : copies_) each_tile(kind, copy);
    });
    return operations * repeats / seconds;
  }

 private:
  using PackedMatrix = kernels::PackedMatrix;
  static constexpr auto kHalf = kernels::Precision::kBFloat16;
  struct Copy {
    Buffer<BFloat16> rows, product_gradient, weight, transposed, packed_gradient;
    Buffer<float> result;
  };

  static Buffer<BFloat16> rounded(size_t rows, size_t columns, uint64_t seed) {
    const Buffer<float> values = random_floats(rows * kernels::padded_stride(columns, kHalf), seed);
    Buffer<BFloat16> to(values.size());
    std::transform(values.data(), values.data() + values.size(), to.data(), to_bfloat16);
    return to;
  }
  kernels::ConstHalfMatrix half(const Buffer<BFloat16>& values, size_t columns) const {
    return {values.data(), rows_, columns, kernels::padded_stride(columns, kHalf)};
  }

  void each_tile(TileProduct kind, Copy& copy) const {
    const size_t unit = PackedMatrix::kUnit, columns = kind == TileProduct::kRightTransposed ? in_ : out_;
    const bool left = kind == TileProduct::kLeftTransposed;
    const Tiles tiles = left ? Tiles::of_weights(in_, out_, unit) : Tiles::of_rows(rows_, columns, unit);
    for (size_t i = 0; i < tiles.count(); ++i) {
      const auto [row, row_end] = tiles.rows(i);
      const auto [column, column_end] = tiles.columns(i);
      if (kind == TileProduct::kPlain)
        kernels::multiply(half(copy.rows, in_).rows_from(row, row_end),
                          PackedMatrix{copy.weight.data(), in_, out_}.columns_from(column, column_end),
                          padded(copy.result.data(), rows_, out_).tile(row, row_end, column, column_end));
      else if (kind == TileProduct::kRightTransposed)
        kernels::multiply(
            half(copy.product_gradient, out_).rows_from(row, row_end),
            PackedMatrix{copy.transposed.data(), out_, in_}.columns_from(column, column_end),
            kernels::padded(copy.result.data(), rows_, in_, kHalf).tile(row, row_end, column, column_end));
      else
        kernels::multiply_by_transpose_of(
            half(copy.rows, in_).columns_from(row, row_end),
            PackedMatrix{copy.packed_gradient.data(), rows_, out_}.columns_from(column, column_end),
            Matrix(copy.result.data(), in_, out_).tile(row, row_end, column, column_end));
    }
  }

  size_t rows_, in_, out_;
  std::vector<Copy> copies_;
};

void run(const std::vector<std::string>& only) {
  constexpr size_t kShapes[][3] = {{898, 1024, 512}, {898, 1024, 128}, {898, 4096, 2048}, {2052, 1204, 128},
                                   {2052, 256, 128}, {2052, 256, 48},  {1140, 800, 400},  {1140, 800, 48}};
  kernels::prepare_blas();
  fmt::print("sgemm of OpenBLAS at its best: {:.1f} GFLOP/s; bfloat16 by {}\n", sgemm_gflops(),
             name_of(kernels::best_bfloat16_kernels()));
  for (const auto& [rows, in, out] : kShapes) {
    if (!only.empty() && std::ranges::find(only, fmt::format("{}x{}x{}", rows, in, out)) == only.end()) continue;
    LayerCopies layer(rows, in, out);
    HalfLayerCopies half_layer(rows, in, out);
    for (const auto& [kind, name] :
         {std::pair{TileProduct::kPlain, "forward"}, std::pair{TileProduct::kRightTransposed, "input"},
          std::pair{TileProduct::kLeftTransposed, "weight"}}) {
      fmt::print("{:>5} × {:>4} × {:>4}  {:<8} OpenBLAS {:.1f}  own {:.1f}", rows, in, out, name,
                 layer.rate(kind, by_openblas), layer.rate(kind, by_own_code));
#ifdef CGCN_ONEDNN
      fmt::print("  oneDNN {:.1f}", layer.rate(kind, by_onednn));
#endif
#ifdef CGCN_LIBXSMM
      fmt::print("  libxsmm {:.1f}", layer.rate(kind, by_libxsmm));
#endif
      fmt::print("  bfloat16 {:.0f}\n", half_layer.rate(kind));
      std::fflush(stdout);
    }
  }
}

}  // namespace
}  // namespace cgcn::bench

int main(int argc, char** argv) {
  try {
    cgcn::bench::run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
