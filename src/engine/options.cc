#include <algorithm>

#include "engine/content.h"
#include "train/recipes.h"

namespace clustergcn {

const char* version() { return CGCN_VERSION; }

Error::Error(const std::string& what, std::string problem, std::string where, std::string hint)
    : std::runtime_error(what), problem_(std::move(problem)), where_(std::move(where)), hint_(std::move(hint)) {}
Error::~Error() = default;
Stopped::~Stopped() = default;

std::string set_option(cgcn::OptionList& list, std::string name, const std::string& value) {
  std::replace(name.begin(), name.end(), '_', '-');
  if (cgcn::Option* option = list.find(name)) {
    option->set(value, "--" + name);
    return name;
  }
  std::vector<std::string> names;
  for (const cgcn::Option& option : list.all()) names.push_back(option.name());
  throw cgcn::Error("unknown option" + cgcn::did_you_mean(name, names), "--" + name);
}

Options::Options() : content_(std::make_unique<Content>()) {}
Options::~Options() = default;
Options::Options(const Options& other) : Options() { *this = other; }
Options& Options::operator=(const Options& other) {
  content_->values = other.content_->values;
  content_->recipe = other.content_->recipe;
  content_->given = other.content_->given;
  return *this;
}

Options& Options::recipe(const std::string& name) {
  call({}, [&] {
    const cgcn::Recipe& recipe = cgcn::find_recipe(name);
    cgcn::apply_recipe(recipe, content_->list);
    for (const auto& value : recipe.values)
      std::erase_if(content_->given, [&](const auto& set) { return set.first == value.first; });
    content_->recipe = name;
  });
  return *this;
}

Options& Options::set(const std::string& name, const std::string& value) {
  call({}, [&] { content_->given.emplace_back(set_option(content_->list, name, value), value); });
  return *this;
}

std::string Options::get(const std::string& name) const {
  std::string known = name;
  std::replace(known.begin(), known.end(), '_', '-');
  const cgcn::Option* option = content_->list.find(known);
  if (option == nullptr) throw Error("no option " + name, "unknown option", "--" + known);
  return option->text();
}

std::vector<OptionInfo> Options::all() {
  static constexpr const char* kKinds[] = {"flag", "integer", "real", "text", "choice"};
  const Content content;
  std::vector<OptionInfo> all;
  for (const cgcn::Option& option : content.list.all())
    all.push_back({option.name(), kKinds[static_cast<int>(option.kind())], option.default_text(), option.help(),
                   option.group(), option.choices()});
  return all;
}

}  // namespace clustergcn
