// SPDX-License-Identifier: Apache-2.0
#include "acc/remote/summary.hpp"

#include <fmt/format.h>

#include <map>
#include <tuple>
#include <utility>

#include "acc/base/text.hpp"

namespace acc::launcher {

int code_of_job(const std::vector<HostEnd>& ends, bool survives_loss) {
  int code = 0;
  bool any_well = false;
  for (const HostEnd& end : ends) {
    any_well = any_well || end.code == 0;
    if (!end.code && survives_loss) continue;
    if (code == 0) code = end.code.value_or(exit_code(ErrorKind::rendezvous));
  }
  if (survives_loss && code == 0 && !any_well) return exit_code(ErrorKind::rendezvous);
  return code;
}

std::vector<Problem> merge_problems(const std::vector<HostProblem>& problems) {
  constexpr std::size_t kMaxNamed = 8;
  std::vector<std::pair<Problem, std::vector<std::string>>> merged;
  using Texts = std::tuple<std::string_view, std::string_view, std::string_view>;
  std::map<Texts, std::size_t> indices;
  for (const auto& [host, problem] : problems) {
    const auto [entry, is_new] =
        indices.emplace(Texts{problem.what, problem.where, problem.hint}, merged.size());
    if (is_new) merged.push_back({problem, {}});
    merged[entry->second].second.push_back(host);
  }
  std::vector<Problem> result;
  for (auto& [problem, hosts] : merged) {
    const std::size_t more = hosts.size() > kMaxNamed ? hosts.size() - kMaxNamed : 0;
    hosts.resize(hosts.size() - more);
    std::string where = join(hosts, ", ") + (more > 0 ? fmt::format(" and {} others", more) : "");
    if (!problem.where.empty()) where += ": " + problem.where;
    result.push_back({.what = problem.what, .where = where, .hint = problem.hint});
  }
  return result;
}

std::string with_host(std::string_view lines, const std::string& host) {
  constexpr std::string_view kPrefix = "acc: ";
  if (!lines.starts_with(kPrefix)) return fmt::format("{}: {}", host, lines);
  return fmt::format("{}{}: {}", kPrefix, host, lines.substr(kPrefix.size()));
}

namespace {

// As lost_output_text() does.
bool tells_lost_output(std::string_view text) {
  return text.find(" of output is lost: ") != std::string_view::npos ||
         text.find(" of output are lost: ") != std::string_view::npos;
}

}  // namespace

bool RepeatFilter::is_new(const std::string& text, int host, RunningClock::time_point now) {
  if (tells_lost_output(text)) return true;
  const auto [entry, added] = said_.emplace(text, Said{host, now});
  if (!added) {
    Said& said = entry->second;
    if (said.host != host && now - said.time < kSameTime) return false;
    said = {host, now};
    return true;
  }
  order_.push_back(text);
  if (order_.size() > kRemembered) {
    said_.erase(order_.front());
    order_.pop_front();
  }
  return true;
}

}  // namespace acc::launcher
