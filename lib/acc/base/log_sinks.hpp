// SPDX-License-Identifier: Apache-2.0
// For the two sources that are built on spdlog.
#pragma once

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/basic_file_sink.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "acc/base/error.hpp"

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

/// Appends to the file; a missing folder is created. Throws Error{system}.
inline spdlog::sink_ptr open_log_file(const std::filesystem::path& file, const std::string& where) {
  try {
    return std::make_shared<spdlog::sinks::basic_file_sink_mt>(file.string());
  } catch (const spdlog::spdlog_ex& error) {
    throw Error({.kind = ErrorKind::system, .what = error.what(), .where = where});
  }
}

}  // namespace acc::log
