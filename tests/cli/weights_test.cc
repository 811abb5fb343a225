// A run's weights and a store's arrays, read by PyTorch and by NumPy, give what predict gives.
#include "program.h"

namespace cgcn {
namespace {

constexpr const char* kScript = R"(
import csv, json, struct, sys
import numpy as np
import torch
store, weights, predicted = sys.argv[1:]
raw = open(weights, 'rb').read()
(length,) = struct.unpack('<Q', raw[:8])
header = json.loads(raw[8:8 + length])
def tensor(name):
    assert header[name]['dtype'] == 'F32'
    begin, end = header[name]['data_offsets']
    bytes_ = bytearray(raw[8 + length + begin:8 + length + end])
    return torch.frombuffer(bytes_, dtype=torch.float32).reshape(header[name]['shape'])
x = torch.from_numpy(np.load(f'{store}/features.npy'))
offsets, targets = np.load(f'{store}/adjacency_offsets.npy'), np.load(f'{store}/adjacency_targets.npy')
a = torch.eye(len(x))
for v in range(len(x)):
    a[v, targets[offsets[v]:offsets[v + 1]].astype(np.int64)] += 1
a /= a.sum(1, keepdim=True)  # (D + I)^-1 (A + I)
h = torch.relu(torch.cat([a @ x, x], 1) @ tensor('layer1.weight'))
probabilities = torch.softmax(torch.cat([a @ h, h], 1) @ tensor('layer2.weight'), 1)
rows = list(csv.reader(open(predicted)))[1:]
expected = torch.tensor([[float(value) for value in row[1:]] for row in rows])
assert expected.shape == probabilities.shape
assert (expected - probabilities).abs().max() < 1e-4, (expected - probabilities).abs().max()
)";

class Weights : public test::ProgramTest {};

TEST_F(Weights, PyTorchComputesWhatPredictPrints) {
  if (std::system("/usr/bin/python3 -c 'import torch' 2> /dev/null") != 0)
    GTEST_SKIP() << "python3-torch is not installed";
  generate("g");
  ASSERT_EQ(run(train("g", "r",
                      {"--layers", "2", "--no-layer-norm", "--normalisation", "self", "--input-normalisation", "self"}))
                .exit_code,
            0);
  ASSERT_EQ(run({"predict", "r", "--what", "probabilities", "--output", "p.csv"}).exit_code, 0);
  write_file_atomically(folder_ / "compare.py", kScript);
  const std::string command =
      fmt::format("cd '{}' && /usr/bin/python3 compare.py g r/best.safetensors p.csv", folder_.path().string());
  EXPECT_EQ(std::system(command.c_str()), 0);
}

// The forward pass as docs/training.md has it.
TEST_F(Weights, TheDocumentsForwardPassIsPredicts) {
  if (std::system("/usr/bin/python3 -c 'import numpy' 2> /dev/null") != 0)
    GTEST_SKIP() << "python3-numpy is not installed";
  const std::string document = read_text_file(fs::path(CGCN_SOURCE_DIR) / "docs" / "training.md");
  const std::string fence = "```python\n";
  const size_t begin = document.find(fence) + fence.size(), end = document.find("```", begin);
  ASSERT_NE(document.find(fence), std::string::npos);
  generate("my-graph");
  ASSERT_EQ(run(train("my-graph", "my-run")).exit_code, 0);
  ASSERT_EQ(run({"predict", "my-run", "--what", "probabilities", "--output", "p.npy"}).exit_code, 0);
  write_file_atomically(folder_ / "forward.py", document.substr(begin, end - begin) + R"(
expected = np.load('p.npy')
assert expected.shape == probabilities.shape
assert np.abs(expected - probabilities).max() < 1e-5, np.abs(expected - probabilities).max()
)");
  const std::string command = fmt::format("cd '{}' && /usr/bin/python3 forward.py", folder_.path().string());
  EXPECT_EQ(std::system(command.c_str()), 0);
}

}  // namespace
}  // namespace cgcn
