// libclustergcn-mpi.so: MPI behind src/dist/mpi_plugin.h. Messages between pairs of ranks are all that is used; what
// the program sums, it sums in an order of its own.
#include <mpi.h>

#include <cstdlib>
#include <vector>

#include "dist/mpi_plugin.h"

namespace {

MPI_Comm group = MPI_COMM_NULL;
std::vector<MPI_Request> requests;
std::vector<uint32_t> free_requests;
char message[MPI_MAX_ERROR_STRING + 1];

const char* describe(int status) {
  if (status == MPI_SUCCESS) return nullptr;
  int length = 0;
  if (MPI_Error_string(status, message, &length) != MPI_SUCCESS) return "MPI failed";
  message[length] = '\0';
  return message;
}

uint32_t new_request() {
  if (free_requests.empty()) {
    requests.push_back(MPI_REQUEST_NULL);
    return static_cast<uint32_t>(requests.size() - 1);
  }
  const uint32_t request = free_requests.back();
  free_requests.pop_back();
  return request;
}

const char* start(uint32_t* rank, uint32_t* size) {
  // Open MPI would put handlers of its own where the program has some, and warn of it.
  setenv("OMPI_MCA_opal_signal", "", 0);
  int initialised = 0, level = 0, own = 0, all = 0;
  MPI_Initialized(&initialised);
  if (initialised != 0) return "it runs already in this process";
  int status = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &level);
  if (status == MPI_SUCCESS) status = MPI_Comm_dup(MPI_COMM_WORLD, &group);
  if (status == MPI_SUCCESS) status = MPI_Comm_set_errhandler(group, MPI_ERRORS_RETURN);
  if (status == MPI_SUCCESS) status = MPI_Comm_rank(group, &own);
  if (status == MPI_SUCCESS) status = MPI_Comm_size(group, &all);
  if (status != MPI_SUCCESS) return describe(status);
  if (level < MPI_THREAD_FUNNELED) return "this MPI does not allow threads";
  *rank = static_cast<uint32_t>(own);
  *size = static_cast<uint32_t>(all);
  return nullptr;
}

const char* send(uint32_t to, int tag, const void* data, size_t bytes, uint32_t* request) {
  *request = new_request();
  return describe(
      MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, static_cast<int>(to), tag, group, &requests[*request]));
}

const char* receive(uint32_t from, int tag, void* data, size_t bytes, uint32_t* request) {
  *request = new_request();
  return describe(
      MPI_Irecv(data, static_cast<int>(bytes), MPI_BYTE, static_cast<int>(from), tag, group, &requests[*request]));
}

const char* test(uint32_t request, int* done) {
  const int status = MPI_Test(&requests[request], done, MPI_STATUS_IGNORE);
  if (status == MPI_SUCCESS && *done != 0) free_requests.push_back(request);
  return describe(status);
}

void cancel(uint32_t receive) {
  MPI_Cancel(&requests[receive]);
  MPI_Wait(&requests[receive], MPI_STATUS_IGNORE);
  free_requests.push_back(receive);
}

void abort_job(int status) { MPI_Abort(group, status); }

void finish() {
  MPI_Comm_free(&group);
  MPI_Finalize();
}

const char* library() {
  static char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);
  for (char* c = text; *c != '\0'; ++c)
    if (*c == ',' || *c == '\n') *c = '\0';
  return text;
}

const ClustergcnMpi functions = {kClustergcnMpiVersion, start, send, receive, test, cancel, abort_job, finish, library};

}  // namespace

extern "C" __attribute__((visibility("default"))) const ClustergcnMpi* clustergcn_mpi() { return &functions; }
