// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "acc/config/value.hpp"

namespace acc::launcher {

/// A position in a file; line and column count from 1.
struct Position {
  int line = 1;
  int column = 1;

  bool operator==(const Position&) const = default;
};

/// A node of a YAML or JSON document, with its position.
struct DocumentNode {  // NOLINT(bugprone-exception-escape): a null Value does not throw
  enum class Kind { scalar, list, mapping };

  Kind kind = Kind::scalar;
  /// Of a scalar: its value (YAML 1.1), and its text without quotes.
  Value value = nullptr;
  std::string text = {};
  bool quoted = false;
  Position position = {};
  /// The key of this node in its mapping.
  std::string key = {};
  Position key_position = {};
  /// The items of a list or mapping, in the order of the file; a key may occur twice.
  std::vector<DocumentNode> items = {};

  bool is_null() const { return kind == Kind::scalar && value.is_null(); }
};

/// Limits against malformed or malicious files; no real config file comes near them.
struct DocumentLimits {
  static constexpr std::size_t kBytes = 128U << 10U;
  static constexpr int kDepth = 64;
  static constexpr std::size_t kNodes = 10'000;
};

/// Reads `text` as JSON when `file` ends in `.json`, else as YAML (one document; JSON is YAML too). Throws
/// Error{config} with `file:line:column` if the text is not UTF-8, malformed, or exceeds the limits. The
/// time is linear in the length of the text, whatever its nesting and aliases.
DocumentNode parse_document(std::string_view text, const std::filesystem::path& file);

/// Converts the node to a value. Of equal keys the last one wins.
Value to_value(const DocumentNode& node);

}  // namespace acc::launcher
