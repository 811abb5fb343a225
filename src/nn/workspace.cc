#include "nn/workspace.h"

#include "common/memory.h"

namespace cgcn {

void Workspace::take_shared() {
  for (Shared* shared : {&rows_[0], &rows_[1], &scratch_}) shared->data = take<float>(shared->floats);
}

void Workspace::allocate() {
  memory_ = Buffer<char>(taken_);
  prefer_huge_pages(memory_.data(), memory_.size());
  taken_ = 0;
}

}  // namespace cgcn
