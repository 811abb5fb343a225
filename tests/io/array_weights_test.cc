// Weights of edges in arrays follow the rules of those in text: finite, and not below 0.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "io/numpy/sparse_matrix.h"
#include "io_support.h"

namespace cgcn {
namespace {

using ::testing::HasSubstr;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::string error_of_weights(std::vector<float> weights) {
  const test::TemporaryFolder folder;
  fs::create_directories(folder / "g");
  test::write_npy<int32_t>(folder / "g/edge_index.npy", {0, 1, 2, 1, 2, 3}, {2, 3});
  test::write_npy<float>(folder / "g/edge_weight.npy", weights, {3});
  return test::import_error(folder / "g");
}

TEST(ArrayWeights, NegativeOnesAreRefusedAsInText) {
  EXPECT_THAT(error_of_weights({1, 2, -0.5}), HasSubstr("edge_weight.npy: negative edge weight '-0.5' (edge 2)"));
  EXPECT_THAT(error_of_weights({-kInfinity, 2, 3}), HasSubstr("edge_weight.npy: the weight of edge 0 is not a finite"));
  EXPECT_THAT(error_of_weights({1, NAN, 3}), HasSubstr("edge_weight.npy: the weight of edge 1 is not a finite"));
}

template <class T>
Array array_of(std::vector<T> values, const char* name) {
  const uint64_t size = values.size();
  return Array::parse_npy(SharedBytes::own(test::npy_bytes(values, {size})), std::string("adj.npz: ") + name);
}

// What reads plain, gnn-benchmark, dgl-reddit and graphsaint.
std::string error_of_matrix(SparseMatrix::Format format, float weight) {
  SparseMatrix matrix;
  matrix.format = format;
  matrix.rows = matrix.columns = 3;
  const bool coo = format == SparseMatrix::Format::kCoo;
  matrix.starts = array_of<int32_t>(coo ? std::vector{0, 1, 1, 2} : std::vector{0, 1, 3, 4}, coo ? "row" : "indptr");
  matrix.indices = array_of<int32_t>({1, 0, 2, 1}, coo ? "col" : "indices");
  matrix.values = array_of<float>({1, 2, 3, weight}, "data");
  matrix.check();
  return test::message_of<Error>([&] { make_edges(matrix, 3)->visit([](const EdgeRun&) {}); });
}

TEST(ArrayWeights, ValuesOfAMatrixAreChecked) {
  for (const auto format : {SparseMatrix::Format::kCsr, SparseMatrix::Format::kCsc, SparseMatrix::Format::kCoo}) {
    EXPECT_THAT(error_of_matrix(format, -2), HasSubstr("adj.npz: data: negative edge weight '-2' (edge 3)"));
    EXPECT_THAT(error_of_matrix(format, NAN), HasSubstr("adj.npz: data: the weight of edge 3 is not a finite number"));
    EXPECT_THAT(error_of_matrix(format, kInfinity), HasSubstr("the weight of edge 3 is not a finite number"));
  }
}

}  // namespace
}  // namespace cgcn
