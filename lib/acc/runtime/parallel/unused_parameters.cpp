// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/parallel/unused_parameters.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "acc/base/text.hpp"

namespace acc {
namespace {

// "... Parameter indices which did not receive grad for rank 1: 2 3\n ..."
std::vector<std::string> names_in(std::string_view text, const std::vector<std::string>& trained) {
  constexpr std::string_view kList = "indices which did not receive grad for rank";
  const std::size_t at = text.find(kList);
  if (at == std::string_view::npos) return {};
  std::string_view list = text.substr(at + kList.size());
  list = list.substr(0, list.find('\n'));
  list.remove_prefix(std::min(list.size(), list.find(':') + 1));

  std::vector<std::string> names;
  for (const std::string& word : split(list, ' ')) {
    const auto index = parse_integer(word);
    if (index && *index >= 0 && static_cast<std::size_t>(*index) < trained.size())
      names.push_back(trained[*index]);
  }
  return names;
}

}  // namespace

std::optional<Error> explain_unused_parameters(std::string_view text, const std::vector<std::string>& trained,
                                               std::string where) {
  if (text.find("Expected to have finished reduction") == std::string_view::npos) return std::nullopt;
  const std::vector<std::string> names = names_in(text, trained);
  return Error({.what = fmt::format(
                    "took no part in the last loss, so the processes cannot average their gradients: {}",
                    names.empty() ? "some parameters" : fmt::format("{}", fmt::join(names, ", "))),
                .where = std::move(where),
                .hint = "set DdpOptions::find_unused_parameters, or use every parameter in each forward, or "
                        "freeze it with requires_grad_(false) before the forward"});
}

}  // namespace acc
