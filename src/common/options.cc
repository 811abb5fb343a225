#include "common/options.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "common/error.h"

namespace cgcn {
namespace {

template <class T>
T parse_number(const std::string& text) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [rest, status] = std::from_chars(text.data(), end, value);
  if (status == std::errc::result_out_of_range) throw std::invalid_argument(fmt::format("'{}' is too large", text));
  if (status != std::errc() || rest != end) {
    if constexpr (std::is_integral_v<T>)
      throw std::invalid_argument(fmt::format("'{}' is not a whole number of zero or more", text));
    else
      throw std::invalid_argument(fmt::format("'{}' is not a number", text));
  }
  if constexpr (std::is_floating_point_v<T>)
    if (!std::isfinite(value)) throw std::invalid_argument(fmt::format("'{}' is not a finite number", text));
  return value;
}

bool parse_flag(const std::string& text) {
  if (text == "true" || text == "1" || text == "yes" || text == "on") return true;
  if (text == "false" || text == "0" || text == "no" || text == "off") return false;
  throw std::invalid_argument(fmt::format("'{}' is neither true nor false", text));
}

std::string join(const std::vector<std::string>& items, const char* separator) {
  return fmt::format("{}", fmt::join(items, separator));
}

// A JSON string in ASCII is a TOML basic string, but for DEL, which TOML wants escaped.
std::string toml_string(const std::string& text) {
  using nlohmann::json;
  std::string quoted = json(text).dump(-1, ' ', /*ensure_ascii=*/true, json::error_handler_t::replace);
  for (size_t at = 0; (at = quoted.find('\x7f', at)) != std::string::npos;) quoted.replace(at, 1, "\\u007f");
  return quoted;
}

template <class T>
auto number_getter(T* target) {
  return [target] { return fmt::format("{}", *target); };
}
template <class T>
auto number_setter(T* target) {
  return [target](const std::string& text) { *target = parse_number<T>(text); };
}

}  // namespace

Option& Option::range(double low, double high) {
  low_ = low;
  high_ = high;
  ranged_ = true;
  return *this;
}
Option& Option::common() {
  common_ = true;
  return *this;
}

Option& Option::resumable(std::function<bool()> allowed, std::string why_not) {
  resumable_ = true;
  resumable_if_ = std::move(allowed);
  why_not_resumable_ = std::move(why_not);
  return *this;
}
Option& Option::needs(std::function<bool()> used, std::string why_not) {
  needs_.emplace_back(std::move(used), std::move(why_not));
  return *this;
}

// What was said last is of the widest view, and comes first.
std::string Option::why_unused() const {
  for (auto need = needs_.rbegin(); need != needs_.rend(); ++need)
    if (!need->first()) return need->second;
  return {};
}

Option& Option::value(std::string name) {
  value_name_ = std::move(name);
  return *this;
}
Option& Option::shape(std::function<void(const std::string&)> check) {
  check_ = std::move(check);
  return *this;
}

void Option::set(const std::string& text, const std::string& where) {
  try {
    if (kind_ == Kind::kChoice && std::find(choices_.begin(), choices_.end(), text) == choices_.end())
      throw std::invalid_argument(
          fmt::format("'{}' is not one of {}{}", text, join(choices_, ", "), did_you_mean(text, choices_)));
    if (ranged_) {
      const auto number = parse_number<double>(text);
      if (number < low_ || number > high_)
        throw std::invalid_argument(fmt::format("{} is outside {} to {}", text, low_, high_));
    }
    if (check_) check_(text);
    set_(text);
  } catch (const std::invalid_argument& problem) {
    // The default is an example of the right form; choices and ranges have been told already.
    const bool shows = (kind_ == Kind::kInteger || kind_ == Kind::kReal || kind_ == Kind::kText) && !ranged_;
    throw Error(problem.what(), where,
                shows && !default_text_.empty() ? fmt::format("--{} {}, the default", name_, default_text_) : "");
  }
}

std::string Option::command_line() const {
  if (kind_ == Kind::kFlag) return (text() == "true" ? "--" : "--no-") + name_;
  return fmt::format("--{} {}", name_, shell_word(text()));
}

Option& OptionList::add_erased(std::string name, Option::Kind kind, std::string help, std::function<std::string()> get,
                               std::function<void(const std::string&)> set) {
  CGCN_CHECK(find(name) == nullptr, "option {} is declared twice", name);
  Option& option = options_.emplace_back();
  option.name_ = std::move(name);
  option.help_ = std::move(help);
  option.group_ = group_;
  option.kind_ = kind;
  option.default_text_ = get();
  option.get_ = std::move(get);
  option.set_ = std::move(set);
  return option;
}

Option& OptionList::add(std::string name, bool* target, std::string help) {
  return add_erased(
      std::move(name), Option::Kind::kFlag, std::move(help), [target] { return *target ? "true" : "false"; },
      [target](const std::string& text) { *target = parse_flag(text); });
}
Option& OptionList::add(std::string name, uint32_t* target, std::string help) {
  return add_erased(std::move(name), Option::Kind::kInteger, std::move(help), number_getter(target),
                    number_setter(target))
      .value("N");
}
Option& OptionList::add(std::string name, uint64_t* target, std::string help) {
  return add_erased(std::move(name), Option::Kind::kInteger, std::move(help), number_getter(target),
                    number_setter(target))
      .value("N");
}
Option& OptionList::add(std::string name, float* target, std::string help) {
  return add_erased(std::move(name), Option::Kind::kReal, std::move(help), number_getter(target), number_setter(target))
      .value("X");
}
Option& OptionList::add(std::string name, double* target, std::string help) {
  return add_erased(std::move(name), Option::Kind::kReal, std::move(help), number_getter(target), number_setter(target))
      .value("X");
}
Option& OptionList::add(std::string name, std::string* target, std::string help) {
  return add_erased(
             std::move(name), Option::Kind::kText, std::move(help), [target] { return *target; },
             [target](const std::string& text) { *target = text; })
      .value("TEXT");
}
Option& OptionList::add_choice_erased(std::string name, std::vector<std::string> names, std::string help,
                                      const std::function<size_t()>& get, const std::function<void(size_t)>& set) {
  Option& option = add_erased(
      std::move(name), Option::Kind::kChoice, std::move(help), [names, get] { return names[get()]; },
      [names, set](const std::string& text) {
        set(static_cast<size_t>(std::find(names.begin(), names.end(), text) - names.begin()));
      });
  option.value_name_ = join(names, "|");
  option.choices_ = std::move(names);
  return option;
}

Option* OptionList::find(const std::string& name) {
  const auto found = std::find_if(options_.begin(), options_.end(), [&](const Option& o) { return o.name_ == name; });
  return found == options_.end() ? nullptr : &*found;
}

void OptionList::set(const std::string& name, const std::string& text, const std::string& where) {
  if (Option* option = find(name)) return option->set(text, where.empty() ? "--" + name : where + ": " + name);
  std::vector<std::string> names;
  for (const Option& option : options_) names.push_back(option.name_);
  throw Error(fmt::format("unknown option '{}'{}", name, did_you_mean(name, names)), where);
}

nlohmann::json OptionList::to_json() const {
  nlohmann::json values = nlohmann::json::object();
  for (const Option& option : options_) {
    const std::string text = option.text();
    switch (option.kind_) {
      case Option::Kind::kFlag:
        values[option.name_] = text == "true";
        break;
      case Option::Kind::kInteger:
        values[option.name_] = parse_number<uint64_t>(text);
        break;
      case Option::Kind::kReal:
        values[option.name_] = parse_number<double>(text);
        break;
      default:
        values[option.name_] = text;
    }
  }
  return values;
}

void OptionList::from_json(const nlohmann::json& values, const std::string& where) {
  if (!values.is_object()) throw Error("the options are not a JSON object", where);
  for (const auto& [name, value] : values.items()) {
    if (value.is_string())
      set(name, value.get<std::string>(), where);
    else if (value.is_boolean())
      set(name, value.get<bool>() ? "true" : "false", where);
    else if (value.is_number_integer())
      set(name, value.dump(), where);
    else if (value.is_number_float())
      set(name, fmt::format("{}", value.get<double>()), where);
    else
      throw Error(fmt::format("the value of '{}' is neither text nor a number", name), where);
  }
}

std::string OptionList::to_toml() const {
  std::string text, group;
  for (const Option& option : options_) {
    if (option.group_ != group) text += fmt::format("\n# {}\n", group = option.group_);
    std::string value = option.text();
    const bool beyond_toml = option.kind_ == Option::Kind::kInteger && parse_number<uint64_t>(value) > INT64_MAX;
    if (option.kind_ == Option::Kind::kText || option.kind_ == Option::Kind::kChoice || beyond_toml)
      value = toml_string(value);
    else if (option.kind_ == Option::Kind::kReal && value.find_first_of(".e") == std::string::npos)
      value += ".0";
    text += fmt::format("{} = {}  # {}\n", option.name_, value, option.help_);
  }
  return text;
}

std::string shell_word(const std::string& text) {
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("_-./+,:=@%").find(c) != std::string::npos;
  });
  if (plain) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

std::string nearest(const std::string& text, const std::vector<std::string>& candidates) {
  const auto distance = [](const std::string& a, const std::string& b) {
    std::vector<size_t> row(b.size() + 1);
    for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
    for (size_t i = 1; i <= a.size(); ++i) {
      size_t diagonal = std::exchange(row[0], i);
      for (size_t j = 1; j <= b.size(); ++j) {
        const size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
        diagonal = row[j];
        row[j] = std::min({substituted, row[j] + 1, row[j - 1] + 1});
      }
    }
    return row[b.size()];
  };
  std::string best;
  size_t best_distance = text.size() / 3 + 2;
  for (const std::string& candidate : candidates)
    if (const size_t d = distance(text, candidate); d < best_distance) {
      best_distance = d;
      best = candidate;
    }
  return best;
}

std::string did_you_mean(const std::string& text, const std::vector<std::string>& candidates) {
  const std::string near = nearest(text, candidates);
  return near.empty() ? "" : fmt::format(" (did you mean '{}'?)", near);
}

}  // namespace cgcn
