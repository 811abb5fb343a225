// meta.json with values of other types than the writer gives, its checksum made to fit: opened or refused by name, and
// never anything else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "common/error.h"
#include "common/hash.h"
#include "graph/store.h"
#include "random_dataset.h"
#include "support.h"

namespace cgcn {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class ForgedMeta : public ::testing::Test {
 protected:
  ForgedMeta() {
    write_store(folder_ / "s", test::random_dataset(5), StagedDirectory::Existing::kRefuse, {{"import", {{"a", 1}}}});
    meta_ = json::parse(read_text_file(folder_ / "s" / "meta.json"));
  }
  void write(json meta) const {
    meta.erase("checksum");
    const std::string text = meta.dump();
    meta["checksum"] = hex64(checksum(text.data(), text.size()));
    write_file_atomically(folder_ / "s" / "meta.json", meta.dump());
  }
  std::string error_with(const std::string& place, const json& value) const {
    json meta = meta_;
    meta[json::json_pointer(place)] = value;
    write(meta);
    return test::message_of<Error>([&] { open_dataset(folder_ / "s"); });
  }

  const test::TemporaryFolder folder_;
  json meta_;
};

// All places of a document, inner ones included.
void list_places(const json& value, const std::string& place, std::vector<std::string>& places) {
  if (!place.empty()) places.push_back(place);
  if (value.is_object())
    for (const auto& [key, part] : value.items()) list_places(part, place + "/" + key, places);
  if (value.is_array())
    for (size_t i = 0; i < value.size(); ++i) list_places(value[i], place + "/" + std::to_string(i), places);
}

TEST_F(ForgedMeta, EveryFieldsTypeIsChecked) {
  EXPECT_THAT(error_with("/class_names", 7), HasSubstr("meta.json: the store is damaged: 'class_names' is not a list"));
  EXPECT_THAT(error_with("/class_names", {"a", 7}), HasSubstr("'class_names' is not a list of texts"));
  EXPECT_THAT(error_with("/content_hash", json::object()), HasSubstr("'content_hash' is not a hash"));
  EXPECT_THAT(error_with("/graph_hash", "../../x"), HasSubstr("'graph_hash' is not a hash"));
  EXPECT_THAT(error_with("/extra", "x"), HasSubstr("'extra' is not an object"));
  EXPECT_THAT(error_with("/name", 1), HasSubstr("'name' is not a text"));
  EXPECT_THAT(error_with("/nodes", -1), HasSubstr("'nodes' is not a whole number"));
  EXPECT_THAT(error_with("/nodes", 1e30), HasSubstr("'nodes' is not a whole number"));
  EXPECT_THAT(error_with("/directed", 1), HasSubstr("'directed' is not true or false"));
  EXPECT_THAT(error_with("/features/columns", "3"), HasSubstr("'features.columns' is not a whole number"));
  EXPECT_THAT(error_with("/features/kind", "thin"), HasSubstr("'features.kind' is none of dense32, dense16"));
  EXPECT_THAT(error_with("/features/names", 7), HasSubstr("'features.names' is not a list of texts"));
  for (const json& wrong : {json(7), json({{"name", 1}}), json(std::vector<int>{1}),
                            json::parse(R"([{"name": "a", "kind": "number", "missing": "mean", "fill": "x"}])")})
    EXPECT_THAT(error_with("/features/encoding", wrong), HasSubstr("'features.encoding' is not a list of columns"));
  EXPECT_THAT(error_with("/labels", nullptr), HasSubstr("'labels' is not an object"));
  EXPECT_THAT(error_with("/ids", "roman"), HasSubstr("'ids' is none of range, integers, strings"));
  EXPECT_THAT(error_with("/arrays/adjacency_offsets/shape", {"1"}), HasSubstr("'arrays.adjacency_offsets.shape'"));
  EXPECT_THAT(error_with("/arrays/..~1..~1x", json::object()), HasSubstr("a name that no store gives"));
  json meta = meta_;
  meta.erase("labels");
  write(meta);
  EXPECT_THAT(test::message_of<Error>([&] { open_dataset(folder_ / "s"); }), HasSubstr("'labels' is missing"));
}

TEST_F(ForgedMeta, NothingButAnErrorComesOfIt) {
  write(meta_);
  EXPECT_EQ(open_dataset(folder_ / "s").name, "random");
  std::vector<std::string> places;
  list_places(meta_, "", places);
  ASSERT_GT(places.size(), 30u);
  size_t refused = 0;
  for (const std::string& place : places)
    for (const json& value : {json(), json(true), json(0), json(-1), json(1.5), json(1e300), json(UINT64_MAX), json(""),
                              json("x"), json::array(), json({1, "x"}), json::object(), json({{"kind", 3}})}) {
      json meta = meta_;
      meta[json::json_pointer(place)] = value;
      write(meta);
      try {
        const Store store(folder_ / "s");
        store.dataset();
        store.bytes_on_disk();
      } catch (const Error&) {
        ++refused;
      } catch (const std::exception& other) {
        ADD_FAILURE() << place << " = " << value << ": " << other.what();
      }
    }
  EXPECT_GT(refused, 8 * places.size());
}

}  // namespace
}  // namespace cgcn
