#include "graph/store_meta.h"

#include <algorithm>
#include <initializer_list>
#include <vector>

#include "common/hash.h"
#include "graph/feature_encoding.h"

namespace cgcn {
namespace {

using nlohmann::json;

bool is_count(const json& value) { return value.is_number_unsigned(); }
bool is_text(const json& value) { return value.is_string(); }
bool is_bool(const json& value) { return value.is_boolean(); }
bool is_object(const json& value) { return value.is_object(); }

bool is_hash(const json& value) {
  const auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  if (!value.is_string()) return false;
  const auto& text = value.get_ref<const std::string&>();
  return !text.empty() && text.size() <= 32 && std::all_of(text.begin(), text.end(), is_hex);
}

bool is_feature_hash(const json& value) { return value == json("identity") || is_hash(value); }
bool is_list_of_texts(const json& value) {
  return value.is_array() && std::all_of(value.begin(), value.end(), is_text);
}
bool is_shape(const json& value) {
  return value.is_array() && !value.empty() && value.size() <= 2 && std::all_of(value.begin(), value.end(), is_count);
}

// Array names are file names: nothing in them may lead elsewhere.
bool is_array_name(const std::string& name) {
  return !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

struct Field {
  const char* name;
  bool (*fits)(const json&);
  const char* expected;
};

constexpr const char *kCount = "a whole number", *kText = "a text", *kBool = "true or false", *kHash = "a hash",
                     *kObject = "an object";

void check_fields(const json& object, const std::string& prefix, std::initializer_list<Field> fields,
                  const fs::path& file) {
  for (const Field& field : fields) {
    const auto found = object.find(field.name);
    if (found == object.end()) throw damaged_store(file, fmt::format("'{}{}' is missing", prefix, field.name));
    if (!field.fits(*found))
      throw damaged_store(file, fmt::format("'{}{}' is not {}", prefix, field.name, field.expected));
  }
}

void check_choice(const json& value, const char* name, std::initializer_list<const char*> known, const fs::path& file) {
  const auto& text = value.get_ref<const std::string&>();
  if (std::none_of(known.begin(), known.end(), [&](const char* choice) { return text == choice; }))
    throw damaged_store(file, fmt::format("'{}' is none of {}", name, fmt::join(known, ", ")));
}

// Names of feature columns and how they were encoded: where the source had names.
void check_columns(const json& features, const fs::path& file) {
  if (features.contains("names") && !is_list_of_texts(features["names"]))
    throw damaged_store(file, "'features.names' is not a list of texts");
  try {
    if (features.contains("encoding")) features["encoding"].get<std::vector<ColumnEncoding>>();
  } catch (const json::exception&) {
    throw damaged_store(file, "'features.encoding' is not a list of columns");
  }
}

}  // namespace

Error damaged_store(const fs::path& where, const std::string& what) {
  return Error("the store is damaged: " + what, where.string(), "import or generate it again");
}

void check_meta(const json& meta, const fs::path& file) {
  check_fields(meta, "",
               {{"name", is_text, kText},
                {"nodes", is_count, kCount},
                {"edges", is_count, kCount},
                {"entries", is_count, kCount},
                {"directed", is_bool, kBool},
                {"weighted", is_bool, kBool},
                {"features", is_object, kObject},
                {"labels", is_object, kObject},
                {"class_names", is_list_of_texts, "a list of texts"},
                {"ids", is_text, kText},
                {"arrays", is_object, kObject},
                {"graph_hash", is_hash, kHash},
                {"content_hash", is_hash, kHash},
                {"extra", is_object, kObject}},
               file);
  check_fields(meta["features"], "features.",
               {{"kind", is_text, kText}, {"columns", is_count, kCount}, {"hash", is_feature_hash, kHash}}, file);
  check_columns(meta["features"], file);
  check_fields(meta["labels"], "labels.", {{"kind", is_text, kText}, {"classes", is_count, kCount}}, file);
  check_choice(meta["features"]["kind"], "features.kind", {"dense32", "dense16", "bfloat16", "sparse", "identity"},
               file);
  check_choice(meta["labels"]["kind"], "labels.kind", {"single", "multi", "numbers", "none"}, file);
  check_choice(meta["ids"], "ids", {"range", "integers", "strings"}, file);
  for (const auto& [name, array] : meta["arrays"].items()) {
    if (!is_array_name(name)) throw damaged_store(file, "an array has a name that no store gives");
    if (!array.is_object()) throw damaged_store(file, fmt::format("'arrays.{}' is not {}", name, kObject));
    check_fields(
        array, fmt::format("arrays.{}.", name),
        {{"dtype", is_text, kText}, {"shape", is_shape, "a shape of one or two numbers"}, {"checksum", is_hash, kHash}},
        file);
  }
}

std::string meta_checksum(nlohmann::json meta) {
  meta.erase("checksum");
  const std::string text = meta.dump();
  return hex64(checksum(text.data(), text.size()));
}

}  // namespace cgcn
