// Options, declared once. A plain struct holds the values with their defaults; its list_options() names each field
// here. The command line, --help, the TOML file, the checkpoint's header and docs/options.md are all made from the
// list.
//
//   struct PartitionOptions {
//     uint32_t parts = 0;
//     void list_options(OptionList& list) { list.add("parts", &parts, "clusters p; 0: …").range(0, 1e9).value("P"); }
//   };
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

namespace cgcn {

class Option {
 public:
  enum class Kind { kFlag, kInteger, kReal, kText, kChoice };

  Option& range(double low, double high);                        // numbers outside are refused
  Option& value(std::string name);                               // what --help shows after the name
  Option& shape(std::function<void(const std::string&)> check);  // text: throws std::invalid_argument("what is wrong")
  Option& common();                                              // among the few that --help shows first
  // A resumed run may have another value: what was learnt so far does not depend on it. allowed: if that holds only
  // for some values of other options, with the reason if not.
  Option& resumable(std::function<bool()> allowed = {}, std::string why_not = {});
  // Changes nothing if used() is false, given the other options; may be called several times.
  Option& needs(std::function<bool()> used, std::string why_not);

  const std::string& name() const { return name_; }
  const std::string& help() const { return help_; }
  const std::string& group() const { return group_; }
  const std::string& value_name() const { return value_name_; }
  Kind kind() const { return kind_; }
  bool is_common() const { return common_; }
  bool may_change_on_resume() const { return resumable_ && (!resumable_if_ || resumable_if_()); }
  const std::string& why_not_resumable() const { return why_not_resumable_; }  // empty: what was learnt depends on it
  std::string why_unused() const;                                              // empty if it may change something
  const std::vector<std::string>& choices() const { return choices_; }
  const std::string& default_text() const { return default_text_; }
  std::string text() const { return get_(); }  // the value as it is now, in the form that set() takes
  // The value as it is now, to be pasted into a shell: "--parts 50", "--no-bias", "--from 'my file'".
  std::string command_line() const;
  bool is_default() const { return text() == default_text_; }
  // Checks and stores. Throws Error that names `where`, such as "--parts" or "run.toml: parts".
  void set(const std::string& text, const std::string& where);

 private:
  friend class OptionList;
  std::string name_, help_, group_, value_name_, default_text_;
  Kind kind_ = Kind::kText;
  std::vector<std::string> choices_;
  double low_ = 0, high_ = 0;
  bool ranged_ = false, common_ = false, resumable_ = false;
  std::function<bool()> resumable_if_;
  std::string why_not_resumable_;
  std::vector<std::pair<std::function<bool()>, std::string>> needs_;
  std::function<std::string()> get_;
  std::function<void(const std::string&)> set_;  // throws std::invalid_argument
  std::function<void(const std::string&)> check_;
};

class OptionList {
 public:
  OptionList() = default;
  OptionList(const OptionList&) = delete;  // options point into the structs they were made from
  OptionList& operator=(const OptionList&) = delete;

  void begin_group(std::string title) { group_ = std::move(title); }
  Option& add(std::string name, bool* target, std::string help);
  Option& add(std::string name, uint32_t* target, std::string help);
  Option& add(std::string name, uint64_t* target, std::string help);
  Option& add(std::string name, float* target, std::string help);
  Option& add(std::string name, double* target, std::string help);
  Option& add(std::string name, std::string* target, std::string help);
  template <class Enum>
  Option& add_choice(std::string name, Enum* target, std::initializer_list<std::pair<const char*, Enum>> choices,
                     std::string help) {
    std::vector<std::pair<std::string, Enum>> table(choices.begin(), choices.end());
    std::vector<std::string> names;
    for (const auto& [text, value] : table) names.push_back(text);
    return add_choice_erased(
        std::move(name), std::move(names), std::move(help),
        [target, table] {
          size_t i = 0;
          while (table[i].second != *target) ++i;
          return i;
        },
        [target, table](size_t i) { *target = table[i].second; });
  }

  const std::deque<Option>& all() const { return options_; }
  std::deque<Option>& all() { return options_; }
  Option* find(const std::string& name);
  // For values that come by name from a file: unknown names are an Error that suggests the nearest one.
  void set(const std::string& name, const std::string& text, const std::string& where);

  nlohmann::json to_json() const;
  // Reads what to_json wrote; names that are not there keep their value. Throws Error naming `where`.
  void from_json(const nlohmann::json& values, const std::string& where);
  std::string to_toml() const;  // grouped, with the help text as comments

 private:
  Option& add_erased(std::string name, Option::Kind kind, std::string help, std::function<std::string()> get,
                     std::function<void(const std::string&)> set);
  Option& add_choice_erased(std::string name, std::vector<std::string> names, std::string help,
                            const std::function<size_t()>& get, const std::function<void(size_t)>& set);
  std::deque<Option> options_;  // a deque: references stay valid
  std::string group_;
};

// Quoted if a shell would not take it as one word.
std::string shell_word(const std::string& text);

// The candidate nearest to `text` by edit distance; empty if none is near.
std::string nearest(const std::string& text, const std::vector<std::string>& candidates);
// " (did you mean 'epochs'?)", to stand behind a name that is not known; empty if none is near.
std::string did_you_mean(const std::string& text, const std::vector<std::string>& candidates);

}  // namespace cgcn
