// The file of partition --from: a cluster number for each of ten nodes, as text or .npy.
#include <numeric>

#include "fuzz_support.h"
#include "partition/assignment.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr cgcn::NodeId kNodes = 10;
  const cgcn::fs::path path = cgcn::fuzz::write_input("clusters", data, size);
  cgcn::fuzz::attempt([&] {
    const cgcn::Buffer<uint32_t> numbers = cgcn::read_partition_file(path, kNodes);
    CGCN_CHECK(numbers.size() == kNodes);
    std::vector<cgcn::NodeId> nodes(kNodes);
    std::iota(nodes.begin(), nodes.end(), 0u);
    const cgcn::Assignment assignment = cgcn::assign_from_file({numbers.data(), numbers.size()}, nodes);
    CGCN_CHECK(assignment.num_clusters >= 1 && assignment.num_clusters <= kNodes);
    for (const uint32_t cluster : assignment.clusters) CGCN_CHECK(cluster < assignment.num_clusters);
  });
  return 0;
}
