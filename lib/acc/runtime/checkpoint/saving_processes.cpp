// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/checkpoint/saving_processes.hpp"

#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <string_view>

#include "acc/base/error.hpp"
#include "acc/base/text.hpp"
#include "acc/runtime/parallel/process_group.hpp"

namespace acc {
namespace {

// Longer ones are cut for the other processes; whose it is has it in full.
constexpr std::size_t kMostBytes = 1000;

// Every process's text.
std::vector<std::string> exchange(ProcessGroup& group, const std::string& text) {
  at::Tensor bytes = at::zeros({static_cast<std::int64_t>(kMostBytes) + 8}, at::kByte);
  const std::string cut = shorten(text, kMostBytes);
  std::ranges::copy(cut, bytes.mutable_data_ptr<std::uint8_t>());
  const at::Tensor all = group.all_gather(bytes);
  std::vector<std::string> texts;
  for (int i = 0; i < group.size(); ++i)
    texts.emplace_back(reinterpret_cast<const char*>(all[i].const_data_ptr<std::uint8_t>()));
  return texts;
}

}  // namespace

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
  const std::vector<std::string> texts = exchange(*processes.group, text);
  if (own) std::rethrow_exception(own);
  const auto failed = std::ranges::find_if(texts, [](const std::string& of) { return !of.empty(); });
  if (failed == texts.end()) return;
  throw Error({.kind = ErrorKind::system,
               .what = *failed,
               .where = fmt::format("process {}", failed - texts.begin())});
}

}  // namespace acc
