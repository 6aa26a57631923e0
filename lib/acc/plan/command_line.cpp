// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/command_line.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>

#include "acc/base/text.hpp"
#include "acc/config/conversion.hpp"
#include "acc/plan/usage_error.hpp"

namespace acc::launcher {
namespace {

struct KnownFlag {
  const SettingSpec* spec = nullptr;
  const Flag* flag = nullptr;
};

constexpr std::string_view kHelp = "--help";
constexpr std::string_view kHelpAll = "--help-all";
constexpr std::string_view kVersion = "--version";

bool is_long(std::string_view word) {
  return word.starts_with("--") && word.size() > 2;
}

// Flags are compared with `-` and `_` as the same character.
bool same_character(char one, char other) {
  return one == other || ((one == '-' || one == '_') && (other == '-' || other == '_'));
}

bool same_flag(std::string_view one, std::string_view other) {
  return std::ranges::equal(one, other, same_character);
}

bool flag_begins_with(std::string_view flag, std::string_view beginning) {
  return same_flag(flag.substr(0, beginning.size()), beginning);
}

std::vector<KnownFlag> flags_of(Dialect dialect) {
  std::vector<KnownFlag> flags;
  for (const SettingSpec& spec : schema()) {
    for (const Flag& flag : spec.flags) {
      if (exists_in(flag, dialect)) flags.push_back({&spec, &flag});
    }
  }
  return flags;
}

// As in argparse, -1 or -.5 is a value, not an option.
bool is_negative_number(std::string_view word) {
  return word.starts_with('-') && parse_number(word).has_value();
}

class Parser {
 public:
  Parser(const std::vector<std::string>& words, Dialect dialect)
      : words_(words), dialect_(dialect), options_(flags_of(dialect)) {}

  CommandLine parse() {
    while (next_ < words_.size() && !result_.help && !result_.version) {
      const std::string& word = words_[next_];
      if (word == "--") {
        options_ended_ = true;
        result_.switch_before_program.clear();
        ++next_;
        break;
      }
      if (!is_option(word)) break;
      ++next_;
      if (is_long(word)) {
        parse_long(word);
      } else {
        parse_short(word);
      }
    }
    parse_program();
    return std::move(result_);
  }

 private:
  void parse_program() {
    result_.program.assign(words_.begin() + static_cast<std::ptrdiff_t>(next_), words_.end());
    std::vector<std::string>& program = result_.program;
    // argparse removes the first `--`, also behind the program.
    if (!options_ended_ && program.size() > 1 && program[1] == "--") program.erase(program.begin() + 1);
    if (program.empty()) result_.switch_before_program.clear();
  }

  // As in argparse, a word with a blank is an option only if it begins with a known one.
  bool is_option(const std::string& word) const {
    if (word.size() < 2 || word.front() != '-' || is_negative_number(word)) return false;
    if (word.find(' ') == std::string::npos) return true;
    const std::string prefix = is_long(word) ? word.substr(0, word.find('=')) : word.substr(0, 2);
    return std::ranges::any_of(options_, [&](const KnownFlag& option) {
      const std::string_view spelling = option.flag->spelling;
      return same_flag(spelling, prefix) ||
             (dialect_ == Dialect::torchrun && is_long(prefix) && flag_begins_with(spelling, prefix));
    });
  }

  void parse_long(const std::string& word) {
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    // No flag of torchrun's own begins like --help.
    if (name == kHelp || (dialect_ == Dialect::torchrun && is_long(name) && kHelp.starts_with(name))) {
      result_.help = true;
      return;
    }
    if (name == kVersion) {
      result_.version = true;
      return;
    }
    if (same_flag(name, kHelpAll)) {
      result_.help = result_.help_all = true;
      return;
    }
    const KnownFlag option = find_long(name, word);
    std::optional<std::string> value;
    if (equals != std::string::npos) value = word.substr(equals + 1);
    const std::size_t first = next_ - 1;
    store(option, name, value);
    add_typed(option, {words_.begin() + to_offset(first), words_.begin() + to_offset(next_)});
  }

  KnownFlag find_long(const std::string& name, const std::string& word) const {
    std::vector<KnownFlag> beginnings;
    for (const KnownFlag& option : options_) {
      const std::string_view spelling = option.flag->spelling;
      if (same_flag(spelling, name)) return option;
      if (is_long(spelling) && flag_begins_with(spelling, name)) beginnings.push_back(option);
    }
    if (dialect_ == Dialect::torchrun && !beginnings.empty()) return only_one(name, std::move(beginnings));
    // accelerate takes no abbreviations: what one may stand for is the best advice.
    if (beginnings.size() == 1)
      fail("", "unrecognized arguments: " + word,
           fmt::format("did you mean '{}'?", with_dashes_of(name, beginnings.front().flag->spelling)));
    fail("", "unrecognized arguments: " + word, did_you_mean(name, all_spellings(name)));
  }

  // Scripts use abbreviations such as `--node 1` for --node-rank, so flags that torchrun 2.11 lacks are
  // candidates only if there are no others.
  static KnownFlag only_one(const std::string& name, std::vector<KnownFlag> beginnings) {
    const auto is_new = [](const KnownFlag& option) { return option.flag->new_to_torchrun; };
    if (!std::ranges::all_of(beginnings, is_new)) std::erase_if(beginnings, is_new);
    const SettingSpec* first = beginnings.front().spec;
    const bool is_unambiguous =
        std::ranges::all_of(beginnings, [&](const KnownFlag& option) { return option.spec == first; });
    if (!is_unambiguous) fail_ambiguous(name, beginnings);
    return beginnings.front();
  }

  // Candidates for a hint, with `-` or `_` as in the unknown flag.
  std::vector<std::string> all_spellings(const std::string& name) const {
    std::vector<std::string> result = {std::string(kHelp), std::string(kHelpAll), std::string(kVersion)};
    for (const KnownFlag& option : options_) result.push_back(with_dashes_of(name, option.flag->spelling));
    return result;
  }

  static std::string with_dashes_of(const std::string& name, std::string_view flag) {
    std::string spelling(flag);
    if (is_long(flag) && name.find('_') != std::string::npos)
      std::replace(spelling.begin() + 2, spelling.end(), '-', '_');
    return spelling;
  }

  [[noreturn]] static void fail_ambiguous(const std::string& name, const std::vector<KnownFlag>& beginnings) {
    std::vector<std::string> names;
    names.reserve(beginnings.size());
    for (const KnownFlag& option : beginnings) names.emplace_back(option.flag->spelling);
    fail("", fmt::format("ambiguous option: {} could match {}", name, join(names, ", ")));
  }

  // `-mr3`: switches may be combined; the first flag with a value takes the rest of the word.
  void parse_short(const std::string& word) {
    for (std::size_t i = 1; i < word.size(); ++i) {
      const std::string spelling = {'-', word[i]};
      if (spelling == "-h") {
        result_.help = true;
        return;
      }
      const auto option = std::ranges::find_if(
          options_, [&](const KnownFlag& candidate) { return candidate.flag->spelling == spelling; });
      if (option == options_.end()) fail("", "unrecognized arguments: " + word);
      if (!option->flag->needs_argument()) {
        store(*option, spelling, std::nullopt);
        add_typed(*option, {spelling});
        continue;
      }
      std::string rest = word.substr(i + 1);
      if (rest.starts_with('=')) rest.erase(0, 1);
      const bool has_rest = i + 1 < word.size();
      store(*option, spelling, has_rest ? std::optional(rest) : std::nullopt);
      add_typed(*option, {spelling, has_rest ? rest : words_[next_ - 1]});
      return;
    }
  }

  void store(const KnownFlag& option, const std::string& spelling, std::optional<std::string> text) {
    const std::string where = "argument " + spellings(*option.flag);
    const bool is_switch = !option.flag->needs_argument() && !text;
    const bool takes_none = is_switch && option.spec->type == ValueType::boolean;
    result_.switch_before_program = takes_none ? spellings(*option.flag) : "";
    Value value;
    if (is_switch) {
      value = implicit_value(*option.flag);
    } else if (!option.flag->needs_argument() && option.spec->type == ValueType::boolean) {
      fail(where, "ignored explicit argument '" + *text + "'", "the flag takes no value");
    } else {
      if (!text) text = next_value(where);
      value = parse_setting(*option.spec, *text, where);
    }
    Setting& flag = result_.flags[option.spec->id];
    if (option.spec->type == ValueType::list) {
      Value list = flag.value.is_null() ? Value::array() : std::move(flag.value);
      list.push_back(value);
      value = std::move(list);
    }
    flag = {std::move(value), spelling};
  }

  void add_typed(const KnownFlag& option, std::vector<std::string> words) {
    result_.typed.push_back({.setting = option.spec->id, .words = std::move(words)});
  }

  static std::ptrdiff_t to_offset(std::size_t index) { return static_cast<std::ptrdiff_t>(index); }

  std::string next_value(const std::string& where) {
    if (next_ == words_.size() || is_option(words_[next_])) fail(where, "expected one argument");
    return words_[next_++];
  }

  const std::vector<std::string>& words_;
  Dialect dialect_;
  std::vector<KnownFlag> options_;
  std::size_t next_ = 0;
  /// `--` ended the options.
  bool options_ended_ = false;
  CommandLine result_ = {};
};

}  // namespace

CommandLine parse_command_line(const std::vector<std::string>& words, Dialect dialect) {
  return Parser(words, dialect).parse();
}

bool exists_in(const Flag& flag, Dialect dialect) {
  return dialect == Dialect::torchrun ? flag.torchrun : flag.launch;
}

std::string spellings(const Flag& flag) {
  std::string dashes(flag.spelling);
  if (!is_long(dashes)) return dashes;
  std::string underscores = dashes;
  std::replace(dashes.begin() + 2, dashes.end(), '_', '-');
  std::replace(underscores.begin() + 2, underscores.end(), '-', '_');
  return dashes == underscores ? dashes : dashes + "/" + underscores;
}

Value parse_setting(const SettingSpec& spec, std::string_view text, const std::string& where) {
  const auto invalid = [&](std::string_view type) {
    fail(where, fmt::format("invalid {} value: '{}'", type, text));
  };
  if (is_number(spec) && !std::empty(spec.allowed)) {
    if (const auto word = allowed_word(spec, text)) return *word;
  }
  switch (spec.type) {
    case ValueType::integer: {
      const auto number = parse_python_integer(text);
      if (!number) invalid("int");
      return *number;
    }
    case ValueType::number: {
      const auto number = parse_number(text);
      if (!number) invalid("float");
      return *number;
    }
    case ValueType::boolean: {
      const auto truth = parse_truth(text);
      if (!truth) invalid("bool");
      return *truth;
    }
    case ValueType::word_or_truth:
      if (const auto truth = parse_truth(text)) return *truth;
      break;
    case ValueType::truths: {
      const auto value = convert(spec, text);
      if (const auto* mismatch = std::get_if<Mismatch>(&value)) fail(where, mismatch->what);
      return std::get<Value>(value);
    }
    case ValueType::list:
    case ValueType::section:
    case ValueType::text:
      break;
  }
  if (const auto word = allowed_word(spec, text)) return *word;
  std::vector<std::string> allowed;
  for (const std::string_view word : spec.allowed)
    allowed.push_back(spec.ignore_case ? to_lower(word) : std::string(word));
  fail(where, fmt::format("invalid choice: '{}' (choose from {})", text, join(allowed, ", ")),
       did_you_mean(spec.ignore_case ? to_lower(text) : text, allowed));
}

}  // namespace acc::launcher
