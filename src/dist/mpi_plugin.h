// What libclustergcn-mpi.so offers: the few functions of MPI that the program uses, behind plain pointers, so that
// neither the program nor the library needs MPI to be installed. The plugin is built for one MPI and may be built again
// for another without the program.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

struct ClustergcnMpi {
  uint32_t version;  // kClustergcnMpiVersion of the header that it was built with

  // All return null if it went well, else what went wrong. One thread calls them all.
  const char* (*start)(uint32_t* rank, uint32_t* size);
  const char* (*send)(uint32_t to, int tag, const void* data, size_t bytes, uint32_t* request);
  const char* (*receive)(uint32_t from, int tag, void* data, size_t bytes, uint32_t* request);
  const char* (*test)(uint32_t request, int* done);  // a request that is done is gone
  void (*cancel)(uint32_t receive);
  void (*abort)(int status);
  void (*finish)();
  const char* (*library)();  // "Open MPI v4.1.4 …"
};

const ClustergcnMpi* clustergcn_mpi();

}  // extern "C"

inline constexpr uint32_t kClustergcnMpiVersion = 1;
