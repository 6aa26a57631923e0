// SPDX-License-Identifier: Apache-2.0
#include "acc/config/edit.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/base/text.hpp"
#include "acc/config/conversion.hpp"
#include "acc/config/defaults.hpp"
#include "acc/config/document.hpp"
#include "acc/config/value.hpp"
#include "acc/config/write.hpp"

namespace acc::launcher {
namespace {

using Lines = std::vector<std::string>;

/// Thrown if the text cannot be edited line by line.
struct NotEditable {};

RowOf rows_of(const Value& values) {
  const ConfigKind kind = kind_of(values.get<ConfigValues>());
  return [kind](std::string_view section, std::string_view key) {
    return section.empty() ? find_file_key(key, kind) : find_section_key(section, key);
  };
}

// The value of the node, converted to the type of its setting.
Value meaning(const SettingSpec* spec, const DocumentNode& node) {
  if (spec == nullptr || spec->type == ValueType::section) return to_value(node);
  auto value = convert(*spec, node);
  const auto* good = std::get_if<Value>(&value);
  return good == nullptr ? Value() : *good;
}

// Whether PyYAML, and so accelerate, reads the wanted value from the line, and not only acc, which knows the
// type of the setting.
bool is_read_alike(const std::string& key, const DocumentNode& node, const Value& wanted) {
  // accelerate's questionnaire writes the text 'no' here, and its launch does not read it.
  if (key == "downcast_bf16") return true;
  const DocumentNode written = parse_document(write_yaml(Value{{key, wanted}}), "value.yaml");
  return to_value(node) == to_value(written.items.front());
}

Lines indented(const std::string& yaml, std::size_t indent) {
  Lines lines = split(yaml, '\n');
  if (lines.back().empty()) lines.pop_back();
  for (std::string& line : lines) line.insert(0, indent, ' ');
  return lines;
}

// The closing quote of a text that starts at `from`. Inside, a quote is doubled, or follows a backslash.
std::size_t end_of_quotes(const std::string& line, std::size_t from) {
  const char quote = line[from];
  for (std::size_t i = from + 1; i < line.size(); ++i) {
    if (quote == '"' && line[i] == '\\') {
      ++i;
    } else if (line[i] == quote) {
      if (quote == '"' || i + 1 == line.size() || line[i + 1] != quote) return i;
      ++i;
    }
  }
  return line.size();
}

// The comment after the value that starts at `column`, with its leading blanks.
std::string comment_after(const std::string& line, std::size_t column) {
  std::size_t from = std::min(column, line.size());
  if (from < line.size() && (line[from] == '\'' || line[from] == '"')) from = end_of_quotes(line, from);
  const std::size_t mark = line.find(" #", from);
  if (mark == std::string::npos) return "";
  return line.substr(line.find_last_not_of(' ', mark) + 1);
}

class YamlEditor {
 public:
  YamlEditor(std::string_view text, RowOf row_of) : lines_(split(text, '\n')), row_of_(std::move(row_of)) {
    if (lines_.back().empty()) lines_.pop_back();
    has_carriage_returns_ = !lines_.empty() && lines_.front().ends_with('\r');
    for (std::string& line : lines_) {
      if (has_carriage_returns_ && line.ends_with('\r')) line.pop_back();
    }
    end_ = lines_.size();
    std::size_t last = end_;
    while (last > 0 && is_remark(last - 1)) --last;
    if (last > 0 && trim(lines_[last - 1]) == "...") end_ = last - 1;
  }

  std::string edit(const DocumentNode& root, const Value& wanted) {
    Lines out(lines_.begin(), lines_.begin() + static_cast<std::ptrdiff_t>(line_of(root.items.front())));
    append(out, mapping(root, wanted, "", end_));
    append(out, copy(end_, lines_.size()));
    const std::string line_end = has_carriage_returns_ ? "\r\n" : "\n";
    return join(out, line_end) + line_end;
  }

 private:
  static std::size_t line_of(const DocumentNode& item) {
    return static_cast<std::size_t>(item.key_position.line - 1);
  }

  static void append(Lines& out, const Lines& more) { out.insert(out.end(), more.begin(), more.end()); }

  Lines copy(std::size_t first, std::size_t last) const {
    return {lines_.begin() + static_cast<std::ptrdiff_t>(first),
            lines_.begin() + static_cast<std::ptrdiff_t>(last)};
  }

  bool is_remark(std::size_t line) const {
    const std::string_view text = trim(lines_[line]);
    return text.empty() || text.starts_with('#');
  }

  // A key whose value is null, which values do not contain: its line says that it is not set, and stays.
  static bool is_unset(const DocumentNode& item, const SettingSpec* spec) {
    return item.is_null() && spec != nullptr && item.key == file_key(*spec);
  }

  // The end of the lines of an item. Comments directly above the next key belong to that key.
  std::size_t end_of(const DocumentNode& item, std::size_t next) const {
    while (next > line_of(item) + 1 && is_remark(next - 1)) --next;
    return next;
  }

  Lines mapping(const DocumentNode& node, const Value& target, const std::string& section,
                std::size_t limit) {
    Lines out;
    Value missing = target;
    const auto indent = static_cast<std::size_t>(node.items.front().key_position.column - 1);
    for (std::size_t i = 0; i < node.items.size(); ++i) {
      const DocumentNode& item = node.items[i];
      const std::size_t next = i + 1 < node.items.size() ? line_of(node.items[i + 1]) : limit;
      if (next <= line_of(item) || next > end_ ||
          item.key_position.column != node.items.front().key_position.column)
        throw NotEditable{};
      const std::size_t end = end_of(item, next);
      const SettingSpec* spec = row_of_(section, item.key);
      const std::string key(spec == nullptr ? item.key : file_key(*spec));
      if (missing.contains(key)) {
        append(out, edited(item, spec, key, missing[key], end));
        missing.erase(key);
      } else if (is_unset(item, spec) && !target.contains(key)) {
        append(out, copy(line_of(item), end));
      }
      if (i + 1 == node.items.size() && !missing.empty()) append(out, indented(write_yaml(missing), indent));
      append(out, copy(end, next));
    }
    return out;
  }

  Lines edited(const DocumentNode& item, const SettingSpec* spec, const std::string& key, const Value& target,
               std::size_t end) {
    const std::size_t first = line_of(item);
    const auto indent = static_cast<std::size_t>(item.key_position.column - 1);
    if (key == item.key && meaning(spec, item) == target &&
        (item.kind == DocumentNode::Kind::mapping || is_read_alike(key, item, target)))
      return copy(first, end);
    const bool is_section = item.kind == DocumentNode::Kind::mapping && target.is_object() &&
                            !item.items.empty() && line_of(item.items.front()) > first;
    if (is_section) {
      Lines out = copy(first, line_of(item.items.front()));
      append(out, mapping(item, target, item.key, end));
      return out;
    }
    Lines out = indented(write_yaml(Value{{key, target}}), indent);
    const bool one_line = item.kind == DocumentNode::Kind::scalar && end == first + 1 &&
                          item.position.line == item.key_position.line;
    if (one_line && out.size() == 1)
      out.front() += comment_after(lines_[first], static_cast<std::size_t>(item.position.column - 1));
    return out;
  }

  Lines lines_;
  bool has_carriage_returns_ = false;
  /// The line that ends the document (`...`), or the number of lines.
  std::size_t end_ = 0;
  RowOf row_of_;
};

// The wanted values in the order of the document, new keys last.
nlohmann::ordered_json in_order(const DocumentNode& node, const Value& target, const std::string& section,
                                const RowOf& row_of) {
  nlohmann::ordered_json out = nlohmann::ordered_json::object();
  Value missing = target;
  for (const DocumentNode& item : node.items) {
    const SettingSpec* spec = row_of(section, item.key);
    const std::string key(spec == nullptr ? item.key : file_key(*spec));
    if (!missing.contains(key)) continue;
    out[key] = missing[key].is_object() ? in_order(item, missing[key], key, row_of)
                                        : nlohmann::ordered_json(missing[key]);
    missing.erase(key);
  }
  for (const auto& [key, value] : missing.items()) out[key] = value;
  return out;
}

bool has_comment(std::string_view text) {
  const std::vector<std::string> lines = split(text, '\n');
  return std::ranges::any_of(lines, [](const std::string& line) {
    return trim(line).starts_with('#') || line.find(" #") != std::string::npos;
  });
}

std::string edited_text(std::string_view text, const Value& target, const RowOf& row_of,
                        const std::filesystem::path& file) {
  const DocumentNode root = parse_document(text, file);
  if (root.kind != DocumentNode::Kind::mapping || root.items.empty() || target.empty()) throw NotEditable{};
  if (file.extension() != ".json") return YamlEditor(text, row_of).edit(root, target);
  constexpr bool kAscii = true;
  return in_order(root, target, "", row_of).dump(2, ' ', kAscii) + "\n";
}

// Empty: the file cannot be edited by lines.
std::optional<std::string> edited_by_lines(std::string_view text, const ConfigValues& values,
                                           const std::filesystem::path& file) {
  const Value target = written_values(values);
  require_utf8(target, "config");
  try {
    std::string edited = edited_text(text, target, rows_of(target), file);
    if (written_values(parse_config(edited, file).values) == target) return edited;
  } catch (const NotEditable&) {
  } catch (const Error&) {
    // The edited text is not valid.
  }
  return std::nullopt;
}

}  // namespace

std::string edited_config(std::string_view text, const ConfigValues& values,
                          const std::filesystem::path& file) {
  if (auto edited = edited_by_lines(text, values, file)) return std::move(*edited);
  return format_config(values, file);
}

std::string edited_document(std::string_view text, const Value& target, const std::filesystem::path& file,
                            const RowOf& row_of) {
  try {
    std::string edited = edited_text(text, target, row_of, file);
    if (to_value(parse_document(edited, file)) == target) return edited;
  } catch (const NotEditable&) {
  } catch (const Error&) {
    // The edited text is not valid: write the file anew.
  }
  return file.extension() == ".json" ? target.dump(2) + "\n" : write_yaml(target);
}

bool edit_config(const ConfigValues& values, const std::filesystem::path& file) {
  if (!std::filesystem::exists(file)) {
    write_config(values, file);
    return true;
  }
  const std::string text = read_file(file, DocumentLimits::kBytes);
  const auto edited = edited_by_lines(text, values, file);
  replace_file(file, edited ? *edited : format_config(values, file));
  return edited || !has_comment(text);
}

}  // namespace acc::launcher
