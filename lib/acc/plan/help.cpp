// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/help.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "acc/base/text.hpp"
#include "acc/plan/command_line.hpp"

namespace acc {
namespace {

constexpr int kIndent = 30;

std::string wrap(const std::string& text, int indent, int width) {
  std::string result;
  int column = indent;
  for (const std::string& word : split(text, ' ')) {
    const int length = static_cast<int>(word.size());
    if (column > indent && column + 1 + length > width) {
      result += "\n" + std::string(static_cast<std::size_t>(indent), ' ');
      column = indent;
    } else if (column > indent) {
      result += ' ';
      ++column;
    }
    result += word;
    column += length;
  }
  return result;
}

std::string value_name(const SettingSpec& spec, const Flag& flag) {
  if (flag.means) return spec.type == ValueType::boolean ? "" : "[=" + std::string(spec.allowed.back()) + "]";
  if (!spec.allowed.empty() && spec.allowed.size() <= 4) {
    return " {" + join({spec.allowed.begin(), spec.allowed.end()}, ",") + "}";
  }
  constexpr std::size_t kLongest = 20;
  switch (spec.type) {
    case ValueType::integer:
    case ValueType::number:
      return " N";
    case ValueType::boolean:
      return " {true,false}";
    default:
      return " " + (spec.name.size() > kLongest ? "VALUE" : to_upper(spec.name));
  }
}

// The flags of one setting that exist here, as one line of help; empty when there are none.
std::string setting_help(const SettingSpec& spec, Dialect dialect, int width) {
  std::vector<std::string> flags;
  const Flag* last = nullptr;
  for (const Flag& flag : spec.flags) {
    if (!exists_in(flag, dialect)) continue;
    flags.emplace_back(flag.spelling);
    last = &flag;
  }
  if (last == nullptr) return "";
  std::string left = "  " + join(flags, ", ") + value_name(spec, *last);
  std::string help(spec.help);
  if (spec.otherwise != "null" && spec.otherwise != "false")
    help += fmt::format(" Default: {}.", spec.otherwise);
  if (!spec.pet.empty()) help += fmt::format(" [{}]", spec.pet);
  if (static_cast<int>(left.size()) + 2 > kIndent) {
    left += "\n" + std::string(kIndent, ' ');
  } else {
    left.resize(kIndent, ' ');
  }
  return left + wrap(help, kIndent, width) + "\n";
}

}  // namespace

std::string launch_help(Dialect dialect, std::string_view program, int width) {
  std::string text = fmt::format("usage: {} [options] PROGRAM [ARGUMENTS ...]\n\n", program);
  text += wrap(
      dialect == Dialect::launch
          ? "Starts and guards one worker per device. Takes the flags of accelerate launch and of torchrun, "
            "spelt with - or _."
          : "Starts and guards workers by torchrun's rules: no config file is read.",
      0, width);
  text += '\n';
  std::vector<std::string_view> groups;
  for (const SettingSpec& spec : schema()) {
    if (!spec.group.empty() && std::ranges::find(groups, spec.group) == groups.end())
      groups.push_back(spec.group);
  }
  for (const std::string_view group : groups) {
    std::string lines;
    for (const SettingSpec& spec : schema()) {
      if (spec.group == group) lines += setting_help(spec, dialect, width);
    }
    if (!lines.empty()) text += fmt::format("\n{}:\n{}", group, lines);
  }
  return text;
}

}  // namespace acc
