// What meta.json of a store must hold: every field that the program reads, with its type.
#pragma once

#include <nlohmann/json.hpp>

#include "common/error.h"
#include "common/file.h"

namespace cgcn {

// For a store that is not what it was when it was written.
Error damaged_store(const fs::path& where, const std::string& what);

// Error, naming the field, if one is missing or of another type or kind than the store's writer gives it.
void check_meta(const nlohmann::json& meta, const fs::path& file);

// What its field "checksum" is to be.
std::string meta_checksum(nlohmann::json meta);

}  // namespace cgcn
