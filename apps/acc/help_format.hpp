// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

namespace CLI {
class FormatterBase;
}  // namespace CLI

namespace acc::launcher {

/// The columns of the terminal on standard output, between 40 and 120; 100 without a terminal.
std::size_t help_width();

/// The formatter of CLI11's help: wrapped at help_width(), as that of `acc launch`.
std::shared_ptr<CLI::FormatterBase> help_format();

}  // namespace acc::launcher
