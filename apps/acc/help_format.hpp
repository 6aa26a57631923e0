// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

namespace CLI {
class FormatterBase;
}  // namespace CLI

namespace acc::launcher {

/// Columns of the terminal on standard output, within what can be read; 100 where it is none.
std::size_t help_width();

/// CLI11's help, wrapped at help_width() as that of `acc launch` is.
std::shared_ptr<CLI::FormatterBase> help_format();

}  // namespace acc::launcher
