// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "acc/config/value.hpp"

namespace acc::launcher {

/// A place in a file; both count from 1.
struct Position {
  int line = 1;
  int column = 1;

  bool operator==(const Position&) const = default;
};

/// One value of a YAML or JSON text, with its place.
struct DocumentNode {  // NOLINT(bugprone-exception-escape): a null Value does not throw
  enum class Kind { scalar, list, mapping };

  Kind kind = Kind::scalar;
  /// Of a scalar: what it means (YAML 1.1), and how it was written without its quotes.
  Value value = nullptr;
  std::string text = {};
  bool quoted = false;
  Position at = {};
  /// In a mapping, the key that leads to this node.
  std::string key = {};
  Position key_at = {};
  /// Of a list or a mapping, in the order of the file; a key may occur twice.
  std::vector<DocumentNode> items = {};

  bool is_null() const { return kind == Kind::scalar && value.is_null(); }
};

/// What no config file exceeds: it would be a mistake or an attack.
struct DocumentLimits {
  static constexpr std::size_t kBytes = 128U << 10U;
  static constexpr int kDepth = 64;
  static constexpr std::size_t kNodes = 10'000;
};

/// Reads `text` as JSON when `file` ends in `.json`, else as YAML (one document; JSON is YAML too).
/// Throws Error{config} with `file:line:column` for a text that is not UTF-8, not well formed, or beyond the
/// limits: in time that grows with its length only, whatever its nesting and aliases.
DocumentNode parse_document(std::string_view text, const std::filesystem::path& file);

/// The node as a plain value. Of equal keys the last one counts.
Value to_value(const DocumentNode& node);

}  // namespace acc::launcher
