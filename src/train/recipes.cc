#include "train/recipes.h"

#include <algorithm>

#include "common/error.h"

namespace cgcn {
namespace {

// Two layers of Kipf and Welling's form on all nodes and links; the paper's table 2 has ten clusters, one a batch.
std::vector<std::pair<std::string, std::string>> small_citations(const char* hidden, const char* eval_every) {
  return {{"parts", "10"},
          {"partitioner", "metis"},
          {"per-batch", "1"},
          {"transductive", "true"},
          {"layers", "2"},
          {"hidden", hidden},
          {"conv", "plain"},
          {"normalisation", "symmetric"},
          {"input-normalisation", "symmetric"},
          {"layer-norm", "false"},
          {"bias", "true"},
          {"dropout", "0.8"},
          {"weight-decay", "0.01"},
          {"decay-scope", "first-layer"},
          {"dense-adam", "true"},
          {"lr", "0.002"},
          {"schedule", "cosine"},
          {"epochs", "200"},
          {"eval-every", eval_every}};
}

}  // namespace

const std::vector<Recipe>& all_recipes() {
  static const std::vector<Recipe> recipes = {
      {kAutoRecipe, "chosen from counts of the graph, with reasons; the default", {}},
      {kNoRecipe, "the fixed defaults of the options", {}},
      {"ppi",
       "PPI as in the paper's comparison: 3 layers of 512, 50 clusters, one per batch",
       {{"layers", "3"},
        {"hidden", "512"},
        {"parts", "50"},
        {"partitioner", "metis"},
        {"per-batch", "1"},
        {"lr", "0.01"},
        {"dropout", "0.2"},
        {"epochs", "200"},
        {"standardise", "true"}}},
      {"ppi-deep",
       "PPI as in the released run that reaches the paper's 99.36: 5 layers of 2048, diagonal enhancement of 1",
       {{"layers", "5"},
        {"hidden", "2048"},
        {"parts", "50"},
        {"partitioner", "metis"},
        {"per-batch", "1"},
        {"lr", "0.01"},
        {"dropout", "0.2"},
        {"normalisation", "self+diagonal"},
        {"lambda", "1"},
        {"epochs", "400"},
        {"standardise", "true"}}},
      {"reddit",
       "Reddit as in the released run at the paper's width: 4 layers of 128, 1,500 clusters, 20 per batch",
       {{"layers", "4"},
        {"hidden", "128"},
        {"parts", "1500"},
        {"partitioner", "metis"},
        {"per-batch", "20"},
        {"lr", "0.005"},
        {"dropout", "0.2"},
        {"normalisation", "self+diagonal"},
        {"lambda", "0.0001"},
        {"epochs", "130"},
        {"standardise", "true"}}},
      {"amazon",
       "Amazon as in the paper, which has no features: 3 layers of 128, 200 clusters, one per batch",
       {{"layers", "3"},
        {"hidden", "128"},
        {"parts", "200"},
        {"partitioner", "metis"},
        {"per-batch", "1"},
        {"lr", "0.01"},
        {"dropout", "0.2"},
        {"epochs", "200"}}},
      {"amazon2m",
       "Amazon2M as in the paper: 3 layers of 400, 15,000 clusters, 10 per batch",
       {{"layers", "3"},
        {"hidden", "400"},
        {"parts", "15000"},
        {"partitioner", "metis"},
        {"per-batch", "10"},
        {"lr", "0.01"},
        {"dropout", "0.2"},
        {"epochs", "200"}}},
      {"cora", "Cora, Citeseer, Pubmed: 10 clusters, one per batch as in the paper, Kipf and Welling's model",
       small_citations("128", "1")},
      {"citeseer", "as cora, half as wide, validated every second epoch", small_citations("64", "2")},
      {"pubmed", "as cora", small_citations("128", "1")},
      {"kipf",
       "Kipf and Welling's own training of Cora, Citeseer, Pubmed: the whole graph, 2 layers of 16",
       {{"method", "full-batch"},
        {"first-layer", "batch"},
        {"transductive", "true"},
        {"layers", "2"},
        {"hidden", "16"},
        {"conv", "plain"},
        {"normalisation", "symmetric"},
        {"input-normalisation", "symmetric"},
        {"layer-norm", "false"},
        {"dropout", "0.5"},
        {"dropout-place", "before"},
        {"weight-decay", "0.0005"},
        {"decay-scope", "first-layer"},
        {"dense-adam", "true"},
        {"normalise-rows", "true"},
        {"lr", "0.01"},
        {"epochs", "200"},
        {"keep", "last"}}},
      {"small",
       "a small graph with many labels, such as Amazon Photo: 2 layers of 128 on all nodes, 10 clusters, 2 per batch",
       {{"parts", "10"},
        {"per-batch", "2"},
        {"transductive", "true"},
        {"layers", "2"},
        {"hidden", "128"},
        {"dropout", "0.5"},
        {"lr", "0.005"},
        {"epochs", "30"}}},
  };
  return recipes;
}

const Recipe& find_recipe(const std::string& name) {
  std::vector<std::string> names;
  for (const Recipe& recipe : all_recipes()) {
    if (recipe.name == name) return recipe;
    names.push_back(recipe.name);
  }
  throw Error(fmt::format("unknown recipe '{}'{}", name, did_you_mean(name, names)), "--recipe",
              fmt::format("one of {}", fmt::join(names, ", ")));
}

void apply_recipe(const Recipe& recipe, OptionList& options) {
  for (const auto& [name, value] : recipe.values) options.set(name, value, "recipe " + recipe.name);
}

}  // namespace cgcn
