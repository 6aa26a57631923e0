// SPDX-License-Identifier: Apache-2.0
// Captures what a part of a test writes to standard output or error.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <string>

namespace acc::test {

/// Calls `act` with `stream` redirected to a file, and returns what was written.
template <class Act>
std::string printed_to(std::FILE* stream, Act act) {
  std::FILE* file = std::tmpfile();
  std::fflush(stream);
  const int old = ::dup(::fileno(stream));
  ::dup2(::fileno(file), ::fileno(stream));
  act();
  std::fflush(stream);
  ::dup2(old, ::fileno(stream));
  ::close(old);
  std::string text(static_cast<std::size_t>(std::ftell(file)), '\0');
  std::rewind(file);
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  return text;
}

}  // namespace acc::test
