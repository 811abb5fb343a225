#include "io/class_table.h"

#include <simdjson.h>

#include <algorithm>
#include <cmath>

#include "io/fields.h"
#include "io/import_steps.h"

namespace cgcn {
namespace {

bool means_none(std::string_view text) { return text.empty() || lower_case(text) == "nan"; }

}  // namespace

std::vector<int32_t> ClassTable::number_classes(const std::string& where, std::vector<std::string>& names) const {
  std::vector<int32_t> classes(texts_.size(), -1);
  bool numeric = true;
  for (NodeId i = 0; i < texts_.size() && numeric; ++i) {
    const std::optional<double> value = parse_number(texts_[i]);
    if (means_none(texts_[i])) continue;
    numeric = value && *value == std::floor(*value) && std::abs(*value) < 0x1p53;
    if (numeric && *value >= 0)
      classes[i] = static_cast<int32_t>(check_class_count(static_cast<int64_t>(*value), where)) - 1;
  }
  if (numeric) return classes;

  std::vector<NodeId> sorted;
  for (NodeId i = 0; i < texts_.size(); ++i) {
    if (means_none(texts_[i])) continue;
    if (!simdjson::validate_utf8(texts_[i].data(), texts_[i].size()))
      throw Error(fmt::format("the class name {} is not UTF-8 text", show(texts_[i])), where, "save the file as UTF-8");
    sorted.push_back(i);
  }
  check_class_count(static_cast<int64_t>(sorted.size()) - 1, where);
  std::sort(sorted.begin(), sorted.end(), [&](NodeId a, NodeId b) { return texts_[a] < texts_[b]; });
  classes.assign(texts_.size(), -1);
  for (size_t rank = 0; rank < sorted.size(); ++rank) {
    classes[sorted[rank]] = static_cast<int32_t>(rank);
    names.emplace_back(texts_[sorted[rank]]);
  }
  return classes;
}

}  // namespace cgcn
