// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "acc/config/document.hpp"

namespace acc::launcher {

/// The two readers behind parse_document, each with one library inside. `file` is for messages.
DocumentNode parse_yaml(std::string_view text, const std::string& file);
DocumentNode parse_json(std::string_view text, const std::string& file);

/// Throws Error{config} at `file:line:column`.
[[noreturn]] void fail_at(const std::string& file, Position at, const std::string& what,
                          const std::string& hint = "");

/// Builds the tree from the events of either library, and keeps it within the limits.
class DocumentBuilder {
 public:
  explicit DocumentBuilder(std::string file) : file_(std::move(file)) {}

  /// Adds a finished scalar or alias target to what is open.
  void add(DocumentNode node);
  /// Opens a list or a mapping; it becomes a part of its parent at close().
  void open(DocumentNode::Kind kind, Position at);
  /// The node that was closed stands in its parent; the reference holds until the next call.
  const DocumentNode& close();
  /// The next scalar is the key of a mapping.
  bool expects_key() const;
  void add_key(std::string key, Position at);
  /// Counts nodes that an alias adds.
  void count(std::size_t nodes, Position at);

  bool has_root() const { return has_root_; }
  DocumentNode take_root() { return std::move(root_); }

 private:
  const DocumentNode& attach(DocumentNode node);

  std::string file_;
  std::vector<DocumentNode> open_ = {};
  DocumentNode root_ = {};
  bool has_root_ = false;
  std::size_t nodes_ = 0;
  /// The key that was read last in each open mapping, until its value comes.
  struct Key {
    std::string text = {};
    Position at = {};
    bool waiting = false;
  };
  std::vector<Key> keys_ = {};
};

}  // namespace acc::launcher
