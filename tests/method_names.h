// The methods as tests name them.
#pragma once

#include <string>

#include "batch/methods.h"

namespace cgcn::test {

inline constexpr Method kOtherMethods[] = {Method::kFullBatch, Method::kSgd, Method::kGraphSage, Method::kFastGcn,
                                           Method::kVrGcn};

inline std::string name_of(Method method) {
  MethodOptions options;
  options.method = method;
  OptionList list;
  options.list_options(list);
  std::string name = list.find("method")->text();
  std::erase(name, '-');
  return name;
}

}  // namespace cgcn::test
