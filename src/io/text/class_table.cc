#include "io/text/class_table.h"

#include <simdjson.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "io/formats/import_steps.h"
#include "io/serialised/json_reader.h"
#include "io/text/fields.h"

namespace cgcn {
namespace {

bool means_none(std::string_view text) { return text.empty() || lower_case(text) == "nan"; }

// 007 is a code, not a number: 7 may be another one.
bool is_code(std::string_view text) {
  return text.size() > 1 && text[0] == '0' && text.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

bool means_no_number(std::string_view text) {
  const std::string lower = lower_case(text);
  return means_none(text) || lower == "na" || lower == "n/a" || lower == "<na>" || lower == "null" || lower == "none";
}

std::vector<float> ClassTable::read_numbers(const std::string& where) const {
  std::vector<float> values(texts_.size(), NAN);
  bool any = false;
  for (NodeId i = 0; i < texts_.size(); ++i) {
    if (means_no_number(texts_[i])) continue;
    const std::optional<double> value = parse_number(texts_[i]);
    values[i] = value ? static_cast<float>(*value) : NAN;
    if (!std::isfinite(values[i]))
      throw Error(fmt::format("the label {} is no number", show(texts_[i])), where,
                  "leave --task regression out if labels are classes");
    any = true;
  }
  if (!any) throw Error("labels no node", where);
  return values;
}

// By the names that an earlier store has.
std::vector<int32_t> ClassTable::number_as_known(const std::string& where, const KnownClasses& known) const {
  std::vector<int32_t> classes(texts_.size(), -1);
  std::vector<std::string> others;
  for (NodeId i = 0; i < texts_.size(); ++i) {
    const auto found = std::find(known.names.begin(), known.names.end(), texts_[i]);
    if (found != known.names.end())
      classes[i] = static_cast<int32_t>(found - known.names.begin());
    else if (!means_no_number(texts_[i]))
      others.emplace_back(texts_[i]);
  }
  if (!others.empty())
    throw Error(fmt::format("has classes that {} does not have: {}", known.store, list_some(others)), where,
                "leave these labels empty");
  return classes;
}

std::vector<int32_t> ClassTable::number_classes(const std::string& where, std::vector<std::string>& names,
                                                const KnownClasses* known) const {
  if (known != nullptr && !known->names.empty()) {
    names = known->names;
    return number_as_known(where, *known);
  }
  std::vector<int32_t> classes(texts_.size(), -1);
  bool numeric = true, numbers = true, whole = true, codes = false;
  for (NodeId i = 0; i < texts_.size(); ++i) {
    if (means_no_number(texts_[i])) continue;
    const std::optional<double> value = parse_number(texts_[i]);
    numbers = numbers && value;
    whole = whole && value && *value == std::floor(*value);
    codes = codes || is_code(texts_[i]);
  }
  for (NodeId i = 0; i < texts_.size() && numeric; ++i) {
    const std::optional<double> value = parse_number(texts_[i]);
    if (means_no_number(texts_[i])) continue;
    numeric = value && *value == std::floor(*value) && std::abs(*value) < 0x1p53 && !codes;
    if (numeric && *value >= 0)
      classes[i] = static_cast<int32_t>(check_class_count(static_cast<int64_t>(*value), where)) - 1;
  }
  const bool more = known != nullptr && std::any_of(classes.begin(), classes.end(), [&](int32_t label) {
                      return label >= static_cast<int32_t>(known->count);
                    });
  if (known != nullptr && (!numeric || more))
    throw Error(fmt::format("its classes are not the numbers 0 to {} of {}", known->count - 1, known->store), where);
  if (numeric) return classes;
  if (numbers && !whole)
    throw Error("labels are numbers, and not all of them are whole: no classes", where,
                "--task regression predicts numbers; give classes whole numbers, or names");

  std::vector<NodeId> sorted;
  for (NodeId i = 0; i < texts_.size(); ++i) {
    if (numbers ? means_no_number(texts_[i]) : means_none(texts_[i])) continue;
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

namespace {

std::vector<std::string_view> split_list(std::string_view text) {
  std::vector<std::string_view> names;
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of(ClassTable::kListSeparators), text.size());
    std::string_view name = text.substr(0, end);
    while (name.starts_with(' ')) name.remove_prefix(1);
    while (name.ends_with(' ')) name.remove_suffix(1);
    if (!name.empty()) names.push_back(name);
    text.remove_prefix(std::min(text.size(), end + 1));
  }
  return names;
}

}  // namespace

ClassTable::Lists ClassTable::read_lists(const std::string& where, const KnownClasses* known) const {
  Lists lists;
  std::set<std::string_view> names;
  for (NodeId i = 0; i < texts_.size(); ++i) {
    if (!simdjson::validate_utf8(texts_[i].data(), texts_[i].size()))
      throw Error(fmt::format("the class name {} is not UTF-8 text", show(texts_[i])), where, "save the file as UTF-8");
    if (!means_none(texts_[i]))
      for (const std::string_view name : split_list(texts_[i])) names.insert(name);
  }
  if (known != nullptr && known->names.empty())
    throw Error(fmt::format("its classes have names, those of {} are numbers", known->store), where);
  lists.names = known != nullptr ? known->names : std::vector<std::string>(names.begin(), names.end());
  if (lists.names.empty()) throw Error("labels no node", where);
  check_class_count(static_cast<int64_t>(lists.names.size()) - 1, where);
  std::vector<std::string> others;
  lists.classes.resize(texts_.size());
  for (NodeId i = 0; i < texts_.size(); ++i) {
    if (means_none(texts_[i])) continue;
    for (const std::string_view name : split_list(texts_[i])) {
      const auto found = std::find(lists.names.begin(), lists.names.end(), name);
      if (found != lists.names.end())
        lists.classes[i].push_back(static_cast<uint32_t>(found - lists.names.begin()));
      else
        others.emplace_back(name);
    }
  }
  if (!others.empty())
    throw Error(fmt::format("has classes that {} does not have: {}", known->store, list_some(others)), where,
                "leave these labels empty");
  return lists;
}

void refuse_single_class(std::span<const int32_t> classes, uint64_t negative, const std::string& where) {
  const auto first = std::find_if(classes.begin(), classes.end(), [](int32_t label) { return label >= 0; });
  if (negative == 0 || first == classes.end()) return;
  if (std::all_of(first, classes.end(), [&](int32_t label) { return label < 0 || label == *first; }))
    throw Error(fmt::format("the only class is {}: the labels below 0, of {} nodes, mean no class", *first, negative),
                where, "number the classes from 0, or give them names");
}

void ClassTable::name_numbers(Result& result) {
  const Labels& labels = result.labels;
  if (!labels.present() || labels.multi_label() || labels.regression()) return;
  std::vector<int32_t> place(labels.num_classes(), -1);
  for (const int32_t label : labels.classes())
    if (label >= 0) place[static_cast<size_t>(label)] = 0;
  if (place[0] == 0 || std::count(place.begin(), place.end(), 0) == 1) return;
  for (size_t label = 0; label < place.size(); ++label) {
    if (place[label] < 0) continue;
    place[label] = static_cast<int32_t>(result.names.size());
    result.names.push_back(std::to_string(label));
  }
  std::vector<int32_t> classes(labels.classes().begin(), labels.classes().end());
  for (int32_t& label : classes)
    if (label >= 0) label = place[static_cast<size_t>(label)];
  result.labels = Labels::single(std::move(classes), static_cast<uint32_t>(result.names.size()));
}

ClassTable::Result settle_array(Labels labels, const std::string& where, const KnownClasses* known) {
  ClassTable::Result result{std::move(labels), {}};
  if (known == nullptr) {
    ClassTable::name_numbers(result);
  } else if (!known->names.empty() && !result.labels.multi_label() && !result.labels.regression()) {
    const std::span<const int32_t> classes = result.labels.classes();
    ClassTable table;
    for (NodeId v = 0; v < classes.size(); ++v)
      if (classes[v] >= 0) table.add(v, std::to_string(classes[v]));
    return table.settle(
        static_cast<NodeId>(classes.size()), where, [](NodeId v) { return v; }, known);
  }
  return result;
}

ClassTable::Result read_class_map(const fs::path& path, NodeId n, const std::function<NodeId(std::string_view)>& find) {
  JsonReader json(path);
  ClassTable classes;
  std::optional<LabelBits> bits;
  uint32_t width = 0;
  std::vector<bool> listed(n, false);
  std::vector<uint32_t> labels;
  json.enter_object();
  for (std::string_view key; json.next_key(key);) {
    const NodeId row = find(key);
    if (row == kNoNode) json.fail(fmt::format("node {} is not listed in the graph", show(key)));
    if (json.peek() != JsonReader::Kind::kArray) {
      if (bits) json.fail("a single class, but others are lists of 0/1");
      const bool none = json.peek() == JsonReader::Kind::kNull;
      const std::string_view word = json.read_word();
      classes.add(row, none ? std::string_view() : word);
      continue;
    }
    if (classes.size() > 0) json.fail("a list of 0/1, but others are single classes");
    labels.clear();
    uint32_t count = 0;
    json.enter_array();
    for (; json.next_element(); ++count) {
      const double value = json.read_number();
      if (value != 0 && value != 1) json.fail(fmt::format("a label is {}, but must be 0 or 1", value));
      if (value == 1) labels.push_back(count);
    }
    if (!bits) {
      width = check_class_count(int64_t{count} - 1, json.where());
      bits.emplace(n, width);
    }
    if (count != width) json.fail(fmt::format("{} labels, but the first node has {}", count, width));
    for (const uint32_t label : labels) bits->set(row, label);
    listed[row] = true;
  }
  json.finish();
  if (bits) return {bits->take(), {}, std::move(listed)};
  return classes.settle(n, path.string(), [](NodeId row) { return row; });
}

}  // namespace cgcn
