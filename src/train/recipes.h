// Settings by name: the paper's for its data sets, and those that do well on the small public graphs. Two names are no
// lists of values: kAutoRecipe chooses from the graph (choices.h), kNoRecipe leaves the fixed defaults.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "common/options.h"

namespace cgcn {

inline constexpr const char *kAutoRecipe = "auto", *kNoRecipe = "none";

struct Recipe {
  std::string name;
  std::string summary;                                      // where the values come from
  std::vector<std::pair<std::string, std::string>> values;  // option and value, as on the command line
};

const std::vector<Recipe>& all_recipes();
// Error naming the known ones, and the nearest, if there is none of this name.
const Recipe& find_recipe(const std::string& name);
void apply_recipe(const Recipe& recipe, OptionList& options);

}  // namespace cgcn
