// libclustergcn.so is cgcn_engine whole; CMake wants a source of its own.
#include "clustergcn/clustergcn.h"
