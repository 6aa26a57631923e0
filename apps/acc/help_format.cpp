// SPDX-License-Identifier: Apache-2.0
#include "help_format.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "acc/base/text.hpp"

namespace acc::launcher {
namespace {

class HelpFormat : public CLI::Formatter {
 public:
  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    const std::string name = make_option_name(option, is_positional) + make_option_opts(option);
    return help_entry(name, make_option_desc(option), help_width());
  }
  std::string make_subcommand(const CLI::App* command) const override {
    return help_entry(command->get_name(), command->get_description(), help_width());
  }
};

}  // namespace

std::size_t help_width() {
  winsize size = {};
  constexpr std::size_t kNoTerminal = 100;
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kNoTerminal;
  return std::clamp<std::size_t>(size.ws_col, 40, 120);
}

std::shared_ptr<CLI::FormatterBase> help_format() {
  return std::make_shared<HelpFormat>();
}

}  // namespace acc::launcher
