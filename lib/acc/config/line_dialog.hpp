// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <istream>
#include <ostream>

#include "acc/config/dialog.hpp"

namespace acc::launcher {

/// A dialog line by line, for pipes and files: questions go to `out`, answers come from `in`.
class LineDialog : public Dialog {
 public:
  LineDialog(std::istream& in, std::ostream& out) : in_(in), out_(out) {}

  void say(std::string_view text) override;
  std::string ask(std::string_view prompt, std::string_view otherwise) override;
  std::string ask_secret(std::string_view prompt) override { return ask(prompt, ""); }
  std::string ask_menu(std::string_view prompt, const std::vector<std::string>& choices,
                       std::size_t otherwise) override;

 private:
  std::string read_line();

  std::istream& in_;
  std::ostream& out_;
};

}  // namespace acc::launcher
