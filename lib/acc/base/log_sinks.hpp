// SPDX-License-Identifier: Apache-2.0
// For the two sources that are built on spdlog.
#pragma once

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>

#include <cerrno>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "acc/base/append_file.hpp"
#include "acc/base/error.hpp"
#include "acc/base/files.hpp"

namespace acc::log {

/// A flag for patterns that spdlog does not have.
class TextFlag : public spdlog::custom_flag_formatter {
 public:
  using TextOf = std::function<std::string(const spdlog::details::log_msg&)>;
  explicit TextFlag(TextOf text_of) : text_of_(std::move(text_of)) {}

  void format(const spdlog::details::log_msg& message, const std::tm& /*time*/,
              spdlog::memory_buf_t& to) override {
    const std::string text = text_of_(message);
    to.append(std::string_view(text));
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<TextFlag>(text_of_);
  }

 private:
  TextOf text_of_;
};

/// Appends each line to a file. A line that cannot be written is lost; the first calls `on_lost` with the
/// reason, which may log in turn: hence a recursive mutex.
class FileSink : public spdlog::sinks::base_sink<std::recursive_mutex> {
 public:
  using OnLost = std::function<void(const std::string& reason)>;

  /// A missing folder is created. Throws Error{system}.
  FileSink(std::filesystem::path file, const std::string& where, OnLost on_lost)
      : path_(std::move(file)), on_lost_(std::move(on_lost)) {
    std::error_code ignored;
    if (path_.has_parent_path()) std::filesystem::create_directories(path_.parent_path(), ignored);
    file_ = open_to_append(path_);
    if (!file_)
      throw Error({.kind = ErrorKind::system,
                   .what = path_.string() + " cannot be written: " + append_problem(errno, path_),
                   .where = where});
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t text;
    formatter_->format(message, text);
    if (write_all(file_.get(), {text.data(), text.size()})) return;
    if (const auto on_lost = std::exchange(on_lost_, nullptr)) on_lost(append_problem(errno, path_));
  }
  void flush_() override {}

 private:
  std::filesystem::path path_;
  Descriptor file_ = {};
  OnLost on_lost_;
};

}  // namespace acc::log
