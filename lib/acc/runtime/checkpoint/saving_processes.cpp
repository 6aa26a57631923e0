// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/saving_processes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "acc/base/error.hpp"
#include "acc/runtime/process/operations.hpp"

namespace acc {
void together(const SavingProcesses& processes, const std::function<void()>& act) {
  if (!processes.group) return act();
  std::exception_ptr own;
  std::string text;
  try {
    act();
  } catch (const std::exception& error) {
    own = std::current_exception();
    text = error.what();
    if (text.empty()) text = "failed";
  }
  const std::vector<std::string> texts = gather_texts({text}, processes.group.get());
  if (own) std::rethrow_exception(own);
  const auto failed = std::ranges::find_if(texts, [](const std::string& of) { return !of.empty(); });
  if (failed == texts.end()) return;
  throw Error({.kind = ErrorKind::system,
               .what = *failed,
               .where = fmt::format("process {}", failed - texts.begin())});
}

}  // namespace acc
