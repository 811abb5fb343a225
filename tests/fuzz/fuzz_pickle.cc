// A pickle, taken as each of the things that one may hold.
#include "fuzz_support.h"
#include "io/serialised/pickle.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  cgcn::fuzz::attempt([&] {
    const cgcn::Pickle pickle(cgcn::SharedBytes::own({reinterpret_cast<const char*>(data), size}), "fuzz");
    cgcn::fuzz::attempt([&] {
      const cgcn::Array array = pickle.array();
      if (array.is_number() && array.shape().size() <= 2) array.read_all<double>();
    });
    cgcn::fuzz::attempt([&] { cgcn::for_each_row(pickle.matrix(), [](uint64_t, auto, auto) {}); });
    cgcn::fuzz::attempt([&] { pickle.for_each_list([](int64_t, std::span<const int64_t>) {}); });
    cgcn::fuzz::attempt([&] { pickle.texts(); });
  });
  return 0;
}
